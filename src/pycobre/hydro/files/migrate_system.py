"""What changed in system/: dates, unit groups, production models, turbined costs, exchange factors."""

from __future__ import annotations

from datetime import date
from typing import Any

from pycobre.hydro.files.old_files import LONG_AGO, OldCase

__all__ = ["migrate_system"]

MODELS = "system/hydro_production_models.json"
PRODUCTIVITY = "system/hydro_energy_productivity.parquet"
HYDRO_PENALTIES = "constraints/penalty_overrides_hydro.parquet"
PRODUCTIVITY_COLUMNS = {
    "hydro_id": "int32",
    "stage_id": "int32",
    "equivalent_productivity_mw_per_m3s": "float64",
    "reference_outflow_m3s": "float64",
    "specific_productivity_mw_per_m3s_per_m": "float64",
}
LIMITS = ("min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw")
DATED = (
    *("buses", "lines", "thermals", "hydros"),
    *("non_controllable_sources", "pumping_stations", "energy_contracts"),
)


def migrate_system(case: OldCase) -> None:
    first = date.fromisoformat(case.stages[0]["start_date"])
    for name in DATED:
        for entity in case.entities(name):
            entity.setdefault("operational_start_date", min(LONG_AGO, first).isoformat())
    for name in ("pumping_stations", "energy_contracts"):
        if case.entities(name):
            case.note(
                f"system/{name}.json: 0.5 read them but did not model them; now they are part of the LP"
            )
    for thermal in case.entities("thermals"):
        lead = thermal.pop("gnl_config", None)
        if lead is not None:
            thermal["anticipated_config"] = {"lead_stages": lead["lag_stages"]}
    _hydros(case)
    _exchange_factors(case)


def _hydros(case: OldCase) -> None:
    models = case.json.get(MODELS, {}).get("production_models", [])
    by_hydro = {model["hydro_id"]: model for model in models}
    head_stages: dict[int, set[int]] = {}  # FPHA plants and the stages in which they are
    rows: list[dict[str, Any]] = []
    for hydro in case.entities("hydros"):
        rho = hydro["generation"].pop("productivity_mw_per_m3s", None)
        if hydro.get("filling") and "filling_inflow_m3s" in hydro["filling"]:
            hydro["filling"]["filling_min_rate_m3s"] = hydro["filling"].pop("filling_inflow_m3s")
        if "unit_groups" not in hydro:
            limits = {name: hydro["generation"][name] for name in LIMITS}
            name = f"{hydro['name']}-G0"
            hydro["unit_groups"] = [{"id": 0, "name": name, "bus_id": hydro.pop("bus_id")} | limits]
        model = by_hydro.get(hydro["id"])
        if model is None:
            model = _one_range(hydro, hydro["generation"]["model"], rho, 0, None)
            models.append(model)
        used = _model_by_stage(case, model, hydro, rho)
        head_stages[hydro["id"]] = {stage for stage, name in used.items() if name == "fpha"}
        mean = _mean_productivity(hydro) if rho is None else rho
        rows += [
            {"hydro_id": hydro["id"], "stage_id": stage, "equivalent_productivity_mw_per_m3s": mean}
            for stage, name in used.items()
            if name in ("fpha", "default")
        ]
    if models:
        case.json.setdefault(MODELS, {})["production_models"] = models
    if rows and PRODUCTIVITY not in case.tables:
        case.put_rows(PRODUCTIVITY, rows, PRODUCTIVITY_COLUMNS)
    _turbined_costs(case, head_stages)
    _rename(case, "constraints/hydro_bounds.parquet", "filling_inflow_m3s", "filling_min_rate_m3s")


def _mean_productivity(hydro: dict[str, Any]) -> float:
    """Power per flow at full load: what FPHA plants report energy with, without effect on their operation."""
    power, flow = hydro["generation"]["max_generation_mw"], hydro["generation"]["max_turbined_m3s"]
    return float(power / flow) if power > 0 and flow > 0 else 1.0


def _one_range(
    hydro: dict[str, Any], model: str, rho: float | None, start: int, end: int | None
) -> dict[str, Any]:
    span = _range(model, rho, start, end)
    return {"hydro_id": hydro["id"], "selection_mode": "stage_ranges", "stage_ranges": [span]}


def _range(model: str, rho: float | None, start: int, end: int | None) -> dict[str, Any]:
    span = {"start_stage_id": start, "end_stage_id": end, "model": model}
    return span | ({"productivity_mw_per_m3s": rho} if model != "fpha" and rho is not None else {})


