"""From a case to a multistage problem and everything that belongs to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.hydro.checks import require_sound
from pycobre.hydro.equations.anticipated import Anticipation, anticipation_of
from pycobre.hydro.equations.boundary import BoundaryCosts, boundary_costs
from pycobre.hydro.equations.evaporation import linear_evaporation
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.period_step import PeriodStep
from pycobre.hydro.equations.production import productions
from pycobre.hydro.equations.resolve import Resolver, StageNumbers
from pycobre.hydro.equations.stage_builder import StageLp, StageModel
from pycobre.hydro.equations.stage_lp import build_stage_lp
from pycobre.hydro.equations.travel import Travel, travel_times
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.graph import START, CaseGraph, graph_of
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.seasons import with_seasons
from pycobre.hydro.uncertainty.estimation import with_estimates
from pycobre.hydro.uncertainty.external import with_external_statistics
from pycobre.hydro.uncertainty.inflows import inflow_model, initial_lags
from pycobre.hydro.uncertainty.noise import NoiseLayout, StageNoise, stage_noise
from pycobre.hydro.uncertainty.periods import initial_accumulation, period_steps
from pycobre.hydro.uncertainty.pinned import pinned_values
from pycobre.hydro.uncertainty.tree import opening_noise, tree_seed
from pycobre.problem import ROOT, Arcs, Boundary, Node, Noise, Problem, State
from pycobre.stochastic.par import Par

__all__ = ["HydroModel", "build_model"]


DAYS_PER_YEAR = 365.25
NAME = "hydrothermal system"  # of every problem: what a case is called is in no digest


@frozen(eq=False)
class HydroModel:
    """A case as equations: the problem, and the maps between its numbers and the case's entities."""

    case: Case
    problem: Problem
    index: Index
    layout: NoiseLayout
    par: Par
    numbers: tuple[StageNumbers, ...]  #: by stage, as everything below
    lps: tuple[StageLp, ...]
    noise: tuple[StageNoise, ...]
    openings: tuple[F64, ...]  #: standardised noise [openings, dimension]
    periods: tuple[PeriodStep, ...] | None  #: where lags belong to periods of several stages
    graph: CaseGraph  #: whose nodes are those of the problem
    travel: Travel | None = None  #: where some rivers take time
    beyond: BoundaryCosts | None = None  #: the last stage

    @property
    def seed(self) -> int:
        """Of the opening tree and of in-sample draws."""
        return tree_seed(self.case)


@frozen(eq=False)
class RandomParts:
    """What is random in a case, before its problem is put together (a `NoiseModel`)."""

    case: Case
    index: Index
    layout: NoiseLayout
    par: Par
    noise: tuple[StageNoise, ...]
    openings: tuple[F64, ...]
    periods: tuple[PeriodStep, ...] | None

    @property
    def seed(self) -> int:
        return tree_seed(self.case)


def build_model(case: Case) -> HydroModel:
    """Write every stage's LP and join them. Raises `CaseError` for a case that makes no sense."""
    require_sound(case)
    case = with_external_statistics(with_estimates(_with_seasons(case)))
    index = Index(case)
    par = inflow_model(case, index)
    layout = NoiseLayout(case, index)
    resolver = Resolver(case, index)
    numbers = tuple(resolver.stage(stage) for stage in case.stages)
    discounts = [_discount(case, stage) for stage in case.stages]
    anticipation = anticipation_of(case, numbers, discounts)
    steps = period_steps(case, index) if par.order else ()
    periods = None if all(step.whole for step in steps) else steps
    travel = travel_times(case, index)
    lps = tuple(
        build_stage_lp(case, index, n, _stage_model(case, par, periods, travel, anticipation, t))
        for t, n in enumerate(numbers)
    )
    noise = tuple(stage_noise(case, index, n, layout, lps[t], par, t) for t, n in enumerate(numbers))
    openings = opening_noise(case, index, layout, par)
    states = _states(case, index, par, periods is not None, travel, anticipation)
    graph = graph_of(case.policy_graph, case.stages)
    random = RandomParts(case, index, layout, par, noise, openings, periods)
    beyond = boundary_costs(case, index, [state.name for state in states])
    problem = _problem(random, graph, states, discounts, lps, beyond)
    return HydroModel(
        case, problem, index, layout, par, numbers, lps, noise, openings, periods, graph, travel, beyond
    )


