"""What questions about results are answered with. Plain values only, so that they travel as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from pycobre._util.frozen import frozen
from pycobre.app.answers.case_records import Source

__all__ = [
    "Aggregate",
    "Binding",
    "Contribution",
    "CostToGo",
    "DeficitRisk",
    "Filter",
    "PriceExplanation",
    "ReservoirLevel",
    "ReservoirRisk",
    "StageRisk",
    "TableAnswer",
    "WaterValue",
    "WaterValuePoint",
]


@dataclass(frozen=True)
class Filter:
    """Rows whose `column` compares as `op` (==, !=, <, <=, >, >=, in) with `value`."""

    column: str
    op: str
    value: float | str | list[float | str]  #: a name may stand for an id


@dataclass(frozen=True)
class Aggregate:
    """`function` (mean, sum, min, max, count, std, quantile) of a column; `q` is the quantile's level."""

    function: str
    column: str = ""
    q: float | None = None


@frozen()
class TableAnswer:
    """Rows of a table, or groups of them."""

    run: str
    table: str
    columns: list[str]
    units: dict[str, str]
    names: dict[str, dict[str, str]]  #: of the ids in a column, by id
    rows: list[list[float | int | None]]
    total: int  #: rows, or groups, that there are
    truncated: bool
    rows_read: int
    sources: list[Source]


@frozen()
class WaterValuePoint:
    storage_hm3: float
    water_value: float  #: $/hm³, in money of the end of the stage
    cost_to_go: float  #: $
    cut: int  #: the tight one; −1: the bound of the cost-to-go


@frozen()
class WaterValue:
    """What one more hm³ of a reservoir at the end of a stage saves later on."""

    run: str
    plant: str
    plant_id: int
    stage: int
    unit: str
    points: list[WaterValuePoint]
    reference: dict[str, float]  #: the other states
    assumptions: list[str]
    sources: list[Source]


@frozen()
class CostToGo:
    """What the policy expects all later stages to cost."""

    run: str
    stage: int
    value: float
    cut: int
    gradient: dict[str, float]  #: by state
    state: dict[str, float]
    assumptions: list[str]
    sources: list[Source]


@frozen()
class Contribution:
    """How one variable answers one more MW of load, and what that costs."""

    kind: str  #: thermal, hydro, exchange, deficit, source, contract, storage, cost-to-go, …
    entity: str
    entity_id: int | None
    variable: str
    change_per_mw: float  #: of the variable, in its unit, per MW of load
    unit: str
    cost: float  #: $/MWh of the price that comes from it


@frozen()
class Binding:
    """A limit that holds, and what one more unit of it would save."""

    kind: str
    entity: str
    entity_id: int | None
    variable: str
    limit: str  #: lower or upper
    at: float
    saves: float  #: $ per unit of the limit, during the whole block


@frozen()
class PriceExplanation:
    """Which plant or constraint sets a price, and by how much."""

    run: str
    bus: str
    stage: int
    block: int
    scenario: int
    price: float  #: $/MWh, solved again
    recorded: float | None  #: in the table `buses`
    agrees: bool
    load_mw: float
    sentence: str
    contributions: list[Contribution]  #: they add up to the price
    binding: list[Binding]
    sources: list[Source]


@frozen()
class StageRisk:
    """One stage of `deficit_risk`."""

    stage: int
    probability: float
    mean_mwh: float
    p95_mwh: float
    worst_mwh: float
    worst_scenario: int


@frozen()
class DeficitRisk:
    """How likely load is shed, and how much."""

    run: str
    bus: str  #: name, or "all buses"
    threshold_mwh: float
    scenarios: int
    probability_any: float  #: of a deficit in any stage
    eens_mwh: float  #: energy not served per scenario
    cvar95_mwh: float  #: mean of the worst 5 % of the scenarios
    stages: list[StageRisk]
    sources: list[Source]


@frozen()
class ReservoirLevel:
    """One stage of `reservoir_risk`."""

    stage: int
    probability_below: float
    p05_hm3: float
    p50_hm3: float
    p95_hm3: float
    lowest_hm3: float
    lowest_scenario: int


@frozen()
class ReservoirRisk:
    """How likely a reservoir, or all of them together, ends a stage below a level."""

    run: str
    plant: str  #: name, or "all reservoirs"
    level_hm3: float
    scenarios: int
    probability_any: float
    stages: list[ReservoirLevel]
    sources: list[Source]
