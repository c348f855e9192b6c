"""One LP, solved the same way every time. Knows nothing of stages.

    api          the contract: SolveCall, Block, BasisBlock, CutView, Engine
    model        what stays the same: LpTemplate, LpModel, PatchPlan, RhsCorrections
    options      SolverOptions, checked
    engine       checks a call once, shares its chains among threads, reports failures
    job          one call in canonical form and the block it fills
    check        what can be known to be wrong with an LP before it is solved
    prepare      a model checked, scaled, its patches sorted into one list per kind
    scale        scaling by powers of two
    definitions  columns that equations define, which the basis kernel does without
    native       the compiled path, `pycobre._native.lp`
    reference    the same in Python: the reference implementation, bit by bit
    highs        options and statuses of HiGHS as this package uses it
    highspy_lp   LPs to and from HiGHS through highspy
    patch        one patch vector written into an LP, as a new LP
    explicit     one solve as a plain LP, for explanations and other programs
    marginal     what one more unit of a row changes, and what it costs
    recovery     what is tried when a run does not end optimal
    failure      from a failed run to a message a person can act on
    bundle       a failed solve in one file
    report       numerical conditioning report

`create_engine(options)` gives an engine (and imports HiGHS then, not before).
"""

from pycobre.solver.api import (
    BasisBlock,
    Block,
    CutView,
    Engine,
    LpModel,
    LpTemplate,
    PatchPlan,
    RhsCorrections,
    SolveCall,
    SolverOptions,
    Target,
)
from pycobre.solver.highspy_lp import solve_lp, to_highs
from pycobre.solver.patch import patched

__all__ = [
    "BasisBlock",
    "Block",
    "CutView",
    "Engine",
    "LpModel",
    "LpTemplate",
    "PatchPlan",
    "RhsCorrections",
    "SolveCall",
    "SolverOptions",
    "Target",
    "create_engine",
    "patched",
    "solve_lp",
    "to_highs",
]


def create_engine(options: SolverOptions | None = None) -> Engine:
    """An engine with its own threads and LPs; close it when done."""
    from pycobre.solver.engine import HighsEngine

    return HighsEngine(options if options is not None else SolverOptions())