def _with_seasons(case: Case) -> Case:
    """The case with the seasons that its stages leave to their dates."""
    defined = case.season_definitions
    return replace(
        case,
        stages=with_seasons(case.stages, defined),
        pre_study_stages=with_seasons(case.pre_study_stages, defined),
    )


def _stage_model(
    case: Case,
    par: Par,
    periods: tuple[PeriodStep, ...] | None,
    travel: Travel | None,
    anticipation: Anticipation | None,
    t: int,
) -> StageModel:
    stage, load = case.stages[t], case.load_stats
    means = {
        b: m
        for b, s, m in zip(load.bus_id.tolist(), load.stage_id.tolist(), load.mean_mw.tolist(), strict=True)
        if s == stage.id
    }
    source = case.source_stats
    ready = {
        r: m
        for r, s, m in zip(
            source.ncs_id.tolist(), source.stage_id.tolist(), source.mean.tolist(), strict=True
        )
        if s == stage.id
    }
    method = case.config.modeling.inflow_non_negativity.method
    return StageModel(
        production=productions(case, stage),
        evaporation=tuple(linear_evaporation(case, hydro, stage) for hydro in case.hydros),
        psi=par.psi[t],
        period=None if periods is None else periods[t],
        inflow_slack=method in ("penalty", "truncation_with_penalty"),
        mean_load=np.array([means.get(bus.id, 0.0) for bus in case.buses]),
        mean_availability=np.array([ready.get(s.id, 1.0) for s in case.non_controllable_sources]),
        travel=travel,
        anticipation=anticipation,
        position=t,
    )


def _problem(
    random: RandomParts,
    graph: CaseGraph,
    states: tuple[State, ...],
    discounts: list[float],
    lps: tuple[StageLp, ...],
    beyond: BoundaryCosts | None,
) -> Problem:
    """One node of the problem for every node of the graph: the LP of its stage, and its own noise."""
    least, pinned = _least_costs(lps, discounts, beyond, cyclic=graph.cyclic), pinned_values(random, graph)
    boundary = None if beyond is None else Boundary(beyond.intercept, beyond.slope)
    ways = [_state_columns(lp, random, t) for t, lp in enumerate(lps)]
    supports = [
        places.values(openings) for places, openings in zip(random.noise, random.openings, strict=True)
    ]
    nodes = []
    for i, (name, t) in enumerate(zip(graph.names, graph.stage_of, strict=True)):
        values = pinned.get(i, supports[t])
        nodes.append(
            Node(
                name=name,
                template=lps[t].template,
                state_in=ways[t][0],
                state_out=ways[t][1],
                noise=Noise(random.noise[t].plan, values, np.full(len(values), 1.0 / len(values))),
                discount=discounts[t],
                theta_lower=least[t],
                rhs_corrections=random.noise[t].rhs_corrections,
                stage=t + 1,
                boundary=boundary if t + 1 == len(lps) else None,
            )
        )
    arcs = [(ROOT if source == START else source, target, p) for source, target, p in graph.arcs]
    return Problem(states, tuple(nodes), Arcs.of(arcs), name=NAME)


