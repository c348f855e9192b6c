"""Buses, lines, thermal plants, wind and load of a synthetic system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.examples.draw import Draw
from pycobre.hydro.examples.parts import IN_SERVICE, block_shares, thermal
from pycobre.hydro.model.scenarios import BlockFactor, LoadFactors, LoadStats, SourceStats
from pycobre.hydro.model.system import Line, LineCapacity, NonControllableSource, Thermal

__all__ = ["Network"]


HYDRO_SHARE = 0.68  # of the load, in a mean year
THERMAL_SHARE = 0.6  # of the load, all plants at full power
WIND = 0.35  # mean availability


@dataclass(frozen=True, eq=False)
class Network:
    """Everything but water."""

    load: F64  #: [buses] mean, MW
    lines: tuple[Line, ...]
    thermals: tuple[Thermal, ...]
    sources: tuple[NonControllableSource, ...]

    @classmethod
    def drawn(cls, draw: Draw, hydro_mw: F64, thermals: int, sources: int) -> Network:
        """A network for hydro plants of that mean power by bus; load is more evenly spread than they are."""
        buses = hydro_mw.size
        total = float(hydro_mw.sum()) / HYDRO_SHARE or max(100.0, 40.0 * thermals)
        plants = _thermals(draw, thermals, buses, THERMAL_SHARE * total)
        supply = hydro_mw.copy()
        for plant in plants:
            supply[plant.bus_id] += plant.generation.max_mw
        share = draw.even(0.5, 1.5, buses)
        share = 0.6 * supply / max(float(supply.sum()), 1.0) + 0.4 * share / share.sum()
        parks = draw.rounded(draw.log(80.0, 600.0, sources))
        return cls(
            load=draw.rounded((total + WIND * parks.sum()) * share / share.sum()),
            lines=_lines(draw, buses, total),
            thermals=plants,
            sources=tuple(
                NonControllableSource(
                    id=i,
                    name=f"W{i}",
                    operational_start_date=IN_SERVICE,
                    bus_id=int(b),
                    max_generation_mw=float(parks[i]),
                )
                for i, b in enumerate(draw.choice(buses, sources))
            ),
        )

    def load_stats(self, stages: int) -> LoadStats:
        """Load is highest in January."""
        wave = 1.0 + 0.05 * np.cos(2.0 * np.pi * np.arange(stages) / 12.0)
        return LoadStats(
            bus_id=np.repeat(np.arange(self.load.size), stages),
            stage_id=np.tile(np.arange(stages), self.load.size),
            mean_mw=Draw.rounded(self.load[:, None] * wave),
            std_mw=np.zeros(self.load.size * stages),
        )

    def load_factors(self, stages: int, blocks: int) -> tuple[LoadFactors, ...]:
        """The first block is the heaviest; over a stage factors are 1 on average."""
        if blocks == 1:
            return ()
        shares = np.array([share for _, share in block_shares(blocks)])
        shape = np.linspace(1.25, 0.8, blocks)
        factors = np.round(shape / (shape * shares).sum(), 6).tolist()
        entries = tuple(BlockFactor(block_id=k, factor=factor) for k, factor in enumerate(factors))
        return tuple(
            LoadFactors(bus_id=b, stage_id=t, block_factors=entries)
            for b in range(self.load.size)
            for t in range(stages)
        )

    def source_stats(self, stages: int) -> SourceStats:
        wave = WIND * (1.0 - 0.25 * np.cos(2.0 * np.pi * np.arange(stages) / 12.0))
        return SourceStats(
            ncs_id=np.repeat(np.arange(len(self.sources)), stages),
            stage_id=np.tile(np.arange(stages), len(self.sources)),
            mean=np.tile(Draw.rounded(wave), len(self.sources)),
            std=np.full(len(self.sources) * stages, 0.06),
        )


def _lines(draw: Draw, buses: int, total: float) -> tuple[Line, ...]:
    """Every bus is joined to an earlier one, and half as many lines again close loops."""
    ends = [(int(draw.choice(b, 1)[0]), b) for b in range(1, buses)]
    for _ in range(buses // 2 if buses > 2 else 0):
        a, b = sorted(draw.choice(buses, 2).tolist())
        if a != b and (a, b) not in ends:
            ends.append((a, b))
    capacity = draw.rounded(draw.even(0.1, 0.3, len(ends)) * total)
    return tuple(
        Line(
            id=i,
            name=f"L{i}",
            operational_start_date=IN_SERVICE,
            source_bus_id=a,
            target_bus_id=b,
            capacity=LineCapacity(
                direct_mw=float(capacity[i]), reverse_mw=round(0.9 * float(capacity[i]), 3)
            ),
        )
        for i, (a, b) in enumerate(ends)
    )


def _thermals(draw: Draw, count: int, buses: int, total: float) -> tuple[Thermal, ...]:
    """Sizes from small to large, costs from cheap to dear; the cheapest fifth must run at a quarter."""
    size = draw.log(0.1, 1.0, count)
    capacity = draw.rounded(total * size / size.sum()) if count else size
    cost = draw.rounded(draw.log(30.0, 1000.0, count))
    cheap = np.sort(cost)[max(0, count // 5 - 1)] if count else 0.0
    return tuple(
        thermal(
            i,
            f"T{i}",
            int(b),
            float(capacity[i]),
            float(cost[i]),
            round(0.25 * float(capacity[i]), 3) if cost[i] <= cheap else 0.0,
        )
        for i, b in enumerate(draw.choice(buses, count))
    )
