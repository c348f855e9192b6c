"""The rivers of a synthetic system and their plants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre.hydro.examples.draw import Draw
from pycobre.hydro.examples.parts import hydro, months, months_before, seasons_by_stage
from pycobre.hydro.model.initial import InflowObservation, InitialConditions, InitialStorage
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    Correlation,
    CorrelationEntity,
    CorrelationGroup,
    CorrelationProfile,
    InflowStats,
)
from pycobre.hydro.model.system import Hydro

__all__ = ["Water"]


HM3_PER_M3S_MONTH = 2.63
NEIGHBOURS = 0.8  # correlation of plants next to each other on a river


@dataclass(frozen=True, eq=False)
class Water:
    """N plants; a plant's number grows down its river."""

    river: NDArray[np.int64]  #: [N]
    downstream: list[int | None]
    inflow: F64  #: [N] mean of the plant's own stretch, m³/s
    passing: F64  #: [N] mean of all that comes by
    turbined: F64  #: [N]
    rho: F64  #: [N] MW per m³/s
    storage: F64  #: [N, 2]
    phase: F64  #: [rivers] month of the highest water
    swing: F64  #: [rivers]
    energy_mw: F64  #: [N] in a mean year

    @classmethod
    def drawn(cls, draw: Draw, count: int, rivers: int) -> Water:
        river = np.arange(count) * rivers // max(1, count)
        skips = draw.choice(4, count)  # one plant in four is on a tributary: it flows past its neighbour
        downstream: list[int | None] = []
        for i in range(count):
            below = [j for j in range(i + 1, min(i + 3, count)) if river[j] == river[i]]
            downstream.append(None if not below else below[-1] if skips[i] == 0 else below[0])
        inflow = draw.rounded(draw.log(25.0, 400.0, count))
        passing = inflow.copy()
        for i, to in enumerate(downstream):
            if to is not None:
                passing[to] += passing[i]
        rho = draw.rounded(draw.even(0.15, 0.95, count))
        turbined = draw.rounded(passing * draw.even(1.15, 1.7, count))
        held = np.where(draw.even(0.0, 1.0, count) < 0.4, draw.log(0.6, 6.0, count), 0.04)
        most = draw.rounded(held * passing * HM3_PER_M3S_MONTH)
        storage = np.stack([draw.rounded(0.15 * most), most], axis=1)
        phase, swing = draw.even(-1.0, 3.0, rivers), draw.even(0.35, 0.6, rivers)
        return cls(river, downstream, inflow, passing, turbined, rho, storage, phase, swing, rho * passing)

    def means(self, season: int) -> F64:
        """Mean inflow of every plant in a month of the year."""
        wave = 1.0 + self.swing * np.cos(2.0 * np.pi * (season - self.phase) / 12.0)
        return Draw.rounded(self.inflow * wave[self.river])

    def plants(self, bus_of_river: NDArray[np.int64]) -> tuple[Hydro, ...]:
        return tuple(
            hydro(
                h,
                f"H{h}",
                int(bus_of_river[self.river[h]]),
                storage_hm3=(float(self.storage[h, 0]), float(self.storage[h, 1])),
                turbined_m3s=float(self.turbined[h]),
                productivity_mw_per_m3s=float(self.rho[h]),
                downstream_id=self.downstream[h],
                min_outflow_m3s=round(0.1 * float(self.passing[h]), 3),
            )
            for h in range(self.river.size)
        )

    def initial(self, draw: Draw, lags: int) -> InitialConditions:
        """Reservoirs neither full nor empty; inflows before the study near their means."""
        low, high = self.storage[:, 0], self.storage[:, 1]
        start = draw.rounded(low + (high - low) * draw.even(0.4, 0.8, low.size))
        observed = []
        for month in months_before(lags):
            values = draw.rounded(self.means(month.season_id or 0) * draw.even(0.75, 1.2, low.size))
            observed += [
                InflowObservation(
                    hydro_id=h, start_date=month.start_date, end_date=month.end_date, value_m3s=value
                )
                for h, value in enumerate(values.tolist())
            ]
        return InitialConditions(
            storage=tuple(InitialStorage(hydro_id=h, value_hm3=v) for h, v in enumerate(start.tolist())),
            filling_storage=(),
            recent_observations=tuple(observed),
        )

    def inflow_stats(self, draw: Draw, stages: int, lags: int) -> InflowStats:
        """Of the study's months and of the months before it that lags refer to."""
        season = seasons_by_stage(months_before(lags), months(stages, 1))
        ids = np.array(sorted(season), dtype=np.int32)
        mean = np.array([self.means(season[int(t)]) for t in ids]).T.reshape(self.river.size, ids.size)
        relative = draw.even(0.2, 0.35, self.river.size)[:, None]
        return InflowStats(
            hydro_id=np.repeat(np.arange(self.river.size), ids.size),
            stage_id=np.tile(ids, self.river.size),
            mean_m3s=mean,
            std_m3s=draw.rounded(mean * relative),
        )

    def ar_coefficients(self, draw: Draw, stages: int, lags: int) -> ArCoefficients:
        """Each lag counts a third of the one before, all together less than one."""
        count = self.river.size
        first = draw.even(0.3, 0.6, count)
        value = draw.rounded(first[:, None] * (1.0 / 3.0) ** np.arange(lags))
        return ArCoefficients(
            hydro_id=np.repeat(np.arange(count), stages * lags),
            stage_id=np.tile(np.repeat(np.arange(stages), lags), count),
            lag=np.tile(np.arange(1, lags + 1), stages * count),
            coefficient=np.repeat(value[:, None, :], stages, axis=1),
        )

    def correlation(self) -> Correlation | None:
        """Plants of one river swell together, the less the further apart."""
        groups = []
        for r in range(self.phase.size):
            mine = np.flatnonzero(self.river == r)
            apart = np.abs(mine[:, None] - mine[None, :])
            groups.append(
                CorrelationGroup(
                    name=f"river {r}",
                    entities=tuple(CorrelationEntity(type="inflow", id=int(h)) for h in mine),
                    matrix=tuple(map(tuple, np.round(NEIGHBOURS**apart, 9).tolist())),
                )
            )
        if not self.river.size:
            return None
        return Correlation(
            method="spectral", profiles={"default": CorrelationProfile(correlation_groups=tuple(groups))}
        )
