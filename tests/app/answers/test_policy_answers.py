"""Water values by finite differences, prices by a perturbed LP, risks and convergence by the whole tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pycobre.app.answers.convergence import is_converged
from pycobre.app.answers.policy_values import cost_to_go, water_value
from pycobre.app.answers.price import explain_price
from pycobre.app.answers.risk import deficit_risk, reservoir_risk
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.scenario_replay import stage_visit
from pycobre.errors import OptionError, PolicyError
from pycobre.hydro.files import load_case, write_case
from pycobre.sddp import Policy
from pycobre.sddp.plan import Plan
from pycobre.solver import solve_lp
from pycobre.solver.explicit import explicit_lp

pytestmark = pytest.mark.xdist_group("answers")


def test_water_values_are_finite_differences_of_the_policy(tables: RunTables, policy: Policy) -> None:
    names = policy.state_names
    for stage in (0, 4, 10):
        found = water_value(tables, policy, "Fork", stage, [500.0, 1111.0, 1700.0])
        for point in found.points:
            state = np.array([found.reference.get(name, point.storage_hm3) for name in names])
            place, step = names.index("storage[Fork]"), 1e-4

            def expected(
                storage: float, state: object = state, place: int = place, stage: int = stage
            ) -> float:
                moved = np.array(state)
                moved[place] = storage
                return policy.evaluate(index=stage, state=moved).value

            left = (expected(point.storage_hm3) - expected(point.storage_hm3 - step)) / step
            right = (expected(point.storage_hm3 + step) - expected(point.storage_hm3)) / step
            tolerance = 1e-4 * max(1.0, abs(left))
            assert min(left, right) - tolerance <= -point.water_value <= max(left, right) + tolerance
            assert point.cost_to_go == expected(point.storage_hm3)
        values = [point.water_value for point in found.points]
        assert values == sorted(values, reverse=True)  # water is worth less the more there is


def test_the_cost_to_go_is_the_highest_cut_at_the_means(tables: RunTables, policy: Policy) -> None:
    found = cost_to_go(tables, policy, "2026-05", {"Springs": 900.0})
    table = tables.results.simulation("hydros")
    stage, plant, block = (table[name].to_numpy() for name in ("stage_id", "hydro_id", "block_id"))
    own = (stage == 4) & (plant == 3) & (block == block[stage == 4].max())
    assert found.state["storage[Junction]"] == pytest.approx(
        table["storage_final_hm3"].to_numpy()[own].mean()
    )
    assert found.state["storage[Springs]"] == 900.0
    x = np.array([found.state[name] for name in policy.state_names])
    cuts = policy.cuts[4]
    heights = [i + s @ x for i, s, a in zip(cuts.intercept, cuts.slope, cuts.active, strict=True) if a]
    assert found.value == pytest.approx(max(heights), rel=1e-12)
    (source, _) = found.sources
    assert source.digest == policy.digest


def test_the_last_stage_has_no_water_value(tables: RunTables, policy: Policy) -> None:
    with pytest.raises(OptionError, match="water that is left has no value"):
        water_value(tables, policy, "Fork", 11)
    with pytest.raises(OptionError, match="Did you mean 'storage"):
        cost_to_go(tables, policy, 3, {"Sprngs": 1.0})


@pytest.mark.parametrize(("stage", "scenario"), [(0, 0), (3, 7), (8, 11), (11, 23)])
def test_a_price_is_what_one_more_megawatt_costs_in_the_lp(
    root: Path, tables: RunTables, policy: Policy, stage: int, scenario: int
) -> None:
    case = root / "cascade"
    for bus in ("Hills", "Coast"):
        found = explain_price(tables, case, policy, bus, stage, 1, scenario)
        assert found.agrees, (found.price, found.recorded)
        assert sum(each.cost for each in found.contributions) == pytest.approx(
            found.price, rel=1e-6, abs=1e-6
        )
        visit = stage_visit(tables, case, policy, scenario, stage)
        node = Plan.of(visit.model.problem).nodes[stage]
        view = policy.cuts[stage].view() if node.has_future else None
        slots = None if view is None else np.arange(view.count, dtype=np.int32)
        lp = explicit_lp(node.model, visit.incoming, visit.noise, view, slots)
        lps = visit.model.lps[stage]
        number = [name for _, name in tables.entities("buses")].index(bus)
        row = int(lps.rows["load_balance"][number, 1])
        hours = float(visit.model.numbers[stage].hours[1])
        slopes = []
        for step in (-0.01, 0.01):
            lower, upper = lp.row_lower.copy(), lp.row_upper.copy()
            lower[row] += step
            upper[row] += step
            moved = solve_lp(replace(lp, row_lower=lower, row_upper=upper))
            slopes.append((moved.objective - solve_lp(lp).objective) / (step * hours))
        tolerance = 1e-3 * max(1.0, abs(found.price))
        assert slopes[0] - tolerance <= found.price <= slopes[1] + tolerance
        assert found.sentence.startswith(f"One more MWh at {bus} costs")


def test_a_price_is_refused_for_another_case(
    root: Path, tables: RunTables, policy: Policy, tmp_path: Path
) -> None:
    case = load_case(root / "cascade")
    other = replace(case, thermals=(replace(case.thermals[0], cost_per_mwh=1.0), *case.thermals[1:]))
    write_case(other, tmp_path / "other")
    with pytest.raises(PolicyError, match=r"system/thermals.json differ"):
        explain_price(tables, tmp_path / "other", policy, "Hills", 0)
    with pytest.raises(OptionError, match="scenario: expected 0 to 23, got 24"):
        explain_price(tables, root / "cascade", policy, "Hills", 0, 0, 24)
    with pytest.raises(OptionError, match="block: expected one of"):
        explain_price(tables, root / "cascade", policy, "Hills", 0, 99)


def test_risks_are_those_of_the_whole_table(tables: RunTables) -> None:
    buses = tables.results.simulation("buses")
    scenario, stage = buses["scenario_id"].to_numpy(), buses["stage_id"].to_numpy()
    energy = buses["deficit_mw"].to_numpy() * buses["hours"].to_numpy()
    grid = np.zeros((24, 12))
    np.add.at(grid, (scenario, stage), energy)
    found = deficit_risk(tables)
    assert [each.mean_mwh for each in found.stages] == pytest.approx(grid.mean(axis=0).tolist())
    assert found.probability_any == (grid > 1e-6).any(axis=1).mean()
    assert found.eens_mwh == pytest.approx(tables.results.metadata["simulation"]["indicators"]["eens_mwh"])
    hydros = tables.results.simulation("hydros")
    own = (hydros["hydro_id"].to_numpy() == 2) & (hydros["block_id"].to_numpy() == 0)
    storage = np.zeros((24, 12))
    at = hydros["scenario_id"].to_numpy()[own], hydros["stage_id"].to_numpy()[own]
    storage[at] = hydros["storage_final_hm3"].to_numpy()[own]
    one = reservoir_risk(tables, "Fork", 40.0)
    assert [each.probability_below for each in one.stages] == pytest.approx(
        (storage < one.level_hm3 * (1 - 1e-9)).mean(axis=0).tolist()
    )
    assert [each.p05_hm3 for each in one.stages] == pytest.approx(np.quantile(storage, 0.05, axis=0).tolist())
    with pytest.raises(OptionError, match="expected 0 to 100"):
        reservoir_risk(tables, None, 120.0)


def test_convergence_says_on_what_evidence(tables: RunTables) -> None:
    found = is_converged(tables, more_iterations=10)
    history = tables.results.convergence
    assert found.iterations == len(history) == 12
    assert found.lower_bound == history["lower_bound"][11].as_py()
    gain = (found.lower_bound - history["lower_bound"][1].as_py()) / abs(found.lower_bound)
    assert found.bound_gain_last == pytest.approx(gain)
    assert found.verdict != "converged"  # twelve iterations are few, and the bound still moves
    assert found.more_training_s is not None
    assert found.more_training_s > 0.0
    assert found.more_lps == 10 * np.mean(history["lp_solves"].to_numpy()[-10:])
