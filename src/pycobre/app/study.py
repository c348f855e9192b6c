"""A request made concrete: the problem, how to train and simulate it, and how its tables are filled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.app.request import CaseSource, ProblemSource, Request
from pycobre.problem import Problem
from pycobre.sddp import Record, Sampler, Simulation, TrainOptions

__all__ = ["Study", "StudySource", "make_study"]

Columns = dict[str, NDArray[Any]]
Indicators = Callable[[Mapping[str, Mapping[str, NDArray[Any]]], int], tuple[dict[str, Any], list[str]]]
FAILED = "failed"  # of the output directory: the bundles of LPs that could not be solved


@frozen(eq=False)
class Study:
    """Everything the pipeline needs, on every rank alike."""

    name: str
    problem: Problem
    options: TrainOptions
    tables: Callable[[Simulation], dict[str, Columns]]
    record: Record = field(default_factory=Record)
    sampler: Sampler | None = None  #: of the forward passes; None: in sample
    simulation_sampler: Sampler | None = None
    simulate: bool = False
    scenarios: int = 0
    probability: NDArray[np.float64] | None = None  #: of the simulated scenarios; None: all alike
    checkpoint_iterations: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    indicators: Indicators = lambda tables, scenarios: ({}, [])
    """Of all simulated tables: figures for the metadata, and warnings."""
    system: Mapping[str, Any] = field(default_factory=dict)  #: what is studied, as JSON values
    model_tables: Callable[[], dict[str, Columns]] = dict  #: of what is random


class StudySource(Protocol):
    """What a model has to give for a run of it: the one interface between the application and its models."""

    @property
    def name(self) -> str: ...
    @property
    def problem(self) -> Problem: ...
    @property
    def options(self) -> TrainOptions: ...
    @property
    def tables(self) -> Callable[[Simulation], dict[str, Columns]]: ...
    @property
    def record(self) -> Record: ...
    @property
    def sampler(self) -> Sampler | None: ...
    @property
    def simulation_sampler(self) -> Sampler | None: ...
    @property
    def simulate(self) -> bool: ...
    @property
    def scenarios(self) -> int: ...
    @property
    def probability(self) -> NDArray[np.float64] | None: ...
    @property
    def checkpoint_iterations(self) -> int | None: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def indicators(self) -> Indicators: ...
    @property
    def system(self) -> Mapping[str, Any]: ...
    @property
    def model_tables(self) -> Callable[[], dict[str, Columns]]: ...


def make_study(request: Request) -> Study:
    """Build the study of a request; the request's own settings win over the case's."""
    if isinstance(request.source, CaseSource):
        from pycobre.hydro.study import study_of_case

        sampled = request.scenarios or None
        study = _study_of(study_of_case(request.source.case, request.source.identity, sampled))
    else:
        study = _study_of_problem(request.source, request.record)
    solver = study.options.solver
    if request.output is not None and solver.bundles is None:
        solver = replace(solver, bundles=str(Path(request.output) / FAILED))
    return replace(
        study,
        options=replace(study.options, threads=request.threads, solver=solver),
        simulate=study.simulate if request.simulate is None else request.simulate,
        scenarios=study.scenarios if request.scenarios is None else request.scenarios,
        checkpoint_iterations=request.checkpoint_iterations or study.checkpoint_iterations,
    )


def _study_of(source: StudySource) -> Study:
    return Study(**{each.name: getattr(source, each.name) for each in fields(Study)})


def _study_of_problem(source: ProblemSource, record: tuple[str, ...]) -> Study:
    problem = source.problem
    return Study(
        name=problem.name,
        problem=problem,
        options=source.options.resolved(problem),
        tables=problem_tables,
        record=Record(columns=record),
        metadata={
            "input_hash": hashlib.sha256(problem.to_bytes()).hexdigest(),
            "seed": source.options.seed,
            "nodes": [node.name for node in problem.nodes],
            "states": [state.name for state in problem.states],
            "recorded": list(record),
        },
        system={"nodes": len(problem.nodes), "states": [state.name for state in problem.states]},
    )


def problem_tables(simulation: Simulation) -> dict[str, Columns]:
    """The long tables of a problem built in Python, sorted by scenario, depth and position."""
    visited = simulation.node >= 0
    scenario, depth = (index.astype(np.int32) for index in np.nonzero(visited))
    tables = {
        "paths": {
            "scenario_id": scenario + np.int32(simulation.first),
            "depth": depth,
            "node_id": simulation.node[visited],
            "opening": simulation.opening[visited],
            "discount_factor": simulation.discount[visited],
            "stage_cost": simulation.stage_cost[visited],
            "future_cost": simulation.cost_to_go[visited],
        }
    }
    for name, key, values in (
        ("states", "state_id", simulation.state),
        ("values", "column_id", simulation.column),
    ):
        width = values.shape[2]
        if width:
            tables[name] = {
                "scenario_id": np.repeat(scenario, width) + np.int32(simulation.first),
                "depth": np.repeat(depth, width),
                key: np.tile(np.arange(width, dtype=np.int32), scenario.size),
                "value": values[visited].reshape(-1),
            }
    return tables
