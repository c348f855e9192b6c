"""A case's study: everything that a run of it needs, in the terms of the application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.hydro.build import HydroModel, build_model
from pycobre.hydro.files import identity
from pycobre.hydro.model import Case
from pycobre.hydro.model import config as settings
from pycobre.hydro.model.graph import CaseGraph
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.study.options import train_options
from pycobre.hydro.study.samplers import CaseSampler
from pycobre.hydro.study.system import system_of
from pycobre.hydro.tables.case_tables import CaseTables
from pycobre.hydro.tables.indicators import indicators, physical_warnings
from pycobre.hydro.tables.inflow_tables import inflow_tables
from pycobre.hydro.tables.stage_view import Columns
from pycobre.problem import Problem
from pycobre.sddp import Enumeration, FixedSet, Record, Sampler, TrainOptions

__all__ = ["CaseStudy", "study_of_case"]


@frozen(eq=False)
class CaseStudy:
    """What the application asks of a model (`pycobre.app.study`), for a case."""

    name: str
    problem: Problem
    options: TrainOptions
    tables: CaseTables
    record: Record
    sampler: Sampler | None  #: of the forward passes; None: every path, or in sample on a cycle
    simulation_sampler: Sampler
    simulate: bool
    scenarios: int
    probability: F64 | None  #: of the simulated scenarios; None: all alike
    checkpoint_iterations: int | None
    metadata: Mapping[str, Any]
    system: Mapping[str, Any]
    model_tables: Callable[[], dict[str, Columns]]

    def indicators(
        self, tables: Mapping[str, Mapping[str, NDArray[Any]]], scenarios: int
    ) -> tuple[dict[str, Any], list[str]]:
        """What the simulated tables say of their own physics, and what of it is a warning."""
        found = indicators(tables, scenarios)
        return found, physical_warnings(found)


def study_of_case(
    case: Case, found: Mapping[str, Any] | None = None, sampled: int | None = None
) -> CaseStudy:
    """Build a case; `found` is its `identity` where that is known already.

    `sampled` scenarios are simulated where that is given, whatever the case says.
    """
    model = build_model(case)
    config = case.config
    selection: object = config.simulation.selection
    if sampled is not None:
        selection = settings.SampledScenarios(num_scenarios=sampled)
    source = config.simulation.scenario_source or config.training.scenario_source
    simulated_with: Sampler = CaseSampler(model, source)
    scenarios, probability = 0, None
    if isinstance(selection, settings.SampledScenarios):
        scenarios = selection.num_scenarios
    elif selection is not None:
        every = Enumeration.of(model.problem)
        simulated_with, scenarios, probability = FixedSet(every.paths), len(every), every.probability
    tables = CaseTables(model, simulated_with, probability)
    options = train_options(model)
    return CaseStudy(
        name=case.name,
        problem=model.problem,
        options=options,
        tables=tables,
        record=tables.record,
        sampler=None
        if options.enumerated or model.graph.cyclic
        else CaseSampler(model, config.training.scenario_source),
        simulation_sampler=simulated_with,
        simulate=config.simulation.enabled,
        scenarios=scenarios,
        probability=probability,
        checkpoint_iterations=config.policy.checkpointing.interval_iterations,
        metadata=_metadata(model, found or identity(case)),
        system=system_of(case),
        model_tables=partial(inflow_tables, model),
    )


def _metadata(model: HydroModel, found: Mapping[str, Any]) -> dict[str, Any]:
    case = model.case
    return {
        "seed": model.seed,
        **found,
        "entities": {
            "hydros": [[entity.id, entity.name] for entity in case.hydros],
            "thermals": [[entity.id, entity.name] for entity in case.thermals],
            "buses": [[entity.id, entity.name] for entity in case.buses],
            "exchanges": [[entity.id, entity.name] for entity in case.lines],
            "non_controllables": [[entity.id, entity.name] for entity in case.non_controllable_sources],
            "contracts": [[entity.id, entity.name] for entity in case.energy_contracts],
            "pumping": [[entity.id, entity.name] for entity in case.pumping_stations],
            "generic_constraints": [[entity.id, entity.name] for entity in case.generic_constraints],
        },
        "stages": [
            {
                "id": stage.id,
                "label": stage.start_date.strftime("%Y-%m"),
                "start_date": stage.start_date.isoformat(),
                "end_date": stage.end_date.isoformat(),
            }
            for stage in case.stages
        ],
        **_nodes(model.graph),
        **_beyond(model),
    }


def _beyond(model: HydroModel) -> dict[str, Any]:
    """What is known of the cost beyond the last stage, where there is one."""
    beyond = model.beyond
    return (
        {}
        if beyond is None
        else {"boundary": {"cuts": len(beyond.intercept), "dropped": list(beyond.dropped)}}
    )


def _label(stage: Stage) -> str:
    return stage.start_date.strftime("%Y-%m")


def _nodes(graph: CaseGraph) -> dict[str, Any]:
    """The nodes of a case that has some of its own."""
    if not graph.declared:
        return {}
    described = [
        {"id": node.id, "stage_id": node.stage_id, "label": node.label, "scenario_id": node.scenario_id}
        for node in graph.nodes
    ]
    return {"graph_nodes": described}
