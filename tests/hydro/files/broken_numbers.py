"""Cases with numbers that no system has, and with what is not supported yet."""

from __future__ import annotations

import pyarrow as pa
from broken import (
    CONFIG,
    CORRELATION,
    COSTS,
    GENERIC,
    HYDROS,
    INFLOW,
    INITIAL,
    LAGS,
    LIMITS,
    LINE_LIMITS,
    LINES,
    MATRIX,
    MODELS,
    PENALTIES,
    PLANES,
    SIDES,
    STAGES,
    THERMAL_LIMITS,
    THERMALS,
    Broken,
    Said,
    broken,
    doubt,
)
from rich_case import at, cell, drop, edit, put, rows

PHYSICAL: tuple[Broken, ...] = (
    broken(
        "a negative capacity",
        put(LINES, "lines.0.capacity.reverse_mw", -450.0),
        Said("negative", LINES, "capacity.reverse_mw is not negative, got -450", entity="line 0"),
    ),
    broken(
        "a line from a bus to itself",
        put(LINES, "lines.0.target_bus_id", 0),
        Said("loop", LINES, "a line joins two buses", entity="line 0"),
    ),
    broken(
        "a minimum above the maximum",
        put(THERMALS, "thermals.0.generation.min_mw", 130.0),
        Said("inverted_bounds", THERMALS, "not above the maximum, got 130 and 120", entity="thermal 0"),
        Said(
            "inverted_bounds",
            THERMAL_LIMITS,
            "min_generation_mw is not above max_generation_mw, got 130 and 90",
            entity="thermal_id 0, stage 1",
        ),
    ),
    broken(
        "a stage's maximum below the plant's minimum",
        cell(LIMITS, "max_storage_hm3", 0, 200.0),
        Said(
            "inverted_bounds",
            LIMITS,
            "min_storage_hm3 is not above max_storage_hm3, got 300 and 200",
            entity="hydro_id 0, stage 1",
        ),
    ),
    broken(
        "a negative limit of a stage",
        cell(LINE_LIMITS, "direct_mw", 0, -1.0),
        Said(
            "negative",
            LINE_LIMITS,
            "direct_mw is not negative, got -1",
            where="direct_mw, row 0",
            entity="line_id 0, stage 1",
        ),
    ),
    broken(
        "a negative penalty",
        put(PENALTIES, "hydro.spillage_cost", -0.01),
        Said("negative", PENALTIES, "spillage_cost is not negative, got -0.01", entity="hydro"),
    ),
    broken(
        "a negative penalty of a stage",
        cell(COSTS, "spillage_cost", 0, -1.0),
        Said(
            "negative",
            COSTS,
            "spillage_cost is not negative",
            where="spillage_cost, row 0",
            entity="hydro_id 0, stage 1",
        ),
    ),
    broken(
        "a negative deviation",
        cell(INFLOW, "std_m3s", 4, -3.0),
        Said("negative", INFLOW, "std_m3s is not negative, got -3", where="std_m3s, row 4"),
    ),
    broken(
        "a lag of zero",
        cell(LAGS, "lag", 0, 0),
        Said("lag", LAGS, "lags count from 1", where="lag, row 0"),
    ),
    broken(
        "a stage that ends before it starts",
        put(STAGES, "stages.1.end_date", "2026-01-15"),
        Said("dates", STAGES, "a stage ends after it starts, got 2026-02-01 to 2026-01-15", entity="stage 1"),
    ),
    broken(
        "a block without hours",
        put(STAGES, "stages.0.blocks.1.hours", 0.0),
        Said("hours", STAGES, "a block has hours, got 0", entity="stage 0, block 1"),
    ),
    broken(
        "a risk measure of nothing",
        put(STAGES, "stages.1.risk_measure", {"cvar": {"alpha": 0.0, "lambda": 0.5}}),
        Said("risk_measure", STAGES, "0 < alpha ≤ 1", entity="stage 1"),
    ),
    broken(
        "a negative discount rate",
        put(STAGES, "policy_graph.annual_discount_rate", -0.1),
        Said(
            "negative",
            STAGES,
            "a discount rate is not negative, got -0.1",
            where="policy_graph.annual_discount_rate",
        ),
    ),
    broken(
        "turbines larger than their plant",
        put(HYDROS, "hydros.0.unit_groups.0.max_turbined_m3s", 500.0),
        Said(
            "unit_groups_exceed_plant",
            HYDROS,
            "sum to no more than the plant's 420, got 500",
            entity="hydro 0",
        ),
    ),
    broken(
        "storage beyond the reservoir at the start",
        put(INITIAL, "storage.0.value_hm3", 5000.0),
        doubt(
            "initial_storage", INITIAL, "storage starts between 300 and 3800 hm³, got 5000", entity="hydro 0"
        ),
    ),
    broken(
        "deficit that ends",
        put(PENALTIES, "bus.deficit_segments.0.depth_mw", 10.0),
        Said(
            "deficit_segments",
            PENALTIES,
            "the last deficit segment, and only it, has no depth, got 10.0",
            where="segment 0",
            entity="bus.deficit_segments",
        ),
    ),
    broken(
        "a correlation of more than one",
        edit(CORRELATION, lambda data: [at(data, MATRIX)[i].__setitem__(1 - i, 1.2) for i in (0, 1)]),
        Said(
            "not_a_correlation",
            CORRELATION,
            "1 on its diagonal and entries from −1 to 1",
            entity="profile 'default', group 'rivers'",
        ),
    ),
    broken(
        "a correlation that is not symmetric",
        put(CORRELATION, f"{MATRIX}.0.1", 0.3),
        Said(
            "not_symmetric",
            CORRELATION,
            "the matrix is symmetric",
            entity="profile 'default', group 'rivers'",
        ),
    ),
    broken(
        "a correlation that is not positive definite",
        edit(CORRELATION, lambda data: [at(data, MATRIX)[i].__setitem__(1 - i, -1.0) for i in (0, 1)]),
        doubt(
            "not_positive_definite",
            CORRELATION,
            "the matrix is positive semidefinite, got smallest eigenvalue",
            entity="profile 'default', group 'rivers'",
        ),
    ),
    broken(
        "a plane that allows no generation",
        cell(PLANES, "gamma_0", 1, -1e6),
        Said("no_generation", PLANES, "MW at most", where="row 1", entity="hydro 4, plane 1"),
    ),
    broken(
        "a slack without a price",
        drop(GENERIC, "constraints.0.slack.penalty"),
        Said("slack_penalty", GENERIC, "enabled has a positive penalty", entity="constraint 0"),
    ),
    broken(
        "a user constraint that nothing can keep",
        rows(SIDES, lambda t: t.append_column("bound_upper", pa.array([None, 10.0, None], pa.float64()))),
        Said(
            "inverted_bounds",
            SIDES,
            "the lower bound is not above the upper bound, got 20 and 10",
            entity="constraint 0, stage 1",
        ),
    ),
    broken(
        "no forward passes",
        put(CONFIG, "training.selection.forward_passes", 0),
        Said("count", CONFIG, "a count is at least 1, got 0", where="training.selection.forward_passes"),
    ),
    broken(
        "more openings than memory",
        put(STAGES, "stages.0.num_openings", 10**12),
        Said("count", STAGES, "num_openings is at most 1000000", entity="stage 0"),
    ),
    broken(
        "a number beyond reason",
        put(HYDROS, "hydros.0.outflow.min_outflow_m3s", 1e18),
        Said(
            "too_large",
            HYDROS,
            "no number is beyond 1e+15, got 1e+18",
            where="hydros[0].outflow.min_outflow_m3s",
        ),
    ),
)

