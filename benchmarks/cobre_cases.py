"""The cases on which training is compared: four regions, more of everything, and a large synthetic system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.hydro.examples import example, synthetic
from pycobre.hydro.files import load_case, with_overrides, write_case
from pycobre.hydro.model import Case
from pycobre.hydro.model.horizon import Stage

__all__ = ["Trial", "longer", "trials", "with_openings"]


@dataclass(frozen=True)
class Trial:
    """A case and how many iterations of how many trajectories Cobre trains on it."""

    name: str
    build: Callable[[], Case]
    iterations: int
    passes: int
    third: bool = True  #: whether a third of Cobre's time is the target

    def write(self, directory: Path, iterations: int) -> None:
        """Write the case with this trial's settings and this limit, without a simulation."""
        overrides: dict[str, Any] = {
            "training.stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
            "training.selection": {"method": "sampled", "forward_passes": self.passes},
            "simulation.enabled": False,
        }
        write_case(with_overrides(self.build(), overrides), directory)


def trials(four_regions: Path | None, *, quick: bool) -> dict[str, Trial]:
    """All trials by a short name; `four_regions` is a case directory to use instead of the bundled example."""

    def base() -> Case:
        return example("four-regions").build() if four_regions is None else load_case(four_regions)

    def large() -> Case:
        return synthetic(
            hydros=60, cascades=8, lags=1, thermals=100, buses=5, blocks=3, stages=12, openings=10
        )

    name = "four-regions" if four_regions is None else four_regions.name
    found = {
        "base": Trial(name, base, 256, 4),
        "openings": Trial(f"{name}, openings × 5", lambda: with_openings(base(), 5), 64, 4),
        "passes": Trial(f"{name}, passes × 4", base, 64, 16),
        "stages": Trial(f"{name}, stages × 5", lambda: longer(base(), 5), 64, 4),
        "production": Trial("production-like", large, 24, 8, third=False),
    }
    return {key: replace(trial, iterations=3) for key, trial in found.items()} if quick else found


def with_openings(case: Case, factor: int) -> Case:
    """The case with so many times the openings in every stage."""
    stages = tuple(replace(stage, num_openings=(stage.num_openings or 1) * factor) for stage in case.stages)
    return replace(case, stages=stages)


def longer(case: Case, years: int) -> Case:
    """The case of one year, repeated year after year; what a table says of a stage holds for its copies."""
    count = len(case.stages)

    def copy(stage: Stage, year: int) -> Stage:
        return replace(
            stage,
            id=stage.id + year * count,
            start_date=stage.start_date.replace(year=stage.start_date.year + year),
            end_date=stage.end_date.replace(year=stage.end_date.year + year),
        )

    return replace(
        case,
        stages=tuple(copy(stage, year) for year in range(years) for stage in case.stages),
        inflow_stats=_repeated(case.inflow_stats, count, years),
        load_stats=_repeated(case.load_stats, count, years),
        source_stats=_repeated(case.source_stats, count, years),
        load_factors=tuple(
            replace(item, stage_id=item.stage_id + year * count)
            for year in range(years)
            for item in case.load_factors
        ),
        source_factors=tuple(
            replace(item, stage_id=item.stage_id + year * count)
            for year in range(years)
            for item in case.source_factors
        ),
    )


def _repeated(table: Any, count: int, years: int) -> Any:
    """The rows of a table by stage, once more for every year."""
    if not len(table):
        return table
    columns = {name: np.tile(getattr(table, name), years) for name in (f.name for f in fields(table))}
    columns["stage_id"] = columns["stage_id"] + np.repeat(np.arange(years) * count, len(table))
    return type(table)(**columns)
