"""Cases that refer to what is not there, or lack what the equations need."""

from __future__ import annotations

import pyarrow as pa
from broken import (
    BUSES,
    CONFIG,
    CORRELATION,
    FACTORS,
    GENERIC,
    GEOMETRY,
    HISTORY,
    HYDROS,
    INFLOW,
    INITIAL,
    LAGS,
    LIMITS,
    LINES,
    LOAD,
    MATRIX,
    MODELS,
    PARAMETERS,
    PLANES,
    SIDES,
    STAGES,
    THERMALS,
    WIND,
    Broken,
    Said,
    broken,
    doubt,
)
from rich_case import again, become, cell, drop, historic_files, put, rows

REFERENCES: tuple[Broken, ...] = (
    broken(
        "two buses with one id",
        again(BUSES, "buses.0"),
        Said("duplicate_id", BUSES, "every id is used once, got 2 times", entity="bus 0"),
    ),
    broken(
        "two blocks with one id",
        put(STAGES, "stages.0.blocks.2.id", 1),
        Said("duplicate_id", STAGES, "every id is used once", entity="stage 0, block 1"),
        Said("block_ids", STAGES, "blocks are numbered 0, 1, 2, …, got [0, 1, 1]", entity="stage 0"),
        *(
            Said(
                "dangling_reference",
                FACTORS,
                "block_id is the id of a block of the stage, got 2",
                entity=f"bus_id {bus}, stage 0",
            )
            for bus in (0, 1)
        ),
    ),
    broken(
        "two storages of one plant",
        again(INITIAL, "storage.0", value_hm3=500.0),
        Said("duplicate_id", INITIAL, "every hydro_id is used once", entity="storage of hydro 0"),
    ),
    broken(
        "a row twice",
        rows(INFLOW, lambda t: pa.concat_tables([t, t.slice(0, 1)])),
        Said("duplicate_row", INFLOW, "key of its own, got 2 rows", where="hydro_id 0, stage_id -2"),
    ),
    broken(
        "a thermal plant on no bus",
        put(THERMALS, "thermals.3.bus_id", 9),
        Said("dangling_reference", THERMALS, "bus_id is the id of a bus, got 9", entity="thermal 3"),
    ),
    broken(
        "a line to nowhere",
        put(LINES, "lines.0.target_bus_id", 5),
        Said("dangling_reference", LINES, "target_bus_id is the id of a bus, got 5", entity="line 0"),
    ),
    broken(
        "turbines on no bus",
        put(HYDROS, "hydros.2.unit_groups.0.bus_id", -1),
        Said("dangling_reference", HYDROS, "is the id of a bus, got -1", entity="hydro 2, unit group 0"),
    ),
    broken(
        "water that flows to no plant",
        put(HYDROS, "hydros.0.downstream_id", 77),
        Said("dangling_reference", HYDROS, "downstream_id is the id of a hydro, got 77", entity="hydro 0"),
    ),
    broken(
        "a cycle in the cascade",
        put(HYDROS, "hydros.3.downstream_id", 0),
        Said("cascade_cycle", HYDROS, "water flows down to the sea, got 0 → 1 → 3 → 0", entity="hydro 0"),
    ),
    broken(
        "a plant below itself",
        put(HYDROS, "hydros.4.downstream_id", 4),
        Said("cascade_cycle", HYDROS, "got 4 → 4", entity="hydro 4"),
    ),
    broken(
        "statistics of a plant that does not exist",
        cell(INFLOW, "hydro_id", 24, 8),
        Said("dangling_reference", INFLOW, "hydro_id is an id in hydros, got 8", where="hydro_id, row 24"),
        Said("missing_rows", INFLOW, "a row for every stage, got none for stage 2", entity="hydro 4"),
    ),
    broken(
        "a limit in a stage after the study",
        cell(LIMITS, "stage_id", 0, 3),
        Said("dangling_reference", LIMITS, "stage_id is the id of a stage, got 3", where="stage_id, row 0"),
    ),
    broken(
        "a factor of a block that does not exist",
        put(FACTORS, "load_factors.0.block_factors.1.block_id", 7),
        Said("dangling_reference", FACTORS, "id of a block of the stage, got 7", entity="bus_id 0, stage 0"),
    ),
    broken(
        "a correlation of a plant that does not exist",
        put(CORRELATION, "profiles.default.correlation_groups.0.entities.4.id", 9),
        Said(
            "dangling_reference",
            CORRELATION,
            "id is the id of a inflow, got 9",
            entity="profile 'default', group 'rivers'",
        ),
    ),
    broken(
        "a schedule of a profile that does not exist",
        put(CORRELATION, "schedule", [{"stage_id": 1, "profile_name": "wet"}]),
        Said(
            "dangling_reference",
            CORRELATION,
            "profile_name is the name of a profile, got wet",
            entity="schedule of stage 1",
        ),
    ),
    broken(
        "an expression that cannot be read",
        put(GENERIC, "constraints.0.expression", "thermal_generation(1) +"),
        Said("bad_expression", GENERIC, "expected", entity="constraint 0"),
    ),
    broken(
        "an expression about a plant that does not exist",
        put(GENERIC, "constraints.0.expression", "thermal_generation(40)"),
        Said("dangling_reference", GENERIC, "id of a member of thermals, got 40", entity="constraint 0"),
    ),
    broken(
        "a season that is not defined",
        put(STAGES, "stages.1.season_id", 12),
        Said("season_id", STAGES, "season_id is the id of a season, got 12", entity="stage 1"),
        Said(
            "season_month", STAGES, "seasons are months 0 to 11 where reservoirs evaporate", entity="hydro 0"
        ),
    ),
    broken(
        "a season that contradicts the date",
        put(STAGES, "stages.1.season_id", 6),
        Said(
            "season_date",
            STAGES,
            "season_id is that of start_date 2026-02-01, 1, got 6. Without a season_id it is taken from the date.",
            entity="stage 1",
        ),
    ),
)

