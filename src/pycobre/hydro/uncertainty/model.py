"""What the draws of scenarios need to know of a built case."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.period_step import PeriodStep
from pycobre.hydro.model.case import Case
from pycobre.hydro.uncertainty.noise import NoiseLayout, StageNoise
from pycobre.stochastic.par import Par

__all__ = ["NoiseModel"]


class NoiseModel(Protocol):
    """The random part of a case (`pycobre.hydro.HydroModel` is one); sequences are by stage."""

    @property
    def case(self) -> Case: ...
    @property
    def index(self) -> Index: ...
    @property
    def layout(self) -> NoiseLayout: ...
    @property
    def par(self) -> Par: ...
    @property
    def noise(self) -> tuple[StageNoise, ...]: ...
    @property
    def openings(self) -> tuple[NDArray[np.float64], ...]: ...
    @property
    def periods(self) -> tuple[PeriodStep, ...] | None: ...
    @property
    def seed(self) -> int: ...
