"""Shipped test kits for authors of backends and problems. Nothing inside pycobre imports this package.

    CommunicatorTests, SharedMemoryTests   the conformance suites: subclass, name the backend, done
    run_ranks, RankGroup                   run a function on n real processes, with a deadline and leak checks
    Starter                                how the ranks of a backend of your own come to be
    ThreadBackend                          the reference backend: ranks are threads of one process
    pycobre.testing.problems               multistage problems whose optimal values are known
    pycobre.testing.random_problems        random ones that always have a solution, with a Hypothesis strategy

Modules of the suites:

    communicator, shared_memory            the two suites      suite      what they have in common
    collectives, failures, misuse, regions the bodies that run on the ranks
    programs, values                       random programs of collectives; inputs, and comparison to the bit
    ranks, starters, worker                starting processes, what each of them runs
    threads, leaks                         the reference backend; what a process holds of the system
    problems, own_problems                 problems with known values, of the literature and of our own
    random_problems                        random ones

The suites need the `test` extra (pytest, hypothesis) and Linux; they are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from pycobre.testing.ranks import RankGroup, run_ranks
from pycobre.testing.starters import Starter
from pycobre.testing.threads import ThreadBackend

_LAZY = {
    "CommunicatorTests": "pycobre.testing.communicator",
    "SharedMemoryTests": "pycobre.testing.shared_memory",
}

__all__ = ["CommunicatorTests", "RankGroup", "SharedMemoryTests", "Starter", "ThreadBackend", "run_ranks"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