def _model_by_stage(
    case: OldCase, model: dict[str, Any], hydro: dict[str, Any], rho: float | None
) -> dict[int, str]:
    """Give every part of a production model its productivity, fill its gaps, and say what is used when.

    "default" is a stage whose productivity the model cannot say itself.
    """
    seasonal = model.get("selection_mode") == "seasonal"
    for span in model.get("seasons" if seasonal else "stage_ranges", []):
        own = span.pop("productivity_override", None)
        if span["model"] != "fpha" and span.get("productivity_mw_per_m3s") is None:
            span["productivity_mw_per_m3s"] = rho if own is None else own
    used: dict[int, str] = {}
    base = hydro["generation"]["model"]
    for stage in case.stages:
        if seasonal:
            names = {s["season_id"]: s["model"] for s in model.get("seasons", [])}
            default = "default" if model["default_model"] != "fpha" else "fpha"
            used[stage["id"]] = names.get(stage.get("season_id"), default)
            continue
        spans = [
            span
            for span in model["stage_ranges"]
            if span["start_stage_id"] <= stage["id"]
            and (span.get("end_stage_id") is None or stage["id"] <= span["end_stage_id"])
        ]
        if not spans:
            spans = [_range(base, rho, stage["id"], stage["id"])]
            model["stage_ranges"].append(spans[0])
        used[stage["id"]] = spans[0]["model"]
    if not seasonal:
        model["stage_ranges"].sort(key=lambda span: int(span["start_stage_id"]))
    return used


def _turbined_costs(case: OldCase, head_stages: dict[int, set[int]]) -> None:
    """0.5 charged turbined water of FPHA plants only; where all plants pay now, the others pay nothing."""
    hydro_costs = case.json["penalties.json"]["hydro"]
    cost = hydro_costs.pop("fpha_turbined_cost", None)
    if cost is None:
        return
    every = {stage["id"] for stage in case.stages}
    everywhere = bool(head_stages) and all(stages == every for stages in head_stages.values())
    hydro_costs["turbined_cost"] = cost if everywhere else 0.0
    sometimes: list[tuple[int, set[int], float]] = []
    for hydro in case.entities("hydros"):
        own = (hydro.get("penalties") or {}).pop("fpha_turbined_cost", None)
        stages, mine = head_stages[hydro["id"]], cost if own is None else own
        if stages == every and (own is not None or not everywhere):
            hydro["penalties"] = (hydro.get("penalties") or {}) | {"turbined_cost": mine}
        elif stages and stages != every:
            sometimes.append((hydro["id"], stages, mine))
        if not hydro.get("penalties"):
            hydro.pop("penalties", None)
    _rename(case, HYDRO_PENALTIES, "fpha_turbined_cost", "turbined_cost")
    _turbined_rows(case, head_stages, sometimes)


def _turbined_rows(
    case: OldCase, head_stages: dict[int, set[int]], sometimes: list[tuple[int, set[int], float]]
) -> None:
    rows = case.rows(HYDRO_PENALTIES)
    for row in rows:
        if row["stage_id"] not in head_stages.get(row["hydro_id"], ()):
            row["turbined_cost"] = None
    have = {(row["hydro_id"], row["stage_id"]): row for row in rows}
    for hydro_id, stages, cost in sometimes:
        for stage in sorted(stages):
            row = have.setdefault((hydro_id, stage), {"hydro_id": hydro_id, "stage_id": stage})
            if row.get("turbined_cost") is None:
                row["turbined_cost"] = cost
    if have:
        names = sorted({name for row in have.values() for name in row} - {"hydro_id", "stage_id"})
        types = {"hydro_id": "int32", "stage_id": "int32"} | dict.fromkeys(names, "float64")
        case.put_rows(HYDRO_PENALTIES, [have[key] for key in sorted(have)], types)


def _exchange_factors(case: OldCase) -> None:
    """Factors of line capacities by block become capacities by block."""
    data = case.json.pop("constraints/exchange_factors.json", None)
    if data is None:
        return
    file = "constraints/line_bounds.parquet"
    rows = case.rows(file)
    stage_rows = {(row["line_id"], row["stage_id"]): row for row in rows if row.get("block_id") is None}
    capacity = {line["id"]: line["capacity"] for line in case.entities("lines")}
    for entry in data["exchange_factors"]:
        for factor in entry["block_factors"]:
            row = {"line_id": entry["line_id"], "stage_id": entry["stage_id"], "block_id": factor["block_id"]}
            for side in ("direct", "reverse"):
                whole = stage_rows.get((entry["line_id"], entry["stage_id"]), {}).get(f"{side}_mw")
                base = capacity[entry["line_id"]][f"{side}_mw"] if whole is None else whole
                row[f"{side}_mw"] = base * factor[f"{side}_factor"]
            rows.append(row)
    types = {"line_id": "int32", "stage_id": "int32", "block_id": "int32"}
    case.put_rows(file, rows, types | {"direct_mw": "float64", "reverse_mw": "float64"})


def _rename(case: OldCase, file: str, old: str, new: str) -> None:
    table = case.tables.get(file)
    if table is not None and old in table.column_names:
        case.tables[file] = table.rename_columns([new if n == old else n for n in table.column_names])
