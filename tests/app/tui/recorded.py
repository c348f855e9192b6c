"""Recorded runs: result directories with made-up numbers of a plausible shape, written by the package's own writers.

Everything is a function of the arguments: file times too, so that ages are the same in every picture.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.app.results.event_log import finite
from pycobre.app.results.files import write_json, write_table
from pycobre.app.results.record import RunRecord, Session
from pycobre.app.results.schemas import SIMULATION_TABLES
from pycobre.app.results.status import RunStatus
from pycobre.events import (
    CheckpointWritten,
    ControlApplied,
    Event,
    IterationFinished,
    TrainingStarted,
    WarningRaised,
)

NOW = 1_767_225_600.0  #: 2026-01-01T00:00:00Z
HOST, PID = "node-17", 4711


def iteration(number: int, total_s: float = 0.0, scale: float = 1e9) -> IterationFinished:
    """Iteration `number` of a run whose bounds meet."""
    wave = math.sin(12.9898 * number) * math.cos(78.233 * number)
    lower = scale * (1 - 0.9 * math.exp(-number / 14))
    upper = scale * (1 + 1.6 * math.exp(-number / 10)) * (1 + 0.03 * wave)
    spent = 2.0 + 0.01 * number + 0.15 * wave
    return IterationFinished(
        iteration=number,
        lower_bound=lower,
        upper_bound=upper,
        upper_bound_std=0.1 * upper,
        half_width=0.02 * upper,
        gap=(upper - lower) / lower,
        cuts_added=59,
        cuts_active=59 * number,
        lp_solves=18_880,
        simplex_iterations=204_000,
        forward_s=0.3 * spent,
        backward_s=0.7 * spent,
        elapsed_s=spent,
        total_s=total_s or 2.1 * number,
        time_s=total_s or 2.1 * number,
    )


def usual_events(iterations: int) -> list[tuple[float, Event]]:
    """Seconds before `NOW`, and the event."""
    started = TrainingStarted(
        problem="four regions", nodes=60, states=12, forward_passes=16, ranks=4, threads=2,
        first_iteration=1, iteration_limit=200,
    )  # fmt: skip
    begin = 2.1 * iterations + 12
    found: list[tuple[float, Event]] = [(begin, started)]
    for number in range(1, iterations + 1):
        found.append((begin - 2.1 * number, iteration(number)))
        if number in (1, 58, 115):
            made = CheckpointWritten(
                iteration=number,
                path=f"checkpoints/{number}.cobre",
                size_bytes=1_240_000 * number,
                elapsed_s=0.08,
            )
            found.append((begin - 2.1 * number - 0.1, made))
        if number == 40:
            found.append(
                (
                    begin - 84,
                    WarningRaised(
                        message="inflow of plant ITAIPU was truncated at 0 in 3 openings", iteration=40
                    ),
                )
            )
        if number == 90:
            found.append((begin - 189, ControlApplied(iteration=90, action="iteration_limit", value=200)))
    return found


def write_events(root: Path, events: Iterable[tuple[float, Event]], run: str) -> None:
    with (root / "events.jsonl").open("w") as file:
        for ago, event in events:
            line = {"schema": 1, "at": NOW - ago, "run": run, **event.to_dict()}
            file.write(json.dumps(finite(line), separators=(",", ":")) + "\n")


def status(run: str, **changes: Any) -> dict[str, Any]:
    """The status of a run in its backward pass."""
    last = iteration(changes.get("iteration", 124))
    ranks = [
        {"rank": rank, "solve_s": solve, "communicate_s": 3.5, "wait_s": 241.0 - solve, "other_s": 9.0 + rank,
         "lp_solves": 585_000 + 900 * rank, "simplex_iterations": 6_300_000}
        for rank, solve in enumerate((231.0, 214.5, 222.0, 238.0))
    ]  # fmt: skip
    values: dict[str, Any] = {
        "run": run, "state": "running", "phase": "training", "case": "four regions", "pid": PID, "host": HOST,
        "backend": "shm", "ranks": 4, "threads": 2, "started": "2025-12-31T23:55:20Z",
        "updated": "2025-12-31T23:59:59Z", "elapsed_s": 268.0, "iteration": last.iteration, "iteration_limit": 200,
        "lower_bound": last.lower_bound, "upper_bound": last.upper_bound, "half_width": last.half_width,
        "gap": last.gap, "lp_solves": 2_341_120, "eta_s": 161.0, "memory_bytes": 412 << 20,
        "checkpoint_iteration": 115, "checkpoint_path": "checkpoints/115.cobre",
        "checkpoint_at": "2025-12-31T23:59:38Z", "seconds_per_rank": ranks,
        "memory_per_rank": [n << 20 for n in (412, 388, 391, 395)], "cuts": last.cuts_active, "iteration_s": 2.12,
        "lps_per_s": 8_905.0, "retries": 3, "pass_name": "backward", "stage": "1934-05", "stage_number": 37,
        "stages": 60, "warnings": ["inflow of plant ITAIPU was truncated at 0 in 3 openings"],
    }  # fmt: skip
    values.update(changes)
    return {"schema": 1, **vars(RunStatus(**values))}


def write_run(
    root: Path,
    name: str = "20251231T235530Z-aa11bb",
    *,
    event_age_s: float = 2.0,
    seed: int = 42,
    **changes: Any,
) -> Path:
    """A run that goes on, or in another state that `changes` say, of a process on another host."""
    root.mkdir(parents=True, exist_ok=True)
    said = status(name, **changes)
    write_events(root, usual_events(said["iteration"]), name)
    (root / "status.json").write_text(json.dumps(finite(said)))
    session = Session(
        said["started"], PID, HOST, said["backend"], said["ranks"], said["threads"], True, True, said["state"]
    )
    RunRecord(name, said["case"], None, (session,)).write(root)
    lock = {"pid": PID, "host": HOST, "process_start": 1, "run": name} if said["state"] == "running" else None
    (root / ".lock").write_text(json.dumps(lock) if lock else "")
    settings = {**SETTINGS, "training": {**SETTINGS["training"], "tree_seed": seed}}
    write_json(root / "study.json", {"schema": 1, "settings": settings, "system": SYSTEM})
    touch(root, NOW - event_age_s)
    return root


def touch(root: Path, when: float) -> None:
    for path in (root / "events.jsonl", root / "status.json"):
        os.utime(path, (when, when))


SETTINGS: dict[str, Any] = {
    "training": {
        "tree_seed": 42,
        "stopping_rules": [{"type": "iteration_limit", "limit": 200}],
        "selection": {"forward_passes": 16},
        "risk_measure": {"cvar": {"alpha": 0.5, "lambda": 0.35}},
    },
    "simulation": {"enabled": True, "num_scenarios": 2000},
    "interior_points": None,
}

SYSTEM = {
    "buses": [{"id": 0, "name": "SUDESTE"}, {"id": 1, "name": "SUL"}],
    "lines": [
        {"id": 0, "name": "SE-S", "source": 0, "target": 1, "direct_mw": 7379.0, "reverse_mw": 5625.0}
    ],
    "hydros": [
            {"id": 0, "name": "FURNAS", "buses": [0], "downstream": 2, "min_storage_hm3": 5733.0,
             "max_storage_hm3": 22950.0, "max_turbined_m3s": 1692.0, "max_mw": 1216.0},
            {"id": 1, "name": "A. VERMELHA", "buses": [0], "downstream": 2, "min_storage_hm3": 5856.0,
             "max_storage_hm3": 11025.0, "max_turbined_m3s": 2958.0, "max_mw": 1396.2},
            {"id": 2, "name": "ITAIPU", "buses": [0, 1], "downstream": None, "min_storage_hm3": 29000.0,
             "max_storage_hm3": 29000.0, "max_turbined_m3s": 13800.0, "max_mw": 14000.0},
    ],
    "thermals": [
        {"id": 0, "name": "ANGRA 1", "bus": 0, "min_mw": 520.0, "max_mw": 640.0, "cost_per_mwh": 31.17},
        {"id": 1, "name": "CANDIOTA 3", "bus": 1, "min_mw": 210.0, "max_mw": 350.0, "cost_per_mwh": 103.4},
    ],
    "non_controllables": [{"id": 0, "name": "WIND SOUTH", "bus": 1, "max_mw": 2100.0}],
    "contracts": [],
    "pumping": [],
}  # fmt: skip


def write_problem(root: Path, name: str = "20251204T000000Z-00ff03") -> Path:
    """A maximised problem of a run from Python that has just begun."""
    write_run(
        root, name, iteration=3, iteration_limit=None, eta_s=None, case="reservoir", sense="maximise",
        backend="local",
        ranks=1, threads=1, seconds_per_rank=None, memory_per_rank=None, phase="training", pass_name="forward",
        stage="2", stage_number=2, stages=6, checkpoint_iteration=1, retries=0, warnings=[],
    )  # fmt: skip
    system = {"nodes": 6, "states": ["volume[0]", "volume[1]"]}
    settings = {"forward_passes": "4", "stopping": "IterationLimit(limit=2)"}
    write_json(root / "study.json", {"schema": 1, "settings": settings, "system": system})
    return root


STAGES = 24


def write_finished(root: Path, name: str = "20251230T080000Z-cc22dd") -> Path:
    """A run that has trained and simulated, with tables."""
    last = iteration(200)
    write_run(
        root, name, event_age_s=57_600.0, seed=7, state="finished", phase="done", iteration=200, eta_s=None,
        pass_name=None, stage=None, stage_number=None, stages=None, scenarios=40, scenarios_done=40, retries=0,
        warnings=[],
        result={"termination_reason": "iteration_limit"},
    )  # fmt: skip
    write_json(
        root / "metadata.json",
        {
            "case": "four regions", "backend": "shm", "ranks": 4, "iterations": 200,
            "lower_bound": last.lower_bound, "upper_bound": last.upper_bound, "gap": last.gap,
            "upper_bound_half_width": last.half_width, "policy_digest": "8d5e957f297893487bd98fa830fa6413",
            "sense": "minimise", "simulation": {"scenarios": 40},
            "stages": [{"id": s, "label": f"{2026 + s // 12}-{s % 12 + 1:02d}"} for s in range(STAGES)],
            "entities": {
                "hydros": [[0, "FURNAS"], [1, "A. VERMELHA"], [2, "ITAIPU"]],
                "thermals": [[0, "ANGRA 1"], [1, "CANDIOTA 3"]],
                "buses": [[0, "SUDESTE"], [1, "SUL"]],
            },
        },
    )  # fmt: skip
    counts = {"hydros": 3, "thermals": 2, "buses": 2}
    for table in SIMULATION_TABLES:
        if table.name in counts:
            write_table(root, table, _columns(table.name, list(table.columns), counts[table.name]))
    return root


def _columns(table: str, wanted: list[Any], count: int, scenarios: int = 40) -> dict[str, Any]:
    """Seasonal values that differ by scenario."""
    scenario, stage, block, entity = (
        axis.reshape(-1)
        for axis in np.meshgrid(range(scenarios), range(STAGES), (0, 1), range(count), indexing="ij")
    )
    season = 1 + 0.4 * np.sin(2 * np.pi * stage / 12 + entity)
    spread = 1 + 0.3 * np.sin(7.1 * scenario + 0.3 * stage)
    size = {"storage_final_hm3": 9000.0, "generation_mw": 700.0, "marginal_cost": 120.0, "deficit_mw": 0.0}
    found: dict[str, Any] = {}
    for column in wanted:
        found[column.name] = size.get(column.name, 100.0) * season * spread * (1 + 0.5 * entity)
    keys = {
        "scenario_id": scenario,
        "stage_id": stage,
        "block_id": block,
        "hours": np.where(block, 530.0, 200.0),
    }
    keys |= {name: entity for name in ("hydro_id", "thermal_id", "bus_id") if name in found}
    dry = (scenario % 10 == 0) & (stage % 12 > 8)
    if "deficit_mw" in found:
        found["deficit_mw"] = np.where(dry, 80.0 * season, 0.0)
    return {**found, **keys}