SUPPORT: tuple[Broken, ...] = (
    broken(
        "a cycle of three months",
        put(STAGES, "policy_graph.type", "cyclic"),
        Said("cycle", STAGES, "a cycle lasts whole years", where="policy_graph.type"),
    ),
    broken(
        "a reservoir that fills",
        put(HYDROS, "hydros.2.filling", {"start_stage_id": 0}),
        Said(
            "filling",
            HYDROS,
            "a reservoir that fills has an entry_stage_id",
            where="filling",
            entity="hydro 2",
        ),
    ),
    broken(
        "planes computed from nothing",
        put(MODELS, "production_models.4.stage_ranges.0.fpha_config.source", "computed"),
        Said(
            "missing_head",
            HYDROS,
            "has a geometry, tailrace, hydraulic_losses and efficiency",
            entity="hydro 4",
        ),
    ),
    broken(
        "storage limits by block",
        rows(LIMITS, lambda t: t.append_column("block_id", pa.array([1], pa.int32()))),
        Said(
            "unsupported",
            LIMITS,
            "storage limits by block are not supported yet",
            where="max_storage_hm3, row 0",
            entity="hydro 0, stage 1",
        ),
    ),
    broken(
        "a cap on active cuts",
        put(CONFIG, "training.cut_selection.max_active_per_stage", 50),
        doubt(
            "no_effect",
            CONFIG,
            "the setting has no effect here. An LP takes in the cuts that it violates",
            where="training.cut_selection.max_active_per_stage",
        ),
    ),
    broken(
        "a policy to go on from",
        put(CONFIG, "policy.mode", "resume"),
        doubt(
            "no_effect",
            CONFIG,
            "the setting has no effect here. Go on from a checkpoint with --resume",
            where="policy.mode",
        ),
    ),
    broken(
        "settings of the peer's solver",
        put(CONFIG, "training.solver.retry_max_attempts", 9),
        doubt("no_effect", CONFIG, "the results are the same", where="training.solver"),
    ),
    broken(
        "a tailrace",
        put(HYDROS, "hydros.1.tailrace", {"type": "polynomial", "coefficients": [1.0]}),
        doubt("no_effect", HYDROS, "planes are taken as they are given", where="tailrace", entity="hydro 1"),
    ),
    broken(
        "losses of lines",
        put(LINES, "lines.0.losses_percent", 3.0),
        doubt("losses_not_modelled", LINES, "flows have no losses, as in Cobre", entity="line 0"),
    ),
)

BROKEN_NUMBERS: tuple[Broken, ...] = (*PHYSICAL, *SUPPORT)
