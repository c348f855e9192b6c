"""A case's study: its configuration as training options, its random numbers as samplers, its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pycobre.app.study import Study
from pycobre.errors import CaseError
from pycobre.hydro.build import Study as HydroStudy
from pycobre.hydro.build import build_study
from pycobre.hydro.files import identity
from pycobre.hydro.model import Case
from pycobre.hydro.model import config as settings
from pycobre.hydro.tables.case_tables import CaseTables
from pycobre.hydro.uncertainty.scenario_sampler import Forward
from pycobre.sddp import (
    AllOf,
    AnyOf,
    BoundStalling,
    Expectation,
    Gap,
    IterationLimit,
    Level1,
    LimitedMemoryLevel1,
    Paths,
    RiskMeasure,
    Selection,
    StoppingRule,
    TimeLimit,
    TrainOptions,
    expectation_and_cvar,
)

__all__ = ["study_of_case"]


def study_of_case(case: Case, found: Mapping[str, Any] | None = None) -> Study:
    """Everything a run of this case needs; `found` is its `identity` where that is known already."""
    hydro = build_study(case)
    config = case.config
    simulated = config.simulation.selection
    simulated_with = CaseSampler(hydro, config.simulation.scenario_source or config.training.scenario_source)
    tables = CaseTables(hydro, simulated_with)
    return Study(
        name=case.name,
        problem=hydro.problem,
        options=_options(hydro),
        tables=tables,
        record=tables.record,
        sampler=CaseSampler(hydro, config.training.scenario_source),
        simulation_sampler=simulated_with,
        simulate=config.simulation.enabled,
        scenarios=0
        if simulated is None
        else simulated.num_scenarios
        if isinstance(simulated, settings.SampledScenarios)
        else 1,
        checkpoint_iterations=config.policy.checkpointing.interval_iterations,
        metadata=_metadata(case, hydro.seed, found or identity(case)),
    )


class CaseSampler:
    """The forward draws of a case by its scenario source: in sample they are Cobre's own, bit for bit."""

    def __init__(self, hydro: HydroStudy, source: settings.ScenarioSource | None) -> None:
        self._forward = Forward(hydro, source)

    def sample(self, iteration: int, first: int, count: int) -> Paths:
        openings, values = self._forward.draw(iteration, first, count)
        depth = openings.shape[1]
        nodes = np.broadcast_to(np.arange(depth, dtype=np.int32), (count, depth)).copy()
        return Paths(nodes, openings, np.full(count, depth, np.int32), values)


def _options(hydro: HydroStudy) -> TrainOptions:
    training = hydro.case.config.training
    chosen = training.selection
    measures: dict[str, RiskMeasure] = {}
    stages = hydro.case.stages
    # A stage's measure weighs what it looks ahead to; that of the first also weighs its own openings.
    for node, stage in zip(hydro.problem.nodes, stages, strict=True):
        measures[node.name] = _measure(stage.risk_measure)
    return TrainOptions(
        # Enumerated: every stage has one opening, so there is one trajectory.
        forward_passes=chosen.forward_passes if isinstance(chosen, settings.SampledPasses) else 1,
        stopping=_stopping(training),
        risk=measures,
        root_risk=_measure(stages[0].risk_measure),
        selection=_selection(training.cut_selection),
        seed=hydro.seed,
    )


def _measure(given: Any) -> RiskMeasure:
    if given == "expectation":
        return Expectation()
    return expectation_and_cvar(given.cvar.lambda_, given.cvar.alpha)


def _stopping(training: settings.TrainingConfig) -> StoppingRule:
    rules: list[StoppingRule] = []
    limits: list[StoppingRule] = []
    for rule in training.stopping_rules:
        match rule:
            case settings.IterationLimit():
                limits.append(IterationLimit(rule.limit))
            case settings.TimeLimit():
                rules.append(TimeLimit(rule.seconds))
            case settings.BoundStalling():
                rules.append(BoundStalling(rule.iterations, rule.tolerance))
            case settings.GapRule():
                rules.append(Gap((rule.relative_tolerance or 0.0) / 100.0))
    if training.stopping_mode == "all" and rules:
        # The iteration limit always caps.
        return AnyOf(AllOf(*rules), *limits)
    return AnyOf(*rules, *limits) if len(rules) + len(limits) > 1 else (rules + limits)[0]


def _selection(given: settings.CutSelectionConfig) -> Selection | None:
    """Lazy cuts are exact and faster than the peer's dynamic selection, so that one needs no rule here."""
    match given.selection:
        case settings.Level1Selection() as level1:
            return Level1(every=level1.check_frequency, tolerance=level1.tie_tolerance)
        case settings.Lml1Selection() as lml1:
            return LimitedMemoryLevel1(every=lml1.check_frequency, tolerance=lml1.tie_tolerance)
        case settings.DominationSelection():
            raise CaseError("config.json: cut selection 'domination' is not supported yet. Use level1.")
    return None


def _metadata(case: Case, seed: int, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "seed": seed,
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
        "stages": [{"id": stage.id, "label": stage.start_date.strftime("%Y-%m")} for stage in case.stages],
    }
