"""A small case with something in nearly every file, to break in many ways."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import case_files
from pycobre.hydro.model import Case
from pycobre.hydro.model.config import (
    ClassScheme,
    EstimationConfig,
    IterationLimit,
    SampledPasses,
    SampledScenarios,
    ScenarioSource,
)
from pycobre.hydro.model.constraints import (
    FphaPlanes,
    GenericBounds,
    GenericConstraint,
    HydroBounds,
    HydroPenaltyTable,
    LineBounds,
    ScalarParameter,
    Slack,
    ThermalBounds,
)
from pycobre.hydro.model.production import FphaConfig, StageRange, StageRangeProduction
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    BlockFactor,
    InflowHistory,
    InflowStats,
    LoadStats,
    SourceFactors,
    SourceStats,
)
from pycobre.hydro.model.system import (
    EnergyContract,
    NonControllableSource,
    PowerLimits,
    PumpingFlow,
    PumpingStation,
)
from pycobre.hydro.model.table import Table

STAGES = 3


def shortened(case: Case, stages: int, openings: int) -> Case:
    """The first stages of a case, with fewer openings."""

    def cut(table: Table) -> Table:
        keep = table.stage_id < stages  # type: ignore[attr-defined]
        return type(table)(**{f.name: getattr(table, f.name)[keep] for f in fields(table)})

    return replace(
        case,
        stages=tuple(replace(stage, num_openings=openings) for stage in case.stages[:stages]),
        inflow_stats=cut(case.inflow_stats),
        ar_coefficients=cut(case.ar_coefficients),
        load_stats=cut(case.load_stats),
        load_factors=tuple(f for f in case.load_factors if f.stage_id < stages),
    )


def rich() -> Case:
    """Three months of the cascade, with wind, random load, a contract, a pump, planes, a constraint and overrides."""
    case = shortened(EXAMPLES["cascade"].build(), STAGES, openings=2)
    long_ago = case.buses[0].operational_start_date
    here = {"operational_start_date": long_ago, "bus_id": 0}
    stage = np.arange(STAGES)
    one, stage_one = np.zeros(1), np.ones(1)
    load = case.load_stats
    planes = StageRange(start_stage_id=0, model="fpha", fpha_config=FphaConfig(source="precomputed"))
    return replace(
        case,
        name="rich",
        config=replace(
            case.config,
            training=replace(
                case.config.training,
                selection=SampledPasses(forward_passes=1),
                stopping_rules=(IterationLimit(limit=1),),
            ),
            simulation=replace(case.config.simulation, selection=SampledScenarios(num_scenarios=2)),
        ),
        non_controllable_sources=(NonControllableSource(id=0, name="Wind", max_generation_mw=40.0, **here),),
        energy_contracts=(
            EnergyContract(
                id=0,
                name="Import",
                type="import",
                price_per_mwh=400.0,
                limits=PowerLimits(min_mw=0.0, max_mw=50.0),
                **here,
            ),
        ),
        pumping_stations=(
            PumpingStation(
                id=0,
                name="Lift",
                source_hydro_id=3,
                destination_hydro_id=2,
                consumption_mw_per_m3s=0.3,
                flow=PumpingFlow(min_m3s=0.0, max_m3s=20.0),
                **here,
            ),
        ),
        production_models=(
            *case.production_models[:-1],
            StageRangeProduction(hydro_id=4, stage_ranges=(planes,)),
        ),
        fpha_planes=FphaPlanes(
            hydro_id=np.full(2, 4),
            plane_id=np.arange(2),
            gamma_0=np.array([0.0, 2.0]),
            gamma_v=np.array([0.001, 0.0]),
            gamma_q=np.array([0.22, 0.2]),
            gamma_s=np.array([-0.001, 0.0]),
        ),
        load_stats=LoadStats(
            bus_id=load.bus_id,
            stage_id=load.stage_id,
            mean_mw=load.mean_mw,
            std_mw=np.where(load.bus_id == 1, 30.0, 0.0),
        ),
        source_stats=SourceStats(
            ncs_id=np.zeros(STAGES), stage_id=stage, mean=np.full(STAGES, 0.4), std=np.full(STAGES, 0.1)
        ),
        source_factors=(
            SourceFactors(ncs_id=0, stage_id=1, block_factors=(BlockFactor(block_id=0, factor=0.5),)),
        ),
        generic_constraints=(
            GenericConstraint(
                id=0,
                name="reserve",
                expression="thermal_generation(1) + @share * hydro_generation(0)",
                slack=Slack(enabled=True, penalty=700.0),
            ),
        ),
        generic_parameters=(ScalarParameter(id=0, name="share", kind="constant", value=0.5),),
        generic_bounds=GenericBounds(
            constraint_id=np.zeros(STAGES), stage_id=stage, bound_lower=np.full(STAGES, 20.0)
        ),
        thermal_bounds=ThermalBounds(thermal_id=one, stage_id=stage_one, max_generation_mw=np.array([90.0])),
        hydro_bounds=HydroBounds(hydro_id=one, stage_id=stage_one, max_storage_hm3=np.array([3000.0])),
        line_bounds=LineBounds(line_id=one, stage_id=stage_one, direct_mw=np.array([300.0])),
        hydro_penalties=HydroPenaltyTable(hydro_id=one, stage_id=stage_one, spillage_cost=np.array([0.05])),
    )


def historic() -> Case:
    """The rich case with history in place of an inflow model, replayed in training, openings by Latin hypercube."""
    case, years = rich(), 6
    months = np.arange("2018-01", f"{2018 + years}-01", dtype="datetime64[M]")
    count, plants = months.size, len(case.hydros)
    rng = np.random.default_rng(3)
    source = ScenarioSource(
        seed=9,
        inflow=ClassScheme(scheme="historical"),
        load=ClassScheme(scheme="out_of_sample"),
        historical_years=(2019, 2020, 2022),
    )
    training = replace(case.config.training, scenario_source=source)
    return replace(
        case,
        name="historic",
        config=replace(
            case.config,
            training=training,
            estimation=EstimationConfig(max_order=2, min_observations_per_season=5),
        ),
        stages=tuple(replace(stage, sampling_method="lhs") for stage in case.stages),
        inflow_stats=InflowStats.empty(),
        ar_coefficients=ArCoefficients.empty(),
        correlation=None,
        inflow_history=InflowHistory(
            hydro_id=np.repeat(np.arange(plants), count),
            start_date=np.tile(months.astype("datetime64[D]"), plants),
            end_date=np.tile((months + 1).astype("datetime64[D]"), plants),
            value_m3s=np.round(rng.gamma(4.0, 25.0, plants * count), 1),
        ),
    )


Files = dict[str, bytes]
Mutation = Callable[[Files], None]


@cache
def _files(make: Callable[[], Case]) -> Files:
    return case_files(make())


def files() -> Files:
    """Of the rich case, to be changed."""
    return dict(_files(rich))


def historic_files() -> Files:
    return dict(_files(historic))


def table_of(content: bytes) -> pa.Table:
    return pq.ParquetFile(io.BytesIO(content)).read()


def parquet_of(table: pa.Table, compression: str = "zstd") -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression=compression)
    return bytes(sink.getvalue())


def become(make: Callable[[], Files]) -> Mutation:
    """Another case altogether."""

    def mutate(all_files: Files) -> None:
        all_files.clear()
        all_files.update(make())

    return mutate


def edit(file: str, change: Callable[[Any], object]) -> Mutation:
    """Change the content of a JSON file in place."""

    def mutate(all_files: Files) -> None:
        data = json.loads(all_files[file])
        change(data)
        all_files[file] = json.dumps(data).encode()

    return mutate


def put(file: str, path: str, value: Any) -> Mutation:
    """Set what is at a path of a JSON file (`hydros.0.name`)."""

    def change(data: Any) -> None:
        holder, last = _holder(data, path)
        holder[last] = value

    return edit(file, change)


def drop(file: str, path: str) -> Mutation:
    def change(data: Any) -> None:
        holder, last = _holder(data, path)
        del holder[last]

    return edit(file, change)


def again(file: str, path: str, **changes: Any) -> Mutation:
    """Add a copy of a list's element to the list, changed."""

    def change(data: Any) -> None:
        holder, last = _holder(data, path)
        holder.append(holder[last] | changes)

    return edit(file, change)