#: The rich case becomes the one whose inflow model comes from history.
HISTORIC = (become(historic_files),)

COVERAGE: tuple[Broken, ...] = (
    broken(
        "an empty study",
        put(STAGES, "stages", []),
        Said("empty_study", STAGES, "a study has at least one stage"),
    ),
    broken(
        "a system without buses",
        put(BUSES, "buses", []),
        Said("empty_system", BUSES, "a system has at least one bus"),
    ),
    broken(
        "a stage without blocks",
        put(STAGES, "stages.2.blocks", []),
        Said("empty_stage", STAGES, "a stage has at least one block", entity="stage 2"),
        *(
            Said(
                "dangling_reference",
                FACTORS,
                f"id of a block of the stage, got {block}",
                entity=f"bus_id {bus}, stage 2",
            )
            for bus in (0, 1)
            for block in (0, 1, 2)
        ),
    ),
    broken(
        "a stage that is left out",
        put(STAGES, "stages.2.id", 3),
        Said("stage_ids", STAGES, "stages are numbered 0, 1, 2, …, got [0, 1, 3]"),
        *(
            Said("dangling_reference", file, "is the id of a stage, got 2", where=f"stage_id, row {row}")
            for file, row in ((SIDES, 2), (LAGS, 4), (INFLOW, 4), (LOAD, 2), (WIND, 2))
        ),
        *(
            Said(
                "dangling_reference",
                FACTORS,
                "stage_id is the id of a stage, got 2",
                entity=f"bus_id {bus}, stage 2",
            )
            for bus in (0, 1)
        ),
        *(
            Said("missing_rows", file, "got none for stage 3", entity=f"{what} {number}")
            for file, what, count in ((INFLOW, "hydro", 5), (LOAD, "bus", 2), (WIND, "source", 1))
            for number in range(count)
        ),
    ),
    broken(
        "a stage without openings",
        put(STAGES, "stages.0.num_openings", 0),
        Said("num_openings", STAGES, "num_openings is at least 1, got 0", entity="stage 0"),
    ),
    broken(
        "a stage without inflow statistics",
        rows(INFLOW, lambda t: t.slice(0, 24)),
        Said("missing_rows", INFLOW, "a row for every stage, got none for stage 2", entity="hydro 4"),
    ),
    broken(
        "a bus without load statistics",
        rows(LOAD, lambda t: t.slice(0, 3)),
        Said("missing_rows", LOAD, "got none for stages 0, 1, 2", entity="bus 1"),
    ),
    broken(
        "a source without statistics in a stage",
        rows(WIND, lambda t: t.slice(1)),
        Said("missing_rows", WIND, "got none for stage 0", entity="source 0"),
    ),
    broken(
        "a plant without productivity",
        drop(MODELS, "production_models.0.stage_ranges.0.productivity_mw_per_m3s"),
        Said("missing_productivity", MODELS, "got none for stage 0, 1, 2", entity="hydro 0"),
    ),
    broken(
        "a production model that ends too early",
        put(MODELS, "production_models.1.stage_ranges.0.end_stage_id", 0),
        Said(
            "missing_model",
            MODELS,
            "a stage range covers every stage, got none for stage 1, 2",
            entity="hydro 1",
        ),
    ),
    broken(
        "planes of another plant",
        rows(PLANES, lambda t: t.set_column(0, "hydro_id", pa.array([3, 3], pa.int32()))),
        Said("missing_planes", PLANES, "planes in every stage, got none for stage 0, 1, 2", entity="hydro 4"),
    ),
    broken(
        "evaporation without geometry",
        rows(GEOMETRY, lambda t: t.slice(0, 0)),
        Said("missing_geometry", GEOMETRY, "a plant with evaporation has a geometry", entity="hydro 0"),
    ),
    broken(
        "evaporation of eleven months",
        drop(HYDROS, "hydros.0.evaporation.coefficients_mm.11"),
        Said("twelve_months", HYDROS, "coefficients_mm has 12 values, got 11", entity="hydro 0"),
    ),
    broken(
        "a plant without turbines",
        put(HYDROS, "hydros.1.unit_groups", []),
        Said("no_unit_group", HYDROS, "a plant has a unit group", entity="hydro 1"),
    ),
    broken(
        "no iteration limit",
        put(CONFIG, "training.stopping_rules", [{"type": "time_limit", "seconds": 5.0}]),
        Said(
            "no_iteration_limit",
            CONFIG,
            "one of the stopping rules is an iteration_limit",
            where="training.stopping_rules",
        ),
    ),
    broken(
        "external scenarios that are not there",
        put(CONFIG, "training.scenario_source", {"seed": 1, "inflow": {"scheme": "external"}}),
        Said(
            "missing_scenarios",
            "scenarios/external_inflow_scenarios.parquet",
            "since training takes inflow from it",
        ),
    ),
    broken(
        "out-of-sample draws without a seed",
        put(CONFIG, "training.scenario_source", {"inflow": {"scheme": "out_of_sample"}}),
        Said(
            "missing_seed",
            CONFIG,
            "a seed is needed for the scheme out_of_sample",
            where="training.scenario_source.seed",
        ),
    ),
    broken(
        "openings from a file that is not there",
        put(CONFIG, "training.scenario_source", {"openings": {"source": "file"}}),
        Said(
            "missing_scenarios",
            "scenarios/noise_openings.parquet",
            "the file has openings, since training reads them from it",
        ),
    ),
    broken(
        "a matrix of another size",
        drop(CORRELATION, f"{MATRIX}.4"),
        Said(
            "matrix_shape",
            CORRELATION,
            "the matrix is 5 × 5, as there are entities, got 4 rows of [5]",
            entity="profile 'default', group 'rivers'",
        ),
    ),
    broken(
        "a parameter without a value",
        put(PARAMETERS, "scalar_parameters.0.kind", "per_stage"),
        *(
            Said(
                "missing_parameter",
                PARAMETERS,
                "has a value where a constraint uses it. Its kind is 'per_stage'",
                entity=f"parameter 'share', constraint 0, stage {stage}, block 0",
            )
            for stage in (0, 1, 2)
        ),
    ),
    Broken(
        "seasons that are not months, for a model from history",
        (*HISTORIC, put(STAGES, "season_definitions.cycle_type", "custom")),
        (
            Said(
                "monthly_seasons",
                STAGES,
                "seasons 0 to 11 are the months, where inflow models are fitted to history",
                where="season_definitions",
            ),
        ),
    ),
    Broken(
        "history with a gap",
        (*HISTORIC, rows(HISTORY, lambda t: pa.concat_tables([t.slice(0, 30), t.slice(31)]))),
        (Said("history_gaps", HISTORY, "one unbroken span, got 71 common months. Fill the gaps."),),
    ),
    Broken(
        "too few years of history",
        (*HISTORIC, put(CONFIG, "estimation.min_observations_per_season", 30)),
        (Said("short_history", HISTORY, "every month is seen in 30 years"),),
    ),
    Broken(
        "years without history",
        (*HISTORIC, put(CONFIG, "training.scenario_source.historical_years", [1999])),
        (Said("no_window", HISTORY, "covers all stages of every plant"),),
    ),
    broken(
        "lags without observations",
        put(INITIAL, "recent_observations", []),
        *(
            doubt("no_observations", INITIAL, "Without them its lags start at 0.", entity=f"hydro {hydro}")
            for hydro in range(5)
        ),
    ),
)

BROKEN_REFERENCES: tuple[Broken, ...] = (*REFERENCES, *COVERAGE)
