"""What can be asked of results: one function per tool."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from pycobre.app.answers.answer_records import (
    Aggregate,
    CostToGo,
    DeficitRisk,
    Filter,
    PriceExplanation,
    ReservoirRisk,
    TableAnswer,
    WaterValue,
)
from pycobre.app.mcp.case_calls import Limit
from pycobre.app.mcp.desk import Desk
from pycobre.app.mcp.run_calls import RunName

__all__ = ["CALLS", "Stage"]

Names = Annotated[list[str], Field(max_length=50)]
Plant = Annotated[str | int, Field(description="hydro plant, by name or id")]
Bus = Annotated[str | int, Field(description="bus, by name or id")]
Stage = Annotated[str | int, Field(description="stage, by id from 0 or by label such as 2026-03")]


def query_table(
    desk: Desk,
    run: RunName,
    table: Annotated[
        str, Field(description="costs, buses, hydros, thermals, exchanges, …, convergence or timing")
    ],
    columns: Annotated[Names, Field(description="of rows; empty for all")] = [],  # noqa: B006
    where: Annotated[
        list[Filter],
        Field(max_length=20, description="all have to hold; a name may stand for an id: hydro_id == FURNAS"),
    ] = [],  # noqa: B006
    group_by: Annotated[Names, Field(description="columns of ids: stage_id, hydro_id, scenario_id, …")] = [],  # noqa: B006
    aggregates: Annotated[
        list[Aggregate], Field(max_length=20, description="mean, sum, min, max, count, std, quantile with q")
    ] = [],  # noqa: B006
    order_by: Annotated[str, Field(description="a column of the answer, such as mean(deficit_mw)")] = "",
    descending: bool = False,
    limit: Limit = 100,
) -> TableAnswer:
    """Query a table of a run: filter, group, aggregate, order, with exact quantiles."""
    from pycobre.app.answers.table_query import query_table

    return query_table(
        desk.tables(run),
        table,
        columns=columns,
        where=where,
        group_by=group_by,
        aggregates=aggregates,
        order_by=order_by,
        descending=descending,
        limit=limit,
    )


def water_value(
    desk: Desk,
    run: RunName,
    plant: Plant,
    stage: Stage,
    storage: Annotated[
        list[float],
        Field(max_length=200, description="storages in hm³; empty: eleven over the plant's range"),
    ] = [],  # noqa: B006
    state: Annotated[
        dict[str, float], Field(description="other states by plant or by name; else the simulation's means")
    ] = {},  # noqa: B006
) -> WaterValue:
    """Give the value of one more hm³ in a reservoir at the end of a stage, by the policy's cuts."""
    from pycobre.app.answers.policy_values import water_value

    tables = desk.tables(run)
    return water_value(tables, desk.policy(tables), plant, stage, storage, state)


def cost_to_go(
    desk: Desk,
    run: RunName,
    stage: Stage,
    state: Annotated[
        dict[str, float],
        Field(description="storages by plant, or states by name; else the simulation's means"),
    ] = {},  # noqa: B006
) -> CostToGo:
    """Give what the policy expects all later stages to cost, and how that changes with each state."""
    from pycobre.app.answers.policy_values import cost_to_go

    tables = desk.tables(run)
    return cost_to_go(tables, desk.policy(tables), stage, state)


def explain_price(
    desk: Desk,
    run: RunName,
    bus: Bus,
    stage: Stage,
    block: Annotated[int, Field(ge=0)] = 0,
    scenario: Annotated[int, Field(ge=0)] = 0,
    case: Annotated[
        str, Field(description="the case of the run; empty: the one whose output directory holds the run")
    ] = "",
) -> PriceExplanation:
    """Say which plant or constraint sets a price and by how much, from the duals of the LP solved again."""
    from pycobre.app.answers.price import explain_price

    tables = desk.tables(run)
    directory = desk.case_of(tables, case)
    return explain_price(tables, directory, desk.policy(tables), bus, stage, block, scenario)


def deficit_risk(
    desk: Desk,
    run: RunName,
    bus: Annotated[str | int | None, Field(description="bus, by name or id; none: all together")] = None,
    threshold_mwh: Annotated[float, Field(ge=0.0, description="energy that counts as a deficit")] = 0.0,
) -> DeficitRisk:
    """Say how likely load is shed in each stage, and how much energy is not served."""
    from pycobre.app.answers.risk import deficit_risk

    return deficit_risk(desk.tables(run), bus, threshold_mwh)


def reservoir_risk(
    desk: Desk,
    run: RunName,
    plant: Annotated[str | int | None, Field(description="plant, by name or id; none: all together")] = None,
    level_percent: Annotated[float, Field(ge=0.0, le=100.0, description="of the usable volume")] = 20.0,
) -> ReservoirRisk:
    """Say how likely a reservoir, or all together, ends each stage below a level."""
    from pycobre.app.answers.risk import reservoir_risk

    return reservoir_risk(desk.tables(run), plant, level_percent)


CALLS: tuple[Any, ...] = (
    query_table,
    water_value,
    cost_to_go,
    explain_price,
    deficit_risk,
    reservoir_risk,
)
