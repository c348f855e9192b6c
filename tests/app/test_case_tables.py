"""Simulation tables obey the laws of the system: water and power are conserved, costs add up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_case import random_case

import pycobre
from pycobre.app.results.schemas import SIMULATION_TABLES
from pycobre.hydro.build import HydroModel, build_model
from pycobre.hydro.examples import synthetic
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ClassScheme, ScenarioSource

HM3_PER_M3S_HOUR = 0.0036
SCENARIOS = 5
RICH = (
    "blocks",
    "correlation",
    "evaporation",
    "generic",
    "limits",
    "withdrawal",
    "diversion",
    "sources",
    "random_load",
    "contracts",
    "pumping",
    "discount",
    "groups",
    "segments",
)


def fresh(case: Case) -> Case:
    """Loads and sources are drawn anew in simulation, inflows from the tree."""
    drawn = ClassScheme(scheme="out_of_sample")
    source = ScenarioSource(seed=5, load=drawn, ncs=drawn)
    return replace(
        case, config=replace(case.config, training=replace(case.config.training, scenario_source=source))
    )


CASES: dict[str, Any] = {
    "parallel blocks, no lags": lambda: random_case(701, *RICH, iterations=3),
    "blocks in a row, lags, planes, fresh noise": lambda: fresh(
        random_case(702, *RICH, "chronological", "lags", "fpha", iterations=3)
    ),
    "a river system": lambda: synthetic(
        hydros=24, thermals=12, buses=3, sources=3, blocks=3, stages=4, openings=3, lags=2, iterations=2
    ),
}


class Tables:
    """The tables of a case as arrays [scenario, stage, block, entity]."""

    def __init__(self, case: Case) -> None:
        self.policy = pycobre.train(case).policy
        self.result = pycobre.simulate(case, self.policy, SCENARIOS)
        self.study: HydroModel = build_model(case)
        self.case = case

    def get(self, table: str, column: str) -> np.ndarray:
        values = self.result.tables[table][column].to_numpy()
        if table == "costs":
            return values.reshape(SCENARIOS, len(self.case.stages))
        return values.reshape(SCENARIOS, len(self.case.stages), len(self.case.stages[0].blocks), -1)

    def at_bus(self, table: str, column: str, buses: list[int]) -> np.ndarray:
        """Entities' powers added up at their buses."""
        total = np.zeros_like(self.get("buses", "load_mw"))
        if table in self.result.tables:
            values = self.get(table, column)
            for i, bus in enumerate(buses):
                total[..., self.study.index.bus[bus]] += values[..., i]
        return total

    def at_plant(self, table: str, column: str, plants: list[int | None]) -> np.ndarray:
        """Entities' flows added up at plants; None: they leave the system."""
        total = np.zeros_like(self.get("hydros", "inflow_m3s"))
        if table in self.result.tables:
            values = self.get(table, column)
            for i, plant in enumerate(plants):
                if plant is not None:
                    total[..., self.study.index.hydro[plant]] += values[..., i]
        return total


@pytest.fixture(scope="module", params=CASES)
def tables(request: pytest.FixtureRequest) -> Tables:
    return Tables(CASES[request.param]())


def test_power_is_balanced_at_every_bus(tables: Tables) -> None:
    case, get, at = tables.case, tables.get, tables.at_bus
    hydro_bus = tables.result.tables["hydro_buses"]["bus_id"].to_numpy()[: len(tables.study.index.pairs)]
    arriving = (
        at("hydro_buses", "generation_mw", hydro_bus.tolist())
        + at("thermals", "generation_mw", [x.bus_id for x in case.thermals])
        + at("non_controllables", "generation_mw", [x.bus_id for x in case.non_controllable_sources])
        + at("exchanges", "net_mw", [x.target_bus_id for x in case.lines])
        - at("exchanges", "net_mw", [x.source_bus_id for x in case.lines])
        - at("pumping", "power_mw", [x.bus_id for x in case.pumping_stations])
        + get("buses", "deficit_mw")
        - get("buses", "excess_mw")
    )
    for i, contract in enumerate(case.energy_contracts):
        sign = 1.0 if contract.type == "import" else -1.0
        arriving[..., tables.study.index.bus[contract.bus_id]] += sign * get("contracts", "power_mw")[..., i]
    np.testing.assert_allclose(arriving, get("buses", "load_mw"), rtol=0, atol=1e-6)


