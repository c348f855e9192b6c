"""pycobre: multistage stochastic planning with the same bits on every machine.

Three floors, each of which imports from itself and from those below it:

    app          the application: a study from request to results (`app.results`), the command line (`app.cli`), plots
    ---------------------------------------------------------------------------------------------------------------
    hydro        the power system: model, checks, files, equations, uncertainty, tables, examples
    ---------------------------------------------------------------------------------------------------------------
    sddp         the algorithm                            problem     what is decided, when, under which noise
    stochastic   where random numbers come from           solver      one LP, solved the same way every time
    launch       starting ranks on this machine           comm        processes that exchange arrays
    events       what a long run reports                  errors      every exception, as one tree
    _util        private helpers                          _native     the compiled part

    testing      beside the floors: test kits for authors of backends

Importing this package imports none of them but `errors`; a package is loaded when it is imported or first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from pycobre.errors import CobreError

__version__ = "0.1.0"

_LAZY = {
    "create_communicator": "pycobre.comm",
    "available_backends": "pycobre.comm",
    "load_case": "pycobre.hydro.files",
    "validate": "pycobre.hydro.files",
    "write_case": "pycobre.hydro.files",
    "train": "pycobre.app.api",
    "start": "pycobre.app.background",
    "Run": "pycobre.app.background",
    "simulate": "pycobre.app.api",
    "open_results": "pycobre.app.results.directory",
    "Case": "pycobre.hydro.model",
    "Policy": "pycobre.sddp",
    "Problem": "pycobre.problem",
}

__all__ = [
    "Case",
    "CobreError",
    "Policy",
    "Problem",
    "Run",
    "__version__",
    "available_backends",
    "create_communicator",
    "load_case",
    "open_results",
    "simulate",
    "start",
    "train",
    "validate",
    "write_case",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
