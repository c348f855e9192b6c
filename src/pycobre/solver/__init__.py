"""One LP, solved the same way every time. Knows nothing of stages.

`api` is the contract; `create_engine(options)` gives an engine that fulfils it (and imports HiGHS then, not
before).
"""

from pycobre.solver.api import (
    BasisBlock,
    Block,
    Engine,
    Floors,
    LpModel,
    LpTemplate,
    PatchPlan,
    RowPool,
    SolverOptions,
    Target,
)

__all__ = [
    "BasisBlock",
    "Block",
    "Engine",
    "Floors",
    "LpModel",
    "LpTemplate",
    "PatchPlan",
    "RowPool",
    "SolverOptions",
    "Target",
    "create_engine",
]


def create_engine(options: SolverOptions | None = None) -> Engine:
    """An engine with its own threads and LPs; close it when done."""
    from pycobre.solver.engine import HighsEngine

    return HighsEngine(options if options is not None else SolverOptions())