def keys(file: str, path: str, old: str, new: str) -> Mutation:
    """Rename a key of the object at a path."""

    def change(data: Any) -> None:
        holder = at(data, path)
        holder[new] = holder.pop(old)

    return edit(file, change)


def at(data: Any, path: str) -> Any:
    """What is at a path of a JSON document."""
    for step in path.split(".") if path else ():
        data = data[int(step) if isinstance(data, list) else step]
    return data


def _holder(data: Any, path: str) -> tuple[Any, Any]:
    parents, _, last = path.rpartition(".")
    holder = at(data, parents)
    return holder, int(last) if isinstance(holder, list) else last


def rows(file: str, change: Callable[[pa.Table], pa.Table]) -> Mutation:
    """Replace a Parquet file by a changed one."""

    def mutate(all_files: Files) -> None:
        all_files[file] = parquet_of(change(table_of(all_files[file])))

    return mutate


def cell(file: str, column: str, row: int, value: Any) -> Mutation:
    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        values[row] = value
        kind = table[column].type
        return table.set_column(table.column_names.index(column), column, pa.array(values, type=kind))

    return rows(file, change)


def raw(file: str, content: bytes) -> Mutation:
    def mutate(all_files: Files) -> None:
        all_files[file] = content

    return mutate


def without(file: str) -> Mutation:
    def mutate(all_files: Files) -> None:
        del all_files[file]

    return mutate
