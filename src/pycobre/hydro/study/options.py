"""A case's configuration as the options of training: trajectories, stopping, risk, cut selection."""

from __future__ import annotations

from pycobre.hydro.build import HydroModel
from pycobre.hydro.model import config as settings
from pycobre.hydro.model.horizon import CVaR
from pycobre.sddp import (
    AllOf,
    AnyOf,
    BoundStalling,
    Domination,
    Expectation,
    Gap,
    GrowingTrajectories,
    InteriorPoints,
    IterationLimit,
    Level1,
    LimitedMemoryLevel1,
    RiskMeasure,
    Selection,
    StoppingRule,
    TimeLimit,
    TrainOptions,
    expectation_and_cvar,
)

__all__ = ["train_options"]


def train_options(model: HydroModel) -> TrainOptions:
    """How a case says that it is to be trained."""
    training = model.case.config.training
    chosen = training.selection
    measures: dict[str, RiskMeasure] = {}
    stages = model.case.stages
    # A stage's measure weighs what it looks ahead to; that of the first also weighs its own openings.
    for node, t in zip(model.problem.nodes, model.graph.stage_of, strict=True):
        measures[node.name] = _measure(stages[t].risk_measure)
    return TrainOptions(
        forward_passes=chosen.forward_passes if isinstance(chosen, settings.SampledPasses) else 1,
        enumerated=isinstance(chosen, settings.Enumerated),
        stopping=_stopping(training),
        risk=measures,
        root_risk=_measure(stages[0].risk_measure),
        selection=_selection(training.cut_selection),
        interior=_interior(training.interior_points),
        trajectories=_trajectories(training.growing_trajectories),
        seed=model.seed,
    ).resolved(model.problem)


def _measure(given: str | CVaR) -> RiskMeasure:
    if isinstance(given, str):
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
                relative = rule.relative_tolerance
                rules.append(Gap(None if relative is None else relative / 100.0, rule.tolerance))
    if training.stopping_mode == "all" and rules:
        # The iteration limit always caps.
        return AnyOf(AllOf(*rules), *limits)
    return AnyOf(*rules, *limits) if len(rules) + len(limits) > 1 else (rules + limits)[0]


def _interior(given: settings.InteriorPointsConfig | None) -> InteriorPoints | None:
    """Where a case says nothing, as in any other training; weight 0 makes the cuts where Cobre makes them."""
    if given is None:
        return TrainOptions.interior
    if given.initial == 0.0:
        return None
    return InteriorPoints(given.initial, given.decay, given.last, given.graded, given.least_states)


def _trajectories(given: settings.GrowingTrajectoriesConfig | None) -> GrowingTrajectories | None:
    return None if given is None else GrowingTrajectories(given.initial, given.every)


def _selection(given: settings.CutSelectionConfig) -> Selection | None:
    """Lazy cuts are exact and faster than the peer's dynamic selection, so that one needs no rule here."""
    match given.selection:
        case settings.Level1Selection() as level1:
            return Level1(every=level1.check_frequency, tolerance=level1.tie_tolerance)
        case settings.Lml1Selection() as lml1:
            return LimitedMemoryLevel1(every=lml1.check_frequency, tolerance=lml1.tie_tolerance)
        case settings.DominationSelection() as domination:
            return Domination(every=domination.check_frequency, tolerance=domination.domination_tolerance)
    return None