def test_water_is_conserved_in_every_reservoir(tables: Tables) -> None:
    case, get = tables.case, tables.get
    flow = get("hydros", "inflow_m3s") + get("hydros", "inflow_slack_m3s")
    for column in ("outflow_m3s", "diverted_m3s", "evaporated_m3s", "withdrawn_m3s"):
        flow = flow - get("hydros", column)
    below: list[int | None] = [h.downstream_id for h in case.hydros]
    for column in ("turbined_m3s", "spilled_m3s"):
        flow = flow + tables.at_plant("hydros", column, below)
    aside = [h.diversion.downstream_id if h.diversion else None for h in case.hydros]
    flow = flow + tables.at_plant("hydros", "diverted_m3s", aside)
    stations = case.pumping_stations
    flow = flow + tables.at_plant("pumping", "pumped_m3s", [x.destination_hydro_id for x in stations])
    flow = flow - tables.at_plant("pumping", "pumped_m3s", [x.source_hydro_id for x in stations])
    change = HM3_PER_M3S_HOUR * get("hydros", "hours") * flow
    start, end = get("hydros", "storage_initial_hm3"), get("hydros", "storage_final_hm3")
    if case.stages[0].block_mode == "chronological":
        np.testing.assert_allclose(end, start + change, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(start[:, :, 1:], end[:, :, :-1])
    else:
        np.testing.assert_allclose(end[:, :, 0], start[:, :, 0] + change.sum(axis=2), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(start[:, 1:, 0], end[:, :-1, -1])
    initial = {s.hydro_id: s.value_hm3 for s in case.initial_conditions.storage}
    np.testing.assert_array_equal(
        start[:, 0, 0], np.tile([initial[h.id] for h in case.hydros], (SCENARIOS, 1))
    )


def test_plants_are_the_sum_of_their_turbines(tables: Tables) -> None:
    pairs = [p.hydro for p in tables.study.index.pairs]
    for column in ("turbined_m3s", "generation_mw"):
        by_bus, whole = tables.get("hydro_buses", column), np.zeros_like(tables.get("hydros", column))
        for i, h in enumerate(pairs):
            whole[..., h] += by_bus[..., i]
        np.testing.assert_allclose(tables.get("hydros", column), whole, rtol=1e-12)


def test_costs_add_up(tables: Tables) -> None:
    schema = next(table for table in SIMULATION_TABLES if table.name == "costs")
    parts = [
        name for name in schema.names if name.endswith("_cost") and name not in ("stage_cost", "future_cost")
    ]
    stage = tables.get("costs", "stage_cost")
    np.testing.assert_allclose(sum(tables.get("costs", part) for part in parts), stage, rtol=1e-9, atol=1e-3)
    # Every scenario is as likely as the others, and a stage counts as much as its discount factor says.
    total = (tables.get("costs", "discount_factor") * stage).sum(axis=1)
    assert total.mean() == pytest.approx(tables.result.mean_cost, rel=1e-9)
    assert total.std(ddof=1) == pytest.approx(tables.result.std_cost, rel=1e-6)
    discounts = [node.discount for node in tables.study.problem.nodes]
    expected = np.cumprod([1.0, *discounts[:-1]])
    np.testing.assert_allclose(tables.get("costs", "discount_factor")[0], expected, rtol=1e-12)
    for table, part in (("thermals", "thermal_cost"), ("contracts", "contract_cost")):
        if table in tables.result.tables:
            by_entity = tables.get(table, "cost").sum(axis=(2, 3))
            np.testing.assert_allclose(by_entity, tables.get("costs", part), rtol=1e-9, atol=1e-6)


def test_sources_never_give_more_than_the_noise_allows(tables: Tables) -> None:
    sources = tables.case.non_controllable_sources
    available, given = (tables.get("non_controllables", c) for c in ("available_mw", "generation_mw"))
    assert (given <= available + 1e-9).all()
    np.testing.assert_allclose(tables.get("non_controllables", "curtailed_mw"), available - given, atol=1e-12)
    installed = [s.max_generation_mw for s in sources]
    random = tables.case.source_stats.ncs_id
    for i, source in enumerate(sources):
        if source.id in random and np.any(tables.case.source_stats.std[random == source.id] > 0.0):
            assert np.unique(available[:, 0, 0, i]).size > 1, "availability follows the scenario"
        assert (available[..., i] <= installed[i] * 1.5).all()
        if not source.allow_curtailment:
            np.testing.assert_allclose(given[..., i], available[..., i], atol=1e-9)


def test_generic_constraints_say_what_their_expressions_are_worth(tables: Tables) -> None:
    if not tables.case.generic_constraints:
        assert "generic_constraints" not in tables.result.tables
        return
    activity, slack = (
        tables.get("generic_constraints", "activity"),
        tables.get("generic_constraints", "slack"),
    )
    assert tables.result.tables["generic_constraints"]["constraint_id"].to_pylist()[:2] == [3, 5]
    both = (
        tables.get("thermals", "generation_mw")[..., 1] + 0.7 * tables.get("hydros", "generation_mw")[..., 0]
    )
    flow = (
        2.0 * (tables.get("hydros", "turbined_m3s")[..., 1] + tables.get("hydros", "spilled_m3s")[..., 1])
        - tables.get("exchanges", "net_mw")[..., 0]
    )
    np.testing.assert_allclose(activity[..., 0], both, atol=1e-6)
    np.testing.assert_allclose(activity[..., 1], flow, atol=1e-6)
    bounds = tables.case.generic_bounds
    upper = bounds.bound_upper[bounds.constraint_id == 3][:, None]
    lower = bounds.bound_lower[bounds.constraint_id == 5][:, None]
    assert (activity[..., 0] <= upper + slack[..., 0] + 1e-6).all()
    assert (activity[..., 1] >= lower - slack[..., 1] - 1e-6).all()
    price = tables.case.generic_constraints[0].slack.penalty
    paid = (price * tables.get("generic_constraints", "hours") * slack).sum(axis=(2, 3))
    np.testing.assert_allclose(paid, tables.get("costs", "generic_cost"), rtol=1e-9, atol=1e-6)


def test_prices_are_what_one_more_unit_costs(tables: Tables) -> None:
    """A thermal plant that is neither at its least nor at its most sets its bus's price."""
    g = tables.get("thermals", "generation_mw")
    numbers = tables.study.numbers
    least = np.stack([n.thermal_min.T for n in numbers]), np.stack([n.thermal_max.T for n in numbers])
    inside = (g > least[0] + 1e-6) & (g < least[1] - 1e-6)
    cost = np.broadcast_to(np.stack([n.thermal_cost.T for n in numbers]), g.shape)
    buses = [tables.study.index.bus[t.bus_id] for t in tables.case.thermals]
    price = tables.get("buses", "marginal_cost")[..., buses]
    if not tables.case.generic_constraints:  # which put a price of their own on a plant
        assert inside.any()
        np.testing.assert_allclose(price[inside], cost[inside], rtol=1e-6)


def test_every_table_and_column_is_there(tables: Tables) -> None:
    wanted = {table.name: table for table in SIMULATION_TABLES}
    for name, table in tables.result.tables.items():
        assert tuple(table.column_names) == wanted[name].names
        for column in table.column_names:
            values = table[column].to_numpy()
            assert np.isfinite(values).all(), (name, column)
        keys = [c for c in table.column_names if c.endswith("_id") and c != "node_id"]
        rows = list(zip(*(table[key].to_pylist() for key in keys), strict=True))
        assert rows == sorted(rows), name
    if tables.case.energy_contracts:
        assert set(tables.result.tables) == set(wanted) - {"scenarios"}  # which enumerated ones have


def test_ranks_without_a_scenario_add_nothing(tables: Tables) -> None:
    """Two scenarios on three workers: the same tables as in one process."""
    case, policy = tables.case, tables.policy
    alone = pycobre.simulate(case, policy, 2)
    shared = pycobre.simulate(case, policy, 2, num_workers=3)
    assert set(alone.tables) == set(shared.tables)
    for name, table in alone.tables.items():
        assert table.equals(shared.tables[name]), name


def test_enumeration_of_one_scenario_stops_at_its_gap() -> None:
    case = random_case(705, "blocks", "lags", openings=1)
    selection = {"method": "enumerated"}
    overrides = {
        "training.selection": selection,
        "training.stopping_rules": [
            {"type": "iteration_limit", "limit": 50},
            {"type": "gap", "relative_tolerance": 1e-6},
        ],
        "simulation": {"enabled": True, "selection": selection},
    }
    found = pycobre.train(case, overrides)
    assert (found.termination_reason, found.iterations < 50) == ("gap", True)
    simulated = pycobre.simulate(case, found.policy, config_overrides=overrides)
    assert simulated.scenarios == 1
    assert simulated.mean_cost == pytest.approx(found.final_lower_bound, rel=1e-6)
