"""What changed in config.json, stages.json, penalties.json and generic constraints."""

from __future__ import annotations

from typing import Any

from pycobre.hydro.files.old_files import OldCase

__all__ = ["migrate_config"]

OLD_SIMULATION_RULE_LIMIT = 100  # what 0.5 made of a `simulation` stopping rule
OLD_SCENARIOS = 2000


def migrate_config(case: OldCase) -> None:
    config = case.json["config.json"]
    _training(case, config.setdefault("training", {}))
    if "simulation" in config:
        _simulation(case, config["simulation"])
    hydro = case.json["penalties.json"]["hydro"]
    method = config.get("modeling", {}).get("inflow_non_negativity", {})
    if "penalty_cost" in method:
        hydro.setdefault("inflow_nonnegativity_cost", method.pop("penalty_cost"))
        method.pop("penalty_cost", None)
    policy = config.get("policy", {})
    policy.pop("validate_compatibility", None)
    if policy.get("boundary") and policy["boundary"].pop("source_stage", None) is not None:
        case.note("policy.boundary: the stage of the other study is now found by its date")
    if "exports" in config:
        kept = {
            name: config["exports"][name] for name in ("states", "stochastic") if name in config["exports"]
        }
        config["exports"] = kept
    for stage in case.stages:
        if "num_scenarios" in stage:
            stage["num_openings"] = stage.pop("num_scenarios")
    _generic_constraints(case)


def _training(case: OldCase, training: dict[str, Any]) -> None:
    passes = training.pop("forward_passes", None)
    if passes is not None:
        training["selection"] = {"method": "sampled", "forward_passes": passes}
    for name in ("cut_formulation", "forward_pass"):
        if training.pop(name, None) is not None:
            case.note(f"training.{name}: there is only one now; the key is left out")
    rules = training.get("stopping_rules") or []
    if any(rule.get("type") == "simulation" for rule in rules):
        case.note(
            "training.stopping_rules: the rule 'simulation' is gone; 0.5 took it for an iteration limit of "
            f"{OLD_SIMULATION_RULE_LIMIT}"
        )
        rules = [rule for rule in rules if rule.get("type") != "simulation"]
        if not any(rule.get("type") == "iteration_limit" for rule in rules):
            rules.append({"type": "iteration_limit", "limit": OLD_SIMULATION_RULE_LIMIT})
        training["stopping_rules"] = rules
    if "cut_selection" in training:
        training["cut_selection"] = _cut_selection(case, training["cut_selection"] or {})
    if "scenarios/noise_openings.parquet" in case.tables:
        source = training.setdefault("scenario_source", {}) or {}
        source["openings"] = {"source": "file"}
        training["scenario_source"] = source


def _cut_selection(case: OldCase, old: dict[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for name, now in (
        ("max_active_per_stage", "max_active_per_stage"),
        ("cut_activity_tolerance", "row_activity_tolerance"),
    ):
        if old.get(name) is not None:
            new[now] = old[name]
    if old.get("enabled") and old.get("method"):
        chosen: dict[str, Any] = {"method": old["method"], "check_frequency": old.get("check_frequency") or 5}
        if old["method"] == "domination":
            chosen["domination_tolerance"] = old.get("domination_epsilon") or float(old.get("threshold") or 0)
        else:
            case.note(
                f"training.cut_selection: {old['method']} now looks at the values of cuts at visited states; "
                "threshold and memory_window are left out"
            )
        new["selection"] = chosen
    return new


def _simulation(case: OldCase, simulation: dict[str, Any]) -> None:
    count = simulation.pop("num_scenarios", None)
    if simulation.get("enabled"):
        simulation["selection"] = {"method": "sampled", "num_scenarios": count or OLD_SCENARIOS}
    for name in ("output_mode", "output_path", "policy_type"):
        if simulation.pop(name, None) not in (None, "outer"):
            case.note(f"simulation.{name} had no effect any more and is left out")


def _generic_constraints(case: OldCase) -> None:
    data = case.json.get("constraints/generic_constraints.json")
    if data is None:
        return
    sense = {entry["id"]: entry.pop("sense", None) for entry in data["constraints"]}
    file = "constraints/generic_constraint_bounds.parquet"
    rows = case.rows(file)
    for row in rows:
        bound, relation = row.pop("bound"), sense.get(row["constraint_id"])
        row["bound_lower"] = bound if relation in (">=", "==") else None
        row["bound_upper"] = bound if relation in ("<=", "==") else None
    if rows:
        types = {"constraint_id": "int32", "stage_id": "int32", "block_id": "int32"}
        case.put_rows(file, rows, types | {"bound_lower": "float64", "bound_upper": "float64"})
