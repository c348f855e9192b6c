"""Time: stages with their load blocks, seasons, and the graph that joins the stages."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pycobre.hydro.model.record import record

__all__ = [
    "Block",
    "CVaR",
    "CVaRParameters",
    "GraphNode",
    "PolicyGraph",
    "PreStudyStage",
    "Season",
    "SeasonDefinitions",
    "Stage",
    "StateVariables",
    "Transition",
]

SamplingMethod = Literal["saa", "lhs", "qmc_sobol", "qmc_halton", "selective", "historical_residuals"]


@record
class Block:
    """Hours of a stage with the same load level."""

    id: int
    name: str
    hours: float


@record
class StateVariables:
    """What the author says the state is; informative, since the equations decide it."""

    storage: bool = True
    inflow_lags: bool = False


@record
class CVaRParameters:
    """(1 − `lambda_`)·E + `lambda_`·CVaR of the worst share `alpha`; the key in the file is `lambda`."""

    alpha: float
    lambda_: float


@record
class CVaR:
    cvar: CVaRParameters


@record
class Stage:
    """One decision period; `end_date` is exclusive, and block hours need not add up to the calendar."""

    id: int
    start_date: date
    end_date: date
    blocks: tuple[Block, ...]
    num_openings: int | None = None
    season_id: int | None = None
    block_mode: Literal["parallel", "chronological"] = "parallel"
    state_variables: StateVariables | None = None
    risk_measure: Literal["expectation"] | CVaR = "expectation"
    sampling_method: SamplingMethod = "saa"
    annual_discount_rate_override: float | None = None

    @property
    def chained(self) -> bool:
        """Whether its blocks follow each other, each with a water balance of its own."""
        return self.block_mode == "chronological" and len(self.blocks) > 1

    @property
    def hours(self) -> float:
        """Sum of the block hours: what energies and volumes are computed with."""
        return sum(block.hours for block in self.blocks)

    @property
    def days(self) -> int:
        """Calendar length: what discounting and evaporation are computed with."""
        return (self.end_date - self.start_date).days


@record
class PreStudyStage:
    """A period before the study whose statistics the lags of the first stages refer to; ids are negative."""

    id: int
    start_date: date
    end_date: date
    season_id: int | None = None


@record
class Season:
    id: int
    label: str
    month_start: int
    day_start: int | None = None
    month_end: int | None = None
    day_end: int | None = None


@record
class SeasonDefinitions:
    cycle_type: Literal["monthly", "weekly", "custom"]
    seasons: tuple[Season, ...]


@record
class Transition:
    source_id: int
    target_id: int
    probability: float
    annual_discount_rate_override: float | None = None


@record
class GraphNode:
    id: int
    stage_id: int
    scenario_id: int | None = None
    label: str | None = None


@record
class PolicyGraph:
    """How stages follow each other; without transitions, one after the other."""

    type: Literal["finite_horizon", "cyclic"]
    annual_discount_rate: float
    transitions: tuple[Transition, ...] = ()
    nodes: tuple[GraphNode, ...] = ()
