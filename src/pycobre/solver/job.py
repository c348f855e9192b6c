"""One `Engine.solve` call in canonical form: arguments checked once, results allocated once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.solver.api import (
    F64,
    I8,
    I32,
    BasisBlock,
    Block,
    CutView,
    LpModel,
    LpTemplate,
    SolveCall,
    SolverOptions,
)
from pycobre.solver.highs import Status
from pycobre.solver.prepare import Prepared

__all__ = ["BasisParts", "ChainFailure", "Job", "make_job"]

CUTS_BY_HIGHS = 10
"""Cuts in an LP of HiGHS for each in a tableau, at the start and from round to round."""


@frozen(eq=False)
class Job:
    """A `SolveCall` in canonical form (checked, x projected, values in three dimensions) and the block it fills."""

    prepared: Prepared
    options: SolverOptions
    call: SolveCall
    block: Block  #: without its basis
    basis: BasisParts | None

    @cached_property
    def fits_tableau(self) -> bool:
        """Whether the LP without cuts is one for the tableau, which cannot change its coefficients."""
        entries = self.prepared.num_row * self.prepared.active.size
        return not self.prepared.coef_row.size and entries <= self.options.tableau_entries

    @cached_property
    def fits_kernel(self) -> bool:
        """Whether the LP, where it does not fit the tableau, is one for the basis kernel."""
        return not self.prepared.coef_row.size and self.prepared.num_row <= self.options.kernel_rows

    @cached_property
    def cut_counts(self) -> tuple[int, int]:
        """How many cuts join at once, and how many are there from the trial point on.

        Without the tableau another run costs more than a few cuts too many, which hardly make the LP larger.
        """
        options = self.options
        more = 1 if self.fits_tableau or self.fits_kernel else CUTS_BY_HIGHS
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
        return BasisBlock(known, self.col_status, self.row_status, starts, slots)


@frozen()
class ChainFailure:
    """Where a block stopped: this LP could not be solved. `present` are the cuts it held."""

    chain: int
    opening: int
    status: Status
    steps: tuple[str, ...]
    present: I32


def make_job(prepared: Prepared, options: SolverOptions, call: SolveCall) -> Job:
    """Check shapes and numbers, project x into its columns' bounds, and allocate the block."""
    model = prepared.model
    template, inputs, outputs = model.template, model.inputs.size, model.outputs.size
    x = np.ascontiguousarray(call.x, np.float64)
    values = np.ascontiguousarray(call.values, np.float64)
    if x.ndim != 2 or x.shape[1] != inputs:
        raise ProblemError(f"incoming states: expected shape (chains, {inputs}), got {x.shape}.")
    m = x.shape[0]
    if values.ndim == 2:
        values = values[None]
    _check_values(x, values, len(model.plan))
    if call.cuts is not None:
        _check_cuts(model, call.cuts)
    if call.start is not None:
        _check_start(template, call.start, m)
    trial_point = call.trial_point
    if trial_point is not None:
        trial_point = np.ascontiguousarray(trial_point, np.float64)
        if trial_point.shape != (m, outputs):
            raise ProblemError(f"trial points: expected shape {(m, outputs)}, got {trial_point.shape}.")
    return Job(
        prepared=prepared,
        options=options,
        call=replace(call, x=prepared.project(x), values=values, trial_point=trial_point),
        block=_empty_block(call, template, (m, values.shape[1])),
        basis=BasisParts.empty(m, template) if call.want_basis else None,
    )


def _empty_block(call: SolveCall, template: LpTemplate, shape: tuple[int, int]) -> Block:
    model, full = call.model, (*shape, template.num_cols)
    numbers, counts = np.empty((2, *shape)), np.empty((4, *shape), np.int32)
    return Block(
        objective=numbers[0],
        gradient=np.empty((*shape, model.inputs.size)),
        output=np.empty((*shape, model.outputs.size)),
        theta=numbers[1],
        iterations=counts[0],
        rounds=counts[1],
        retries=counts[2],
        by_highs=np.empty(shape, np.uint8),
        rejected=counts[3],
        certified=np.empty(shape, np.uint8),
        basis=None,
        primal=np.empty(full) if call.want_primal else None,
        col_dual=np.empty(full) if call.want_primal else None,
        row_dual=np.empty((*shape, template.num_rows)) if call.want_primal else None,
        solved_here=None if call.work_counter is None else np.zeros(shape[0], np.uint8),
    )


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


def _check_cuts(model: LpModel, cuts: CutView) -> None:
    outputs = model.outputs.size
    if model.theta_column is None:
        raise ProblemError("cuts: expected a model with a theta_column, got one without.")
    fits = cuts.slope.ndim == 2 and cuts.slope.shape == (cuts.intercept.size, outputs)
    if not fits or not 0 <= cuts.count <= cuts.intercept.size:
        raise ProblemError(
            f"cuts: expected slopes of shape ({cuts.intercept.size}, {outputs}) and a count within, "
            f"got {cuts.slope.shape} and {cuts.count}."
        )
    for array in (cuts.slope, cuts.intercept):
        if not array.flags.c_contiguous or array.dtype != np.float64:
            raise ProblemError(
                f"cuts: expected C-contiguous arrays of float64, got {array.dtype} with strides {array.strides}."
            )


def _check_start(template: LpTemplate, start: BasisBlock, m: int) -> None:
    shape = (template.num_cols, template.num_rows)
    if len(start) not in (1, m) or (start.col_status.shape[1], start.row_status.shape[1]) != shape:
        raise ProblemError(
            f"starting bases: expected 1 or {m} of {shape} columns and rows, got {len(start)}."
        )
    if not start.is_whole:
        raise ProblemError("starting bases: expected rising starts of cut slots, got something else.")