def _state_columns(lp: StageLp, random: RandomParts, t: int) -> tuple[I32, I32]:
    """The columns by which the states enter and leave a stage, in the order of `_states`."""
    states_in, states_out = [lp.columns["storage_in"]], [lp.columns["storage"]]
    steps = random.periods
    if random.par.order:
        lag = lp.columns["lag"]
        states_in.append(lag.reshape(-1))
        if steps is not None:
            states_in.append(lp.columns["accumulated_in"])
        if steps is None or steps[t].last:
            states_out += [lp.columns["inflow" if steps is None else "new_lag"], lag[:-1].reshape(-1)]
        else:
            states_out.append(lag.reshape(-1))
        if steps is not None:
            states_out.append(lp.columns["accumulated"])
    if "transit" in lp.columns:
        states_in.append(lp.columns["transit_in"])
        states_out.append(lp.columns["transit"])
    if "commitment" in lp.columns:
        states_in.append(lp.columns["commitment_in"])
        states_out.append(lp.columns["commitment"])
    return np.concatenate(states_in), np.concatenate(states_out)


def _states(
    case: Case,
    index: Index,
    par: Par,
    accumulating: bool,
    travel: Travel | None,
    anticipation: Anticipation | None,
) -> tuple[State, ...]:
    """Storage of every plant, the lags, lag by lag, what the period has seen, water on its way, commitments."""
    start = {
        s.hydro_id: s.value_hm3
        for s in (*case.initial_conditions.storage, *case.initial_conditions.filling_storage)
    }
    states = [
        State(f"storage[{name}]", start.get(hydro.id, 0.0))
        for name, hydro in zip(index.hydro_names, case.hydros, strict=True)
    ]
    for lag, values in enumerate(initial_lags(case, index, par.order), start=1):
        states += [
            State(f"inflow_lag[{lag},{name}]", float(value))
            for name, value in zip(index.hydro_names, values, strict=True)
        ]
    if accumulating:
        seen = initial_accumulation(case, index)
        states += [
            State(f"accumulated[{name}]", float(value))
            for name, value in zip(index.hydro_names, seen, strict=True)
        ]
    if travel is not None:
        states += [
            State(f"transit[{label}]", float(volume))
            for label, volume in zip(travel.labels(index), travel.initial, strict=True)
        ]
    if anticipation is not None:
        states += [
            State(f"commitment[{index.thermal_names[g]},{ahead}]", float(value))
            for (g, ahead), value in zip(anticipation.lanes, anticipation.initial, strict=True)
        ]
    return tuple(states)


def _discount(case: Case, stage: Stage) -> float:
    """(1 + r)^(−days/365.25) over the stage's calendar length; what comes after it is worth that much."""
    rate = case.policy_graph.annual_discount_rate
    for arc in case.policy_graph.transitions:
        if arc.source_id == stage.id and arc.annual_discount_rate_override is not None:
            rate = arc.annual_discount_rate_override
    if stage.annual_discount_rate_override is not None:
        rate = stage.annual_discount_rate_override
    return float((1.0 + rate) ** (-stage.days / DAYS_PER_YEAR))


def _least_costs(
    lps: tuple[StageLp, ...], discounts: list[float], beyond: BoundaryCosts | None, *, cyclic: bool
) -> list[float | None]:
    """A bound on what follows each stage: rewards, where there are any, at their most; 0 otherwise."""
    rewards = [_most_reward(lp) for lp in lps]
    total = 0.0 if beyond is None else beyond.floor
    if cyclic:
        # What a round earns at most, and again and again what it is worth a round later.
        worth = 1.0
        for reward, discount in zip(rewards, discounts, strict=True):
            total += worth * reward
            worth *= discount
        total /= 1.0 - worth
    below: list[float | None] = [None] * len(lps)
    for t in reversed(range(len(lps))):
        ends = t + 1 == len(lps) and beyond is None and not cyclic
        below[t] = None if ends else total
        total = rewards[t] + discounts[t] * total
    return below


def _most_reward(stage: StageLp) -> float:
    """What a stage costs at least for the columns that earn: 0, or a negative number."""
    lp = stage.template
    reward = lp.cost < 0.0
    return float((lp.cost[reward] * lp.col_upper[reward]).sum()) if reward.any() else 0.0
