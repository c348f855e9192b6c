"""The contract of this package: one LP, solved the same way every time.

Always minimise. An `LpModel` says what stays the same over many solves (the template, which columns carry the
incoming and the outgoing state, which places are patched); an `Engine` solves it for a block of incoming
states times a list of patch vectors, the `SolveCall`:

    for every chain i (one incoming state x[i]):            one reset: base rows, starting basis, nothing else
        for every opening j, in the given order:            hot: each solve starts where the last one ended
            patch the LP with values[j], run, read

The result of a chain is a pure function of (model, options, x[i], values, cuts, start of i): not of the other
chains, of what the engine solved before, of the number of threads, or of whether the compiled path is there.
Chains are independent; openings inside one are not (they share the simplex basis), so their order is an
input.

Cuts are rows `θ − slope_i · y ≥ intercept_i` over the outgoing state y and one column θ (the `theta_column`).
They come from a cut pool that grows. An LP that holds all of them is slow and only one or two bind, so by
default (`lazy`) a solve starts from a few and adds violated ones until none is left: the answer is that of
the LP with every active cut. The LP without cuts must be bounded (give θ a lower bound), or it is refused as
unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, I64, U8
from pycobre._util.frozen import frozen
from pycobre.solver.model import (
    I8,
    LpModel,
    LpTemplate,
    PatchPlan,
    RhsCorrections,
    Target,
)
from pycobre.solver.options import SolverOptions

if TYPE_CHECKING:
    from pycobre.solver.report import NumericalReport

__all__ = [
    "F64",
    "I8",
    "I32",
    "I64",
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
]


@frozen(eq=False)
class CutView:
    """The cuts `θ − slope[i]·y ≥ intercept[i]` for i < `count` (and `active[i]`, where given), in a cut pool.

    The arrays may live in shared memory and are only read. A slot keeps its meaning for the whole run:
    bases refer to cuts by slot.
    """

    intercept: F64  #: [capacity]
    slope: F64  #: [capacity, number of outputs], C-contiguous
    count: int
    active: U8 | None = None  #: [capacity], 0 = as if the cut were not there


@frozen(eq=False)
class BasisBlock:
    """The simplex bases of n chains as arrays, so that they slice, gather, travel and go to disk as they are.

    Status codes are those of HiGHS (0 lower, 1 basic, 2 upper, 3 zero, 4 nonbasic). Of the cuts only the
    nonbasic (binding) ones are named: slots `cut_slots[cut_starts[i]:cut_starts[i+1]]` of chain i.
    `known[i]` is 0 where a chain has no basis and starts cold.
    """

    known: U8  #: [n]
    col_status: I8  #: [n, columns]
    row_status: I8  #: [n, rows of the template]
    cut_starts: I32  #: [n + 1]
    cut_slots: I32

    def __len__(self) -> int:
        return self.known.size

    @property
    def arrays(self) -> tuple[U8, I8, I8, I32, I32]:
        """The five arrays, in the order of the fields."""
        return self.known, self.col_status, self.row_status, self.cut_starts, self.cut_slots

    @cached_property
    def is_whole(self) -> bool:
        """Whether the starts rise from 0 to the number of slots; looked at once, for a basis serves many solves."""
        starts, slots = self.cut_starts, self.cut_slots
        if starts.size != len(self) + 1 or starts[0] != 0 or starts[-1] != slots.size:
            return False
        return not (starts[1:] < starts[:-1]).any() and not (slots < 0).any()

    def slots(self, chain: int) -> I32:
        return self.cut_slots[self.cut_starts[chain] : self.cut_starts[chain + 1]]

    def take(self, chains: Sequence[int] | NDArray[np.integer]) -> BasisBlock:
        """The bases of `chains`, in that order."""
        index = np.asarray(chains, np.int64).reshape(-1)
        slots = [self.slots(int(i)) for i in index]
        starts = np.zeros(index.size + 1, np.int32)
        np.cumsum([s.size for s in slots], out=starts[1:])
        return BasisBlock(
            self.known[index],
            self.col_status[index],
            self.row_status[index],
            starts,
            np.concatenate(slots) if slots else np.empty(0, np.int32),
        )

    @classmethod
    def join(cls, blocks: Sequence[BasisBlock]) -> BasisBlock:
        """All chains of `blocks` (of the same template), one block after the other; at least one block."""
        starts = np.zeros(sum(len(b) for b in blocks) + 1, np.int32)
        np.cumsum(np.concatenate([np.diff(b.cut_starts) for b in blocks]), out=starts[1:])
        return cls(
            np.concatenate([b.known for b in blocks]),
            np.concatenate([b.col_status for b in blocks]),
            np.concatenate([b.row_status for b in blocks]),
            starts,
            np.concatenate([b.cut_slots for b in blocks]),
        )


@frozen(eq=False)
class SolveCall:
    """m chains (`x` [m, inputs]) of k openings each, and what their solves start from.

    `values` is [k, plan] for all chains alike, or [m, k, plan]. `start` holds one basis per chain, or one for
    all; without it chains start cold. `trial_point` [m, outputs] is a guess of each chain's outgoing state:
    the cuts that are best there are in its LP from the start. With `lazy=False` all active cuts are.

    `work_counter` [1], 0 at first and in memory that several engines share, lets them share the chains of one
    block: each takes the next that none has begun until none is left, and says in `Block.solved_here` which it
    solved. All pass the same arguments. Only the compiled path can, and bases are not kept.
    """

    model: LpModel
    x: F64
    values: F64
    cuts: CutView | None = None
    start: BasisBlock | None = None
    trial_point: F64 | None = None
    lazy: bool = True
    want_basis: bool = False
    want_primal: bool = False
    work_counter: I64 | None = None


@frozen(eq=False)
class Block:
    """What a block of m chains × k openings gave; every LP in it is optimal, or the engine raised."""

    objective: F64  #: [m, k], the offset included
    gradient: F64  #: [m, k, inputs], of the objective in x
    output: F64  #: [m, k, outputs], projected into the columns' bounds
    theta: F64  #: [m, k], 0 without a theta_column
    iterations: I32  #: [m, k], simplex iterations
    rounds: I32  #: [m, k], runs beyond the first, after adding cuts
    retries: I32  #: [m, k], recovery steps that were needed
    by_highs: U8  #: [m, k], 1 where HiGHS solved it, 0 where the tableau or the kernel did
    rejected: I32  #: [m, k], answers of HiGHS that failed the certificate and were solved again, cold
    certified: U8  #: [m, k], 0 where the last attempt failed the certificate too and was taken as it is
    basis: BasisBlock | None  #: after the FIRST opening of each chain, on request
    primal: F64 | None  #: [m, k, columns], on request
    col_dual: F64 | None  #: [m, k, columns]
    row_dual: F64 | None  #: [m, k, rows of the template]
    solved_here: (
        U8 | None
    )  #: [m], of a shared block: 1 where this engine solved the chain; other rows mean nothing


class Engine(Protocol):
    """Solves blocks of chains. Not shared between threads of the caller; close it, or use it as a context."""

    options: SolverOptions
    native: bool  #: whether the compiled path is in use

    def solve(self, call: SolveCall) -> Block:
        """Solve every LP of the call.

        On error: `SolverError` of the lowest failing chain and its first failing opening (`.chain`,
        `.opening`), with the bundle of that solve; the engine stays usable.
        """
        ...

    def report(self, model: LpModel) -> NumericalReport:
        """Look at a model's numbers as they will be solved; `ProblemError` where the model is not sound at all."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Engine: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
