"""A result directory with made-up numbers of a plausible shape, for the pictures' tests."""

from itertools import product
from pathlib import Path

import numpy as np

from pycobre.app.results.files import write_json, write_manifest, write_table
from pycobre.app.results.schemas import CONVERGENCE, MODEL_TABLES, SIMULATION_TABLES, TIMING

HOURS = (200.0, 530.0)


def write_run(root: Path, *, hydros: int = 3, simulated: bool = True, length: int = 60) -> Path:
    scenarios, stages = 40, 12
    rng = np.random.default_rng(7)
    iterations = np.arange(1, length + 1)
    lower = 6.0e10 * (1 - np.exp(-iterations / 9.0))
    upper = 6.05e10 * (1 + 0.8 * np.exp(-iterations / 12.0)) * (1 + 0.02 * rng.standard_normal(length))
    convergence = {column.name: np.zeros(length) for column in CONVERGENCE.columns}
    convergence.update(
        iteration=iterations,
        lower_bound=lower,
        upper_bound=upper,
        upper_bound_half_width=np.full(length, 2e9),
        gap=(upper - lower) / lower,
    )
    write_table(root, CONVERGENCE, convergence)
    timing = {column.name: np.ones(2 * length) for column in TIMING.columns}
    timing.update(
        iteration=np.repeat(iterations, 2), rank=np.tile([0, 1], length), solve_s=np.full(2 * length, 3.0)
    )
    write_table(root, TIMING, timing)
    if simulated:
        _write_model(root, hydros, stages)
        for table in SIMULATION_TABLES:
            blocks = (0,) if table.name == "costs" else (0, 1)
            keys = np.array(list(product(range(scenarios), range(stages), blocks, range(hydros))))
            if table.name == "costs":
                keys = keys[keys[:, 3] == 0]
            columns = {c.name: rng.gamma(4.0, 250.0, len(keys)) for c in table.columns}
            identity = [name for name in table.names if name.endswith("_id")]
            for name in identity:
                position = {"scenario_id": 0, "stage_id": 1, "block_id": 2}.get(name, 3)
                columns[name] = keys[:, position]
            if "hours" in columns:
                columns["hours"] = np.array(HOURS)[keys[:, 2]]
            write_table(root, table, columns)
    names = [[i, f"PLANT </script> {i}"] for i in range(hydros)]
    write_json(
        root / "metadata.json",
        {
            "case": "four regions & <friends>",
            "lower_bound": float(lower[-1]),
            "upper_bound": float(upper[-1]),
            "upper_bound_half_width": 2e9,
            "gap": 0.0123,
            "iterations": length,
            "termination_reason": "iteration_limit",
            "backend": "shm",
            "ranks": 2,
            "policy_digest": "0123456789abcdef" * 4,
            "entities": {"hydros": names, "thermals": names, "buses": names},
            "stages": [{"id": i, "label": f"2026-{i % 12 + 1:02d}"} for i in range(stages)],
        },
    )
    write_manifest(root)
    return root


def _write_model(root: Path, hydros: int, stages: int) -> None:
    """An inflow model of order 2 in every second stage; the tests' probabilities are 0.1, 0.2, ..."""
    plant, stage = (index.ravel() for index in np.indices((hydros, stages)))
    pairs = np.array([(i, j) for i in range(hydros) for j in range(i + 1, hydros)]).reshape(-1, 2)
    for table in MODEL_TABLES:
        rows = {"inflow_correlations": len(pairs), "inflow_tests": 9}.get(table.name, plant.size)
        columns = {c.name: np.full(rows, 0.25) for c in table.columns}
        if table.name == "inflow_correlations":
            columns.update(stage_id=np.zeros(rows), hydro_id=pairs[:, 0], other_hydro_id=pairs[:, 1])
        elif table.name == "inflow_tests":
            columns.update(
                hydro_id=np.zeros(rows), season_id=np.arange(rows), whiteness_p=np.linspace(0.9, 0.1, 9)
            )
        else:
            columns.update(hydro_id=plant, stage_id=stage)
        if "order" in columns:
            columns["order"] = 2 * (np.arange(rows) % 2)
        if table.name == "inflow_moments":
            columns.update(openings_mean_m3s=100.0 * plant + stage, history_std_m3s=np.full(rows, 7.0))
        write_table(root, table, columns)
