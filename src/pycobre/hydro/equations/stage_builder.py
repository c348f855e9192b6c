"""A stage's LP while it is being written, and what it becomes.

Flows are in m³/s over a block of H_k hours, and τ_k = 0.0036·H_k turns them into hm³; powers are in MW, and
costs per hour are multiplied by H_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.hydro.equations.evaporation import LinearEvaporation
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.lp import Lp
from pycobre.hydro.equations.period_step import PeriodStep
from pycobre.hydro.equations.production import Production
from pycobre.hydro.equations.resolve import HM3_PER_M3S_HOUR, StageNumbers
from pycobre.hydro.model.case import Case
from pycobre.solver.api import LpTemplate

if TYPE_CHECKING:
    from pycobre.hydro.equations.anticipated import Anticipation
    from pycobre.hydro.equations.travel import Travel

__all__ = ["HM3_PER_M3S_HOUR", "StageLp", "StageLpBuilder", "StageModel"]

Positions = NDArray[np.intp]


@frozen(eq=False)
class StageModel:
    """What the equations need besides the resolved numbers."""

    production: tuple[Production, ...]  #: by plant
    evaporation: tuple[LinearEvaporation | None, ...]  #: by plant
    psi: F64  #: [L, N]
    period: PeriodStep | None  #: where lags belong to periods of several stages
    inflow_slack: bool
    mean_load: F64  #: [B]
    mean_availability: F64  #: [R], fraction of capacity
    travel: Travel | None = None  #: where some rivers take time
    anticipation: Anticipation | None = None
    position: int = 0  #: of the stage


@frozen(eq=False)
class StageLp:
    """The LP and where everything is in it.

    `columns` and `rows` are index arrays by name, mostly [entity, block]. Groups that exist only where a
    limit is active are flat, and `places[name]` gives the (entity, block) of each.
    """

    template: LpTemplate
    columns: dict[str, I32] = field(default_factory=dict)
    rows: dict[str, I32] = field(default_factory=dict)
    places: dict[str, I32] = field(default_factory=dict)
    constants: dict[str, F64] = field(default_factory=dict)  #: what a group of rows leaves to its bounds


class StageLpBuilder:
    """The LP so far, and the shapes that all equations share."""

    def __init__(self, case: Case, index: Index, numbers: StageNumbers, model: StageModel) -> None:
        self.case, self.index, self.numbers, self.model = case, index, numbers, model
        self.lp = Lp()
        self.blocks = [str(block.id) for block in numbers.stage.blocks]
        self.hours = numbers.hours
        self.tau = HM3_PER_M3S_HOUR * numbers.hours
        self.chronological = numbers.stage.chained
        self.order = model.psi.shape[0]
        self.columns: dict[str, I32] = {}
        self.rows: dict[str, I32] = {}
        self.places: dict[str, I32] = {}
        self.constants: dict[str, F64] = {}
        self.diverting = np.array([h for h, x in enumerate(case.hydros) if x.diversion], dtype=np.intp)
        self.generation: list[tuple[I32, float]] = []
        """Per (plant, bus) pair: columns by block and the factor that together are its generation."""

    def finish(self) -> StageLp:
        return StageLp(self.lp.template(), self.columns, self.rows, self.places, self.constants)

    def storage_ends(self, h: int) -> tuple[I32, I32]:
        """Columns of the storage at the start and at the end of every block, as head and surface see them."""
        within = self.columns["storage_by_block"][h]
        start = self.columns["storage_in"][h]
        if self.chronological:
            return np.concatenate([[start], within[:-1]]).astype(np.int32), within
        blocks = len(self.blocks)
        return np.repeat(start, blocks), np.repeat(within[-1], blocks)

    def soft(
        self, name: str, names: Sequence[str], limit: F64, active: NDArray[np.bool_], cost: F64, sign: int
    ) -> I32:
        """Rows `… + slack ≥ limit` (sign 1) or `… − slack ≤ limit` (sign −1) where `active` [entity, block].

        `cost` is per entity and hour. Returns the rows as [entity, block], −1 where there is none.
        """
        entities, blocks = np.nonzero(active)
        places = list(zip(entities.tolist(), blocks.tolist(), strict=True))
        labels = [f"{names[e]},{self.blocks[k]}" for e, k in places]
        lower, upper = (limit[active], np.inf) if sign > 0 else (-np.inf, limit[active])
        rows = self.lp.rows(name, [labels], lower, upper)
        slack = self.lp.columns(f"{name}_slack", [labels], 0.0, np.inf, cost[entities] * self.hours[blocks])
        self.lp.add(rows, slack, float(sign))
        self.columns[name] = slack
        self.places[name] = np.array(places, dtype=np.int32).reshape(-1, 2)
        where = np.full(active.shape, -1, dtype=np.int32)
        where[entities, blocks] = rows
        return where

    def add_where(self, rows: I32, columns: I32, values: ArrayLike) -> None:
        """Add entries at the rows that exist (not −1); the three have one shape."""
        there = rows >= 0
        self.lp.add(rows[there], columns[there], np.broadcast_to(values, rows.shape)[there])
