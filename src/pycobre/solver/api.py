"""The contract of this room: one LP, solved the same way every time.

Always minimise. An `LpModel` says what stays the same over many solves (the template, which columns carry the
incoming and the outgoing state, which places are patched); an `Engine` solves it for a block of incoming
states times a list of patch vectors:

    for every chain i (one incoming state x[i]):            one reset: base rows, starting basis, nothing else
        for every opening j, in the given order:            hot: each solve starts where the last one ended
            patch the LP with values[j], run, read

The result of a chain is a pure function of (model, options, x[i], values, pool, start of i): not of the other
chains, of what the engine solved before, of the number of threads, or of whether the compiled path is there.
Chains are independent; openings inside one are not (they share the simplex basis), so their order is an
input.

A pool is a growing table of rows `θ − slope_i · y ≥ intercept_i` over the outgoing state y and one column θ
(the `pool_head`). An LP that holds all of them is slow and only one or two bind, so by default (`lazy`) a
solve starts from a few and adds violated ones until none is left: the answer is that of the LP with every
active row. The LP without pool rows must be bounded (give θ a lower bound), or it is refused as unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32, I64, U8
from pycobre._util.frozen import frozen

if TYPE_CHECKING:
    from pycobre.solver.report import NumericalReport

__all__ = [
    "F64",
    "I8",
    "I32",
    "I64",
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
]

I8 = NDArray[np.int8]


def _vector(values: Any, dtype: Any) -> NDArray[Any]:
    return np.ascontiguousarray(values, dtype=dtype).reshape(-1)


@frozen(eq=False)
class LpTemplate:
    """One LP: minimise `offset + cost·z` with `col_lower ≤ z ≤ col_upper`, `row_lower ≤ A z ≤ row_upper`.

    `A` is column-wise (CSC): the entries of column j are `rows[starts[j]:starts[j+1]]` and `values[…]`, at
    most one per row. Missing bounds are ±inf. Names are optional, and all or none.
    """

    cost: F64
    col_lower: F64
    col_upper: F64
    row_lower: F64
    row_upper: F64
    starts: I32
    rows: I32
    values: F64
    offset: float = 0.0
    col_names: Sequence[str] = ()
    row_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("cost", "col_lower", "col_upper", "row_lower", "row_upper", "values"):
            object.__setattr__(self, name, _vector(getattr(self, name), np.float64))
        for name in ("starts", "rows"):
            object.__setattr__(self, name, _vector(getattr(self, name), np.int32))
        object.__setattr__(self, "offset", float(self.offset))
        object.__setattr__(self, "col_names", tuple(self.col_names))
        object.__setattr__(self, "row_names", tuple(self.row_names))

    @property
    def num_cols(self) -> int:
        return self.cost.size

    @property
    def num_rows(self) -> int:
        return self.row_lower.size

    def col_name(self, col: int) -> str:
        return self.col_names[col] if self.col_names else f"column {col}"

    def row_name(self, row: int) -> str:
        return self.row_names[row] if self.row_names else f"row {row}"


class Target(IntEnum):
    """What one number of a patch vector replaces."""

    RHS = 0  #: every finite side of `row` (an equation stays one); refused for rows with two different sides
    ROW_LOWER = 1
    ROW_UPPER = 2
    COL_LOWER = 3
    COL_UPPER = 4
    COST = 5  #: the objective coefficient of `col`
    COEFFICIENT = 6  #: the matrix entry at (`row`, `col`)
    OFFSET = 7  #: the objective's constant


@frozen(eq=False)
class PatchPlan:
    """The places that every solve patches; a solve supplies one value per place, in this order.

    `row` and `col` are read where the kind needs them and are −1 elsewhere. A place is named at most once.
    """

    kind: I8
    row: I32
    col: I32

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _vector(self.kind, np.int8))
        object.__setattr__(self, "row", _vector(self.row, np.int32))
        object.__setattr__(self, "col", _vector(self.col, np.int32))

    @classmethod
    def empty(cls) -> PatchPlan:
        return cls(np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int32))

    def __len__(self) -> int:
        return self.kind.size


@frozen(eq=False)
class Floors:
    """Corrections of right-hand sides that depend on the incoming state x, applied after the patches.

        shortfall_f = max(0, limit_f − (rhs[row_f] + Σ_e coef_e · x[input_e])),  e in [starts_f, starts_{f+1})
        rhs[effect_row_e] += effect_multiplier_e · shortfall[effect_floor_e]

    `rhs` of a row is its finite side, as patched; every shortfall is computed before any effect is applied.
    The gradient treats the corrections as constants. Rows named here must not be range rows.
    """

    limit: F64
    row: I32
    starts: I32
    input: I32  #: positions in `LpModel.inputs`
    coef: F64
    effect_floor: I32
    effect_row: I32
    effect_multiplier: F64

    def __post_init__(self) -> None:
        for name in ("limit", "coef", "effect_multiplier"):
            object.__setattr__(self, name, _vector(getattr(self, name), np.float64))
        for name in ("row", "starts", "input", "effect_floor", "effect_row"):
            object.__setattr__(self, name, _vector(getattr(self, name), np.int32))

    def __len__(self) -> int:
        return self.limit.size


@frozen(eq=False)
class LpModel:
    """A template with its moving parts named. Immutable; share one among engines and threads.

    `inputs` are columns that a solve fixes (both bounds) to the incoming state x: their reduced costs are the
    gradient of the optimal value in x. `outputs` are the columns whose values are the outgoing state; one
    may be an input as well. `pool_head` is the column θ of the pool rows, None where no pool is used.
    """

    template: LpTemplate
    inputs: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    outputs: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    plan: PatchPlan = field(default_factory=PatchPlan.empty)
    floors: Floors | None = None
    pool_head: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", _vector(self.inputs, np.int32))
        object.__setattr__(self, "outputs", _vector(self.outputs, np.int32))


@frozen(eq=False)
class RowPool:
    """A view of pool rows `θ − slope[i]·y ≥ intercept[i]` for i < `count` (and `active[i]`, where given).

    The arrays may live in shared memory and are only read. A slot keeps its meaning for the whole run:
    bases refer to pool rows by slot.
    """

    intercept: F64  #: [capacity]
    slope: F64  #: [capacity, number of outputs], C-contiguous
    count: int
    active: U8 | None = None  #: [capacity], 0 = as if the row were not there


@frozen(eq=False)
class BasisBlock:
    """The simplex bases of n chains as arrays, so that they slice, gather, travel and go to disk as they are.

    Status codes are those of HiGHS (0 lower, 1 basic, 2 upper, 3 zero, 4 nonbasic). Of the pool rows only the
    nonbasic (binding) ones are named: slots `pool_slots[pool_starts[i]:pool_starts[i+1]]` of chain i.
    `known[i]` is 0 where a chain has no basis and starts cold.
    """

    known: U8  #: [n]
    col_status: I8  #: [n, columns]
    row_status: I8  #: [n, rows of the template]
    pool_starts: I32  #: [n + 1]
    pool_slots: I32

    def __len__(self) -> int:
        return self.known.size

    @property
    def arrays(self) -> tuple[U8, I8, I8, I32, I32]:
        """The five arrays, in the order of the fields."""
        return self.known, self.col_status, self.row_status, self.pool_starts, self.pool_slots

    @cached_property
    def is_whole(self) -> bool:
        """Whether the starts rise from 0 to the number of slots; looked at once, for a basis serves many solves."""
        starts, slots = self.pool_starts, self.pool_slots
        if starts.size != len(self) + 1 or starts[0] != 0 or starts[-1] != slots.size:
            return False
        return not (starts[1:] < starts[:-1]).any() and not (slots < 0).any()

    def slots(self, chain: int) -> I32:
        return self.pool_slots[self.pool_starts[chain] : self.pool_starts[chain + 1]]

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
        np.cumsum(np.concatenate([np.diff(b.pool_starts) for b in blocks]), out=starts[1:])
        return cls(
            np.concatenate([b.known for b in blocks]),
            np.concatenate([b.col_status for b in blocks]),
            np.concatenate([b.row_status for b in blocks]),
            starts,
            np.concatenate([b.pool_slots for b in blocks]),
        )


@frozen()
class SolverOptions:
    """Everything besides the data that a result depends on; no option is a time."""

    threads: int = 1  #: changes no bit
    primal_tolerance: float = 1e-9
    dual_tolerance: float = 1e-9
    pool_tolerance: float = 1e-9  #: a pool row is violated beyond this, relative to max(1, |θ|)
    # Of the next two, ten times as many where HiGHS solves the LP.
    pool_rows_per_round: int = 3  #: the most violated rows added before the next run
    pool_seed_rows: int = 3  #: rows best at the chain's seed point, present from its first run
    iteration_limit: int = 1_000_000  #: simplex iterations of one run before the next step of the ladder
    tableau_entries: int = 220_000  #: rows × columns of LPs for the dense tableau
    scale: bool = True  #: scale the template once, by powers of two
    bundles: str | None = None  #: directory for the bundles of failed solves; None writes none
    native: bool | None = None  #: the compiled path: None = where it is there; the bits are the same


@frozen(eq=False)
class Block:
    """What a block of m chains × k openings gave; every LP in it is optimal, or the engine raised."""

    objective: F64  #: [m, k], the offset included
    gradient: F64  #: [m, k, inputs], of the objective in x
    output: F64  #: [m, k, outputs], projected into the columns' bounds
    head: F64  #: [m, k], θ (0 without a pool_head)
    iterations: I32  #: [m, k], simplex iterations
    rounds: I32  #: [m, k], runs beyond the first, after adding pool rows
    retries: I32  #: [m, k], steps of the ladder that were needed
    by_highs: U8  #: [m, k], 1 where HiGHS solved it, 0 where the tableau did
    basis: BasisBlock | None  #: after the FIRST opening of each chain, on request
    primal: F64 | None  #: [m, k, columns], on request
    col_dual: F64 | None  #: [m, k, columns]
    row_dual: F64 | None  #: [m, k, rows of the template]
    taken: U8 | None  #: [m], of a shared block: 1 where this engine solved the chain; other rows mean nothing


class Engine(Protocol):
    """Solves blocks of chains. Not shared between threads of the caller; close it, or use it as a context."""

    options: SolverOptions
    native: bool  #: whether the compiled path is in use

    def solve(
        self,
        model: LpModel,
        x: F64,
        values: F64,
        pool: RowPool | None = None,
        *,
        start: BasisBlock | None = None,
        seed: F64 | None = None,
        lazy: bool = True,
        want_basis: bool = False,
        want_primal: bool = False,
        dealt: I64 | None = None,
    ) -> Block:
        """Solve m chains (`x` [m, inputs]) of k openings each.

        `values` is [k, plan] for all chains alike, or [m, k, plan]. `start` holds one basis per chain, or
        one for all; without it chains start cold. `seed` [m, outputs] is a guess of each chain's outgoing
        state: the pool rows that are best there are in its LP from the start. With `lazy=False` all active
        rows are.

        `dealt` [1], 0 at first and in memory that several engines share, lets them share the chains of one block:
        each takes the next that none has begun until none is left, and says in `Block.taken` which it solved. All
        pass the same arguments. Only the compiled path can, and bases are not kept.

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
