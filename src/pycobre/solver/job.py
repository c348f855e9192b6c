"""One `Engine.solve` call in canonical form: arguments checked once, results allocated once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.solver.api import (
    F64,
    I8,
    I32,
    I64,
    BasisBlock,
    Block,
    LpModel,
    LpTemplate,
    RowPool,
    SolverOptions,
)
from pycobre.solver.highs import Status
from pycobre.solver.prepare import Prepared

__all__ = ["BasisParts", "ChainFailure", "Job", "make_job"]

ROWS_BY_HIGHS = 10
"""Pool rows in an LP of HiGHS for each in a tableau, at the start and from round to round."""


@frozen(eq=False)
class Job:
    """The arguments of one `Engine.solve` call, checked and in canonical form, and the block it fills."""

    prepared: Prepared
    options: SolverOptions
    x: F64  #: [m, inputs], projected into the columns' bounds
    values: F64  #: [1 or m, k, plan]
    pool: RowPool | None
    start: BasisBlock | None
    seed: F64 | None
    lazy: bool
    block: Block
    basis: BasisParts | None
    dealt: I64 | None

    @cached_property
    def fits_tableau(self) -> bool:
        """Whether the LP without pool rows is one for the tableau, which cannot change its coefficients."""
        entries = self.prepared.num_row * self.prepared.active.size
        return not self.prepared.coef_row.size and entries <= self.options.tableau_entries

    @cached_property
    def pool_rows(self) -> tuple[int, int]:
        """How many pool rows join at once, and how many are there from the seed point on.

        Without the tableau another run costs more than a few rows too many, which hardly make the LP larger.
        """
        options, more = self.options, 1 if self.fits_tableau else ROWS_BY_HIGHS
        return more * options.pool_rows_per_round, more * options.pool_seed_rows


@dataclass(eq=False)
class BasisParts:
    """A `BasisBlock` in the making: slots by the first chain of each piece, as threads fill them."""

    col_status: I8
    row_status: I8
    counts: I32  #: number of slots of each chain
    owner: I32  #: number of the compiled session that solved each chain
    slots: dict[int, I32]  #: first chain → slots of the chains up to the next piece

    @classmethod
    def empty(cls, m: int, template: LpTemplate) -> BasisParts:
        return cls(
            np.empty((m, template.num_cols), np.int8),
            np.empty((m, template.num_rows), np.int8),
            np.zeros(m, np.int32),
            np.zeros(m, np.int32),
            {},
        )

    @property
    def arrays(self) -> tuple[I8, I8, I32, I32]:
        """In the order in which the compiled path takes them."""
        return self.col_status, self.row_status, self.counts, self.owner

    def finish(self) -> BasisBlock:
        starts = np.zeros(self.counts.size + 1, np.int32)
        self.counts.cumsum(out=starts[1:])
        pieces = [self.slots[first] for first in sorted(self.slots)] or [np.empty(0, np.int32)]
        slots = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        known = np.ones(self.counts.size, np.uint8)
        found = BasisBlock(known, self.col_status, self.row_status, starts, slots)
        vars(found)["is_whole"] = True  # by the way it was made: what uses it need not look
        return found


@frozen()
class ChainFailure:
    """Where a block stopped: this LP could not be solved. `present` are the pool rows it held."""

    chain: int
    opening: int
    status: Status
    steps: tuple[str, ...]
    present: I32


def make_job(
    prepared: Prepared,
    options: SolverOptions,
    x: F64,
    values: F64,
    pool: RowPool | None,
    *,
    start: BasisBlock | None,
    seed: F64 | None,
    lazy: bool,
    want_basis: bool,
    want_primal: bool,
    dealt: I64 | None,
) -> Job:
    """Check shapes and numbers, project x into its columns' bounds, and allocate the block."""
    model = prepared.model
    template, inputs, outputs = model.template, model.inputs.size, model.outputs.size
    x = np.ascontiguousarray(x, np.float64)
    values = np.ascontiguousarray(values, np.float64)
    if x.ndim != 2 or x.shape[1] != inputs:
        raise ProblemError(f"incoming states: expected shape (chains, {inputs}), got {x.shape}.")
    m = x.shape[0]
    if values.ndim == 2:
        values = values[None]
    _check_values(x, values, len(model.plan))
    if pool is not None:
        _check_pool(model, pool)
    if start is not None:
        _check_start(template, start, m)
    if seed is not None:
        seed = np.ascontiguousarray(seed, np.float64)
        if seed.shape != (m, outputs):
            raise ProblemError(f"seed points: expected shape {(m, outputs)}, got {seed.shape}.")
    k = values.shape[1]
    full = (m, k, template.num_cols)
    numbers, counts = np.empty((2, m, k)), np.empty((3, m, k), np.int32)
    block = Block(
        objective=numbers[0],
        gradient=np.empty((m, k, inputs)),
        output=np.empty((m, k, outputs)),
        head=numbers[1],
        iterations=counts[0],
        rounds=counts[1],
        retries=counts[2],
        by_highs=np.empty((m, k), np.uint8),
        basis=None,
        primal=np.empty(full) if want_primal else None,
        col_dual=np.empty(full) if want_primal else None,
        row_dual=np.empty((m, k, template.num_rows)) if want_primal else None,
        taken=None if dealt is None else np.zeros(m, np.uint8),
    )
    basis = BasisParts.empty(m, template) if want_basis else None
    return Job(prepared, options, prepared.project(x), values, pool, start, seed, lazy, block, basis, dealt)


def _check_values(x: F64, values: F64, plan: int) -> None:
    m = x.shape[0]
    if values.ndim != 3 or values.shape[0] not in (1, m) or values.shape[2] != plan:
        raise ProblemError(
            f"patch values: expected shape ([1 or {m},] openings, {plan}), got {values.shape}."
        )
    # One pass each: a sum is finite only where all terms are, a minimum is NaN where one term is.
    lowest = np.minimum.reduce(values, axis=None, initial=np.inf)
    if math.isnan(lowest) or not math.isfinite(np.add.reduce(x, axis=None)):
        raise ProblemError(
            "incoming states and patch values: expected numbers, got NaN or an infinite state."
        )


def _check_pool(model: LpModel, pool: RowPool) -> None:
    outputs = model.outputs.size
    if model.pool_head is None:
        raise ProblemError("pool: expected a model with a pool_head, got one without.")
    fits = pool.slope.ndim == 2 and pool.slope.shape == (pool.intercept.size, outputs)
    if not fits or not 0 <= pool.count <= pool.intercept.size:
        raise ProblemError(
            f"pool: expected slopes of shape ({pool.intercept.size}, {outputs}) and a count within, "
            f"got {pool.slope.shape} and {pool.count}."
        )
    for array in (pool.slope, pool.intercept):
        if not array.flags.c_contiguous or array.dtype != np.float64:
            raise ProblemError(
                f"pool: expected C-contiguous arrays of float64, got {array.dtype} with strides {array.strides}."
            )


def _check_start(template: LpTemplate, start: BasisBlock, m: int) -> None:
    shape = (template.num_cols, template.num_rows)
    if len(start) not in (1, m) or (start.col_status.shape[1], start.row_status.shape[1]) != shape:
        raise ProblemError(
            f"starting bases: expected 1 or {m} of {shape} columns and rows, got {len(start)}."
        )
    if not start.is_whole:
        raise ProblemError("starting bases: expected rising starts of pool slots, got something else.")
