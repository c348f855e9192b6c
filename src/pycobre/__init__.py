"""pycobre: multistage stochastic planning with the same bits on every machine.

Data flows one way through the rooms, case -> problem -> (stochastic + solver + comm) -> sddp -> results:

    errors       every exception, as one tree             events      what a long run tells while it runs
    frozen       immutable classes, quick to load         lazy        names loaded when they are used
    container    arrays and values in one checked file
    comm         processes talking                        solver      one LP, solved the same way every time
    problem      what is decided, when, under which noise stochastic  where future numbers come from
    sddp         the algorithm                            run         the one pipeline behind every face
    model        power-system nouns                       hydro       power-system equations -> problem
    io           files in and out                         results     a result directory as tables
    cases        bundled examples, synthetic systems      testing     kits for authors of backends
    cli, plot    faces                                    bench       how fast it is, against whom

Importing this package imports none of them but `errors`; a room is loaded when it is imported or first used.
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
    "__version__",
    "available_backends",
    "create_communicator",
    "load_case",
    "open_results",
    "simulate",
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
