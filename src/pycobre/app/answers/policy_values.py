"""What a policy says of the future: the value of water, and the expected cost of all later stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.suggest import did_you_mean
from pycobre.app.answers.answer_records import CostToGo, WaterValue, WaterValuePoint
from pycobre.app.answers.case_records import Source
from pycobre.app.answers.grouping import Measure, grouped
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.table_scan import Comparison
from pycobre.app.results.files import read_json
from pycobre.app.results.layout import STUDY
from pycobre.errors import OptionError
from pycobre.sddp import Policy

__all__ = ["cost_to_go", "water_value"]

POINTS = 11


def water_value(
    tables: RunTables,
    policy: Policy,
    plant: str | int,
    stage: str | int,
    storages_hm3: Sequence[float] = (),
    state: Mapping[str, float] | None = None,
) -> WaterValue:
    """The value of one more hm³ in a reservoir at the end of a stage, at each of some storages of it.

    Without `storages_hm3`, eleven from the least to the largest. The other states are the simulation's means at that
    point, or what `state` says of them by name (`storage[FURNAS]`).
    """
    number, name = tables.entity("hydros", plant)
    where = tables.stage(stage)
    label = _storage_name(tables, policy, number, name)
    place = policy.state_names.index(label)
    reference, assumptions = _reference(tables, policy, where, state or {})
    low, high = _limits(tables, number)
    chosen = [float(each) for each in storages_hm3] or np.linspace(low, high, POINTS).tolist()
    outside = [each for each in chosen if not low - 1e-6 <= each <= high + 1e-6]
    if outside:
        assumptions.append(
            f"storages {outside} are outside {name}'s limits, {low:g} to {high:g} hm³: the cuts go on there"
        )
    points = []
    for storage in chosen:
        at = reference.copy()
        at[place] = storage
        found = policy.evaluate(index=_position(tables, policy, where), state=at)
        points.append(WaterValuePoint(storage, -float(found.subgradient[place]), found.value, found.slot))
    others = {
        key: float(value) for key, value in zip(policy.state_names, reference, strict=True) if key != label
    }
    return WaterValue(
        run=tables.run,
        plant=name,
        plant_id=number,
        stage=where,
        unit="$/hm3",
        points=points,
        reference=others,
        assumptions=assumptions,
        sources=[tables.policy_source(), *_means_source(tables)],
    )


def cost_to_go(
    tables: RunTables, policy: Policy, stage: str | int, state: Mapping[str, float] | None = None
) -> CostToGo:
    """What all stages after `stage` are expected to cost from a state, and how that changes with each state.

    States that are not given are the simulation's means at the end of the stage.
    """
    where = tables.stage(stage)
    reference, assumptions = _reference(tables, policy, where, state or {})
    found = policy.evaluate(index=_position(tables, policy, where), state=reference)
    names = policy.state_names
    return CostToGo(
        run=tables.run,
        stage=where,
        value=found.value,
        cut=found.slot,
        gradient={name: float(value) for name, value in zip(names, found.subgradient, strict=True)},
        state={name: float(value) for name, value in zip(names, reference, strict=True)},
        assumptions=assumptions,
        sources=[tables.policy_source(), *_means_source(tables)],
    )


def _position(tables: RunTables, policy: Policy, stage: int) -> int:
    """The node of a stage; the last stage hands nothing on."""
    position = [number for number, _ in tables.stages].index(stage)
    if len(policy.node_names) != len(tables.stages):
        raise OptionError(
            f"run {tables.run}: expected stages that follow one another, got a graph of {len(policy.node_names)} "
            "nodes. `pycobre.Policy.evaluate` answers for each node."
        )
    if policy.theta_lower[position] == -np.inf:
        raise OptionError(
            f"stage {stage}: expected one that others follow, got the last: water that is left has no value."
        )
    return position


def _reference(
    tables: RunTables, policy: Policy, stage: int, given: Mapping[str, float]
) -> tuple[F64, list[str]]:
    """The states at the end of a stage: as given, else the simulation's means, else zero; and what was assumed."""
    _position(tables, policy, stage)
    names = policy.state_names
    state = np.zeros(len(names))
    known = np.zeros(len(names), np.bool_)
    assumptions: list[str] = []
    if "hydros" in tables.available:
        means = _means(tables, stage)
        for place, name in enumerate(names):
            if name in means:
                state[place], known[place] = means[name], True
        if known.any():
            assumptions.append("states that were not given are means over the simulated scenarios")
    for name, value in given.items():
        label = name if name in names else f"storage[{name}]"
        if label not in names:
            raise OptionError(f"state {name!r}: there is no such state.{did_you_mean(label, names)}")
        state[names.index(label)], known[names.index(label)] = float(value), True
    if missing := [name for place, name in enumerate(names) if not known[place]]:
        listed = ", ".join(missing[:5]) + (" and others" if len(missing) > 5 else "")
        assumptions.append(f"{listed}: taken as 0, because the tables do not hold them")
    return state, assumptions


def _means(tables: RunTables, stage: int) -> dict[str, float]:
    """Mean storage and lagged inflows by the name of the state, as a stage hands them on."""
    table = tables.open("hydros")
    stages = [number for number, _ in tables.stages]
    labels = dict(_labels(tables))
    found: dict[str, float] = {}
    position = stages.index(stage)
    for back in range(min(13, position + 1)):
        where = [Comparison("stage_id", "==", (float(stages[position - back]),))]
        measures = [Measure("mean", "storage_final_hm3"), Measure("mean", "inflow_m3s")]
        keys, (storage, inflow), _ = grouped(table, ("block_id", "hydro_id"), measures, where)
        for plant, stored, came in zip(keys["hydro_id"].tolist(), storage, inflow, strict=True):
            if back == 0:
                found[f"storage[{labels[plant]}]"] = float(stored)  # the last block is the stage's end
            found[f"inflow_lag[{back + 1},{labels[plant]}]"] = float(came)
    return found


def _storage_name(tables: RunTables, policy: Policy, number: int, name: str) -> str:
    label = f"storage[{dict(_labels(tables))[number]}]"
    if label not in policy.state_names:
        raise OptionError(f"plant {name!r}: expected one whose storage is a state, got one without.")
    return label


def _labels(tables: RunTables) -> list[tuple[int, str]]:
    """Names as the LPs have them: with the id where a name is used twice."""
    entities = tables.entities("hydros")
    names = [name for _, name in entities]
    return [
        (
            number,
            name if names.count(name) == 1 and name and not set(name) & set("[],") else f"{name}#{number}",
        )
        for number, name in entities
    ]


def _limits(tables: RunTables, number: int) -> tuple[float, float]:
    for each in read_json(tables.results.directory / STUDY).get("system", {}).get("hydros", []):
        if int(each["id"]) == number:
            return float(each["min_storage_hm3"]), float(each["max_storage_hm3"])
    raise OptionError(f"plant {number}: expected it in {STUDY}, got none. Run the case again.")


def _means_source(tables: RunTables) -> list[Source]:
    return [tables.source("hydros")] if "hydros" in tables.available else []
