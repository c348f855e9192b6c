"""From standard normals to the numbers that an opening writes into a stage's LP.

The noise vector has one entry per hydro, then per bus whose load deviates in any stage, then per source with
statistics, each by id. It is drawn, and given in files, with the hydros in the order of their
`operational_start_date` (then by id), as Cobre has them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.resolve import StageNumbers
from pycobre.hydro.equations.rivers import receiver
from pycobre.hydro.equations.stage_builder import HM3_PER_M3S_HOUR, StageLp
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.scenarios import Correlation
from pycobre.solver.api import PatchPlan, RhsCorrections, Target
from pycobre.stochastic.correlation import CorrelatedGroup, spectral_factor
from pycobre.stochastic.par import Par

__all__ = ["NoiseLayout", "StageNoise", "profile_name", "stage_noise"]


class NoiseLayout:
    """Which entities are random, and how they are correlated."""

    def __init__(self, case: Case, index: Index) -> None:
        load, source = case.load_stats, case.source_stats
        self.hydros = len(case.hydros)
        self.buses = sorted({index.bus[b] for b in load.bus_id[load.std_mw > 0.0].tolist()})
        self.sources = sorted({index.source[r] for r in source.ncs_id.tolist()})
        self.dimension = self.hydros + len(self.buses) + len(self.sources)
        self.load_slice = slice(self.hydros, self.hydros + len(self.buses))
        self.source_slice = slice(self.hydros + len(self.buses), self.dimension)
        dates = [(hydro.operational_start_date, hydro.id) for hydro in case.hydros]
        order = sorted(range(self.hydros), key=dates.__getitem__)
        self._drawn = np.arange(self.dimension)  #: the place in a drawn vector of every entry
        self._drawn[order] = np.arange(self.hydros)
        self._place = {("inflow", id_): int(self._drawn[h]) for id_, h in index.hydro.items()}
        self._place |= {("load", case.buses[b].id): self.hydros + i for i, b in enumerate(self.buses)}
        first = self.hydros + len(self.buses)
        self._place |= {
            ("ncs", case.non_controllable_sources[r].id): first + i for i, r in enumerate(self.sources)
        }
        self._correlation = case.correlation
        self._profiles = self._factor()

    def by_id(self, drawn: F64) -> F64:
        """Noise vectors as they were drawn, with their hydros put in order by id."""
        ordered: F64 = drawn[..., self._drawn]
        return ordered

    def groups(self, stage: Stage) -> tuple[CorrelatedGroup, ...]:
        """The correlation of one stage: its scheduled profile, else "default", else the only one."""
        return () if self._correlation is None else self._profiles[profile_name(self._correlation, stage)]

    def _factor(self) -> dict[str, tuple[CorrelatedGroup, ...]]:
        """A group with an entity that is not random here mixes nothing."""
        profiles = {}
        for name, profile in (self._correlation.profiles if self._correlation else {}).items():
            groups = []
            for group in profile.correlation_groups:
                places = [self._place.get((e.type, e.id)) for e in group.entities]
                if places and None not in places:
                    positions = np.array(places, dtype=np.intp)
                    groups.append(CorrelatedGroup(positions, spectral_factor(np.array(group.matrix))))
            profiles[name] = tuple(groups)
        return profiles


def profile_name(correlation: Correlation, stage: Stage) -> str:
    """The profile that holds in a stage."""
    for entry in correlation.schedule or ():
        if entry.stage_id == stage.id:
            return entry.profile_name
    return "default" if "default" in correlation.profiles else next(iter(correlation.profiles))


@frozen(eq=False)
class StageNoise:
    """The places of one stage's LP that noise writes to, and how."""

    plan: PatchPlan
    rhs_corrections: RhsCorrections | None
    base: F64  #: [N]
    sigma: F64  #: [N]
    scale: F64  #: [N] or [N, K]: inflow to right-hand side
    shift: F64  #: the same shape, added
    written: NDArray[np.bool_]  #: the same shape: plants that exist
    passed: tuple[tuple[int, int | None], ...]  #: (from, to): inflow of plants that do not exist
    clip: bool  #: negative inflow becomes none, where nothing but noise decides it
    load: F64  #: [buses, 2]: mean, deviation
    load_factor: F64  #: [buses, K]
    source: F64  #: [sources, 2]
    source_scale: F64  #: [sources, K]
    source_lower: NDArray[np.intp]  #: sources that must run

    def values(self, noise: F64) -> F64:
        """Patch vectors [..., places] of noise vectors [..., dimension]."""
        n, b = self.base.size, self.load.shape[0]
        return self.patch(
            self.base + self.sigma * noise[..., :n],
            self.load[:, 0] + self.load[:, 1] * noise[..., n : n + b],
            self.source[:, 0] + self.source[:, 1] * noise[..., n + b :],
        )

    def patch(self, inflow: F64, load: F64, availability: F64) -> F64:
        """Patch vectors of inflow (what lags do not explain of it), mean load and availability.

        Load is not negative, availability between 0 and 1.
        """
        lead = inflow.shape[:-1]
        inflow = inflow.copy()
        if self.clip:
            inflow = np.where(self.sigma > 0.0, np.maximum(inflow, 0.0), inflow)
        for source, to in self.passed:
            if to is not None:
                inflow[..., to] += inflow[..., source]
        water = (self.scale * inflow.reshape(*inflow.shape, *[1] * (self.scale.ndim - 1)) + self.shift)[
            ..., self.written
        ]
        demand = np.maximum(0.0, load)[..., None] * self.load_factor
        most = np.clip(availability, 0.0, 1.0)[..., None] * self.source_scale
        parts = [water, demand, most, most[..., self.source_lower, :]]
        return np.concatenate([part.reshape(*lead, -1) for part in parts], axis=-1)


