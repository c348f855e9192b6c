"""From the 0.18 form back to the 0.5 form, as far as the 0.5 form can say it: what migration is tested with."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pycobre.hydro.files import case_files
from pycobre.hydro.model import Case

TURBINED = 0.02  # charged by 0.5 on FPHA plants only


def as_old_form(case: Case, *, seasons: bool = True) -> dict[str, bytes]:
    """The files of a case, said as 0.5 would; without `seasons` every stage is in season 0."""
    files = case_files(case)
    data = {name: json.loads(content) for name, content in files.items() if name.endswith(".json")}
    tables = {name: read(content) for name, content in files.items() if name.endswith(".parquet")}
    _config(data)
    _stages(data, seasons)
    _entities(data)
    _hydros(data, tables)
    _lags(data, tables)
    _constraints(data, tables)
    for content in data.values():
        content["$schema"] = "https://example.org/schema.json"
    written = {name: json.dumps(content).encode() for name, content in data.items()}
    return written | {name: snappy(table) for name, table in tables.items()}


def read(content: bytes) -> pa.Table:
    return pq.ParquetFile(io.BytesIO(content)).read()


def snappy(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    return bytes(sink.getvalue())


def _config(data: dict[str, Any]) -> None:
    config, hydro = data["config.json"], data["penalties.json"]["hydro"]
    config["training"]["forward_passes"] = config["training"].pop("selection")["forward_passes"]
    config["training"]["cut_selection"] = {"enabled": False, "method": "level1", "threshold": 0}
    simulation = config["simulation"]
    simulation["num_scenarios"] = (simulation.pop("selection", None) or {"num_scenarios": 1})["num_scenarios"]
    config["exports"] = {"training": True, "cuts": True, "stochastic": False, "states": False}
    cost = hydro.pop("inflow_nonnegativity_cost", None)
    if cost is not None:
        config["modeling"]["inflow_non_negativity"]["penalty_cost"] = cost
    hydro.pop("turbined_cost")
    hydro["fpha_turbined_cost"] = TURBINED
    data["penalties.json"]["version"] = "1.0"


def _stages(data: dict[str, Any], seasons: bool) -> None:
    for stage in data["stages.json"]["stages"]:
        stage["num_scenarios"] = stage.pop("num_openings")
    if not seasons:
        data["stages.json"].pop("season_definitions", None)
        for stage in (*data["stages.json"]["stages"], *data["stages.json"].get("pre_study_stages", [])):
            if "season_id" in stage:
                stage["season_id"] = 0


def _entities(data: dict[str, Any]) -> None:
    for content in data.values():
        for entities in content.values() if isinstance(content, dict) else ():
            for entity in entities if isinstance(entities, list) else ():
                if isinstance(entity, dict):
                    entity.pop("operational_start_date", None)


def _hydros(data: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    models = data.pop("system/hydro_production_models.json", {"production_models": []})["production_models"]
    kept = []
    by_hydro = {model["hydro_id"]: model for model in models}
    for hydro in data["system/hydros.json"]["hydros"]:
        (group,) = hydro.pop("unit_groups")
        hydro["bus_id"] = group["bus_id"]
        model = by_hydro[hydro["id"]]
        spans = model["stage_ranges"]
        base = spans[0].get("productivity_mw_per_m3s", 1.0)
        hydro["generation"]["productivity_mw_per_m3s"] = base
        if len(spans) > 1 or spans[0]["model"] == "fpha":
            for span in spans:
                value = span.pop("productivity_mw_per_m3s", None)
                if value not in (None, base):
                    span["productivity_override"] = value
            kept.append(model)
    if kept:
        data["system/hydro_production_models.json"] = {"production_models": kept}
    tables.pop("system/hydro_energy_productivity.parquet", None)


def _lags(data: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    initial = data["initial_conditions.json"]
    past: dict[int, list[tuple[str, float]]] = {}
    for seen in initial.pop("recent_observations", []):
        past.setdefault(seen["hydro_id"], []).append((seen["start_date"], seen["value_m3s"]))
    if past:
        initial["past_inflows"] = [
            {"hydro_id": h, "values_m3s": [value for _, value in sorted(values, reverse=True)]}
            for h, values in past.items()
        ]
    name = "scenarios/inflow_ar_coefficients.parquet"
    if name in tables:
        ratio = pa.array([0.9] * len(tables[name]))
        tables[name] = tables[name].append_column("residual_std_ratio", ratio)
    name = "scenarios/inflow_history.parquet"
    if name in tables:
        old = tables[name]
        tables[name] = pa.table(
            {"hydro_id": old["hydro_id"], "date": old["start_date"], "value_m3s": old["value_m3s"]}
        )


def _constraints(data: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    name = "constraints/generic_constraint_bounds.parquet"
    if name not in tables:
        return
    rows, sense = tables[name].to_pylist(), {}
    for row in rows:
        low, high = row.pop("bound_lower", None), row.pop("bound_upper", None)
        sense[row["constraint_id"]] = "==" if low == high else "<=" if low is None else ">="
        row["bound"] = high if low is None else low
        row.setdefault("block_id", None)
    for constraint in data["constraints/generic_constraints.json"]["constraints"]:
        constraint["sense"] = sense[constraint["id"]]
    tables[name] = pa.Table.from_pylist(rows)


def write(files: Mapping[str, bytes], root: Any) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
