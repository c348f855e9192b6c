"""One scenario of a run solved again: the states on its way, exactly as they were recorded.

A simulated scenario depends on the policy, the case and its own number alone, so solving it again gives the same
bits. The case has to be the one of the run: its hash is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.backend import communicator_for
from pycobre.errors import OptionError, PolicyError
from pycobre.hydro.build import HydroModel, build_model
from pycobre.hydro.files import identity, load_case
from pycobre.hydro.model import Case
from pycobre.hydro.study import CaseSampler
from pycobre.hydro.study.options import train_options
from pycobre.sddp import Paths, Policy, Sampler, SimulateOptions, simulate

__all__ = ["StageVisit", "case_of_run", "stage_visit"]

SIMULATION = 0


@frozen(eq=False)
class StageVisit:
    """What a stage of a scenario was given, and the state that it handed on."""

    model: HydroModel
    position: int  #: of the stage
    incoming: F64
    noise: F64  #: the patch vector
    outgoing: F64


def case_of_run(tables: RunTables, directory: Path) -> Case:
    """The case in `directory` with the settings of the run; refused where it is not the one the run was made from."""
    case = load_case(directory)
    metadata = tables.results.metadata
    found = identity(case)
    if found["input_hash"] != metadata.get("input_hash"):
        changed = [
            name for name, digest in found["inputs"].items() if metadata.get("inputs", {}).get(name) != digest
        ]
        raise PolicyError(
            f"case {directory.name}: expected the case of run {tables.run}, got another "
            f"({', '.join(changed[:5]) or 'files are missing'} differ). Name the case the run was made from."
        )
    return replace(case, config=_config(metadata.get("config", {}), case)).mark_checked()


def stage_visit(tables: RunTables, directory: Path, policy: Policy, scenario: int, stage: int) -> StageVisit:
    """Solve a scenario up to a stage (by id) and say what the stage was given."""
    case = case_of_run(tables, directory)
    scenarios = int(tables.results.metadata.get("simulation", {}).get("scenarios", 0))
    if not 0 <= scenario < max(1, scenarios):
        raise OptionError(f"scenario: expected 0 to {max(1, scenarios) - 1}, got {scenario}.")
    model = build_model(case)
    policy.check(model.problem)
    if len(model.problem.nodes) != len(case.stages):
        raise OptionError(
            f"case {directory.name}: expected stages that follow one another, got a graph of "
            f"{len(model.problem.nodes)} nodes. Prices of such cases are not explained yet; query_table has them."
        )
    position = [each.id for each in case.stages].index(stage)
    sampler = CaseSampler(
        model, case.config.simulation.scenario_source or case.config.training.scenario_source
    )
    one = _OneScenario(sampler, scenario)
    options = train_options(model)
    with communicator_for("local") as comm:
        found = simulate(
            model.problem,
            policy,
            1,
            comm,
            SimulateOptions(
                seed=options.seed, max_depth=options.max_depth, lazy=options.lazy, solver=options.solver
            ),
            sampler=one,
        )
    paths = one.sample(SIMULATION, 0, 1)
    given = None if paths.values is None else paths.values[position]
    noise = (
        model.problem.nodes[position].noise.values[int(paths.openings[0, position])]
        if given is None
        else given[0]
    )
    start = np.array([state.initial for state in model.problem.states], np.float64)
    incoming = start if position == 0 else found.state[0, position - 1]
    return StageVisit(model, position, incoming, np.asarray(noise), found.state[0, position])


class _OneScenario:
    """A sampler whose scenario 0 is one of another's."""

    def __init__(self, sampler: Sampler, scenario: int) -> None:
        self._sampler, self._scenario = sampler, scenario

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        return self._sampler.sample(iteration, first + self._scenario, count)


def _config(recorded: Mapping[str, Any], case: Case) -> Any:
    """The configuration that the run noted: it may have been started with other settings than its case's."""
    from pycobre.hydro.files.json_files import read_json

    if not recorded:
        return case.config
    found, problems = read_json(dict(recorded), "config.json")
    if found is None:
        raise PolicyError(
            f"metadata.json: expected the settings of a run, got others ({problems[0]}). "
            "Use the pycobre that wrote it."
        )
    return found["config"]