def stage_noise(
    case: Case, index: Index, numbers: StageNumbers, layout: NoiseLayout, lp: StageLp, par: Par, t: int
) -> StageNoise:
    """Where and how the noise of stage `t` enters its LP."""
    stage, exists = numbers.stage, numbers.hydro.exists
    method = case.config.modeling.inflow_non_negativity.method
    truncate = method in ("truncation", "truncation_with_penalty")
    if par.order:
        rows = lp.rows["inflow_definition"]
        scale, shift, written = np.ones(rows.size), np.zeros(rows.size), np.ones(rows.size, dtype=bool)
        passed: tuple[tuple[int, int | None], ...] = ()
    else:
        rows = lp.rows["water_balance"]
        tau = np.broadcast_to(HM3_PER_M3S_HOUR * numbers.hours, rows.shape)
        if np.array_equal(rows[:, 0], rows[:, -1]):
            rows, tau = rows[:, 0], tau.sum(axis=1)
        drawn = numbers.hydro.withdrawal.reshape(-1, *[1] * (rows.ndim - 1))
        scale, shift = tau, -tau * drawn
        written = np.broadcast_to(exists.reshape(drawn.shape), rows.shape)
        passed = tuple(
            (h, receiver(case, index, exists, case.hydros[h].id)) for h in np.flatnonzero(~exists).tolist()
        )
    water = rows[written]
    load_rows = lp.rows["load_balance"][layout.buses]
    source_cols = lp.columns["source"][layout.sources]
    must = [i for i, r in enumerate(layout.sources) if not case.non_controllable_sources[r].allow_curtailment]
    load = {(b, t_): (m, s) for b, t_, m, s in _rows(case.load_stats, "bus_id", "mean_mw", "std_mw")}
    source = {(r, t_): (m, s) for r, t_, m, s in _rows(case.source_stats, "ncs_id", "mean", "std")}
    kinds = [
        (Target.RHS, water, None),
        (Target.RHS, load_rows, None),
        (Target.COL_UPPER, None, source_cols),
        (Target.COL_LOWER, None, source_cols[must]),
    ]
    return StageNoise(
        plan=_plan(kinds),
        rhs_corrections=_rhs_corrections(par, t, rows) if truncate and par.order else None,
        base=par.base[t],
        sigma=par.sigma[t],
        scale=scale,
        shift=shift,
        written=written,
        passed=passed,
        clip=truncate and not par.order,
        load=_pairs([load.get((case.buses[b].id, stage.id), (0.0, 0.0)) for b in layout.buses]),
        load_factor=numbers.load_factor[layout.buses],
        source=_pairs(
            [source.get((case.non_controllable_sources[r].id, stage.id), (1.0, 0.0)) for r in layout.sources]
        ),
        source_scale=(numbers.source_capacity[:, None] * numbers.source_factor)[layout.sources],
        source_lower=np.array(must, dtype=np.intp),
    )


def _rows(table: object, *names: str) -> list[tuple[int, int, float, float]]:
    key, mean, std = (getattr(table, name).tolist() for name in names)
    stage = getattr(table, "stage_id").tolist()  # noqa: B009 (tables are of several types)
    return list(zip(key, stage, mean, std, strict=True))


def _pairs(values: list[tuple[float, float]]) -> F64:
    return np.array(values, dtype=np.float64).reshape(-1, 2)


def _plan(kinds: list[tuple[Target, I32 | None, I32 | None]]) -> PatchPlan:
    kind, row, col = [], [], []
    for target, rows, cols in kinds:
        size = rows.size if rows is not None else cols.size if cols is not None else 0
        kind.append(np.full(size, int(target), dtype=np.int8))
        row.append(np.full(size, -1, dtype=np.int32) if rows is None else rows.reshape(-1))
        col.append(np.full(size, -1, dtype=np.int32) if cols is None else cols.reshape(-1))
    return PatchPlan(np.concatenate(kind), np.concatenate(row), np.concatenate(col))


def _rhs_corrections(par: Par, t: int, rows: I32) -> RhsCorrections:
    """Inflow is at least 0 where noise decides part of it: base + psi·lags + sigma·η, corrected upwards."""
    series = np.flatnonzero(par.sigma[t] > 0.0)
    lags, hydros = par.order, par.base.shape[1]
    inputs = hydros + np.arange(lags)[None, :] * hydros + series[:, None]
    return RhsCorrections(
        limit=np.zeros(series.size),
        row=rows[series],
        starts=(np.arange(series.size + 1) * lags).astype(np.int32),
        input=inputs.reshape(-1),
        coef=par.psi[t][:, series].T.reshape(-1),
        effect_floor=np.arange(series.size, dtype=np.int32),
        effect_row=rows[series],
        effect_multiplier=np.ones(series.size),
    )
