"""Anticipated dispatch: thermal generation decided stages ahead.

A decision is the mean power (MW) of a plant over its delivery stage. It is paid for where it is taken, discounted
from the delivery; in the delivery stage the blocks share it out as the plant's limits allow:
Σ_k H_k·generation_k = Σ_k H_k·commitment. In between it is a state: lane j holds what is committed for the stage j
stages from the incoming one. What was decided before the study costs it nothing.
"""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.hydro.equations.resolve import StageNumbers
from pycobre.hydro.equations.stage_builder import StageLpBuilder
from pycobre.hydro.model.anticipation import BEFORE_STUDY, commitment_of, decision_stages
from pycobre.hydro.model.case import Case

__all__ = ["Anticipation", "Decision", "add_commitments", "anticipation_of"]


@frozen()
class Decision:
    """Of one plant for one stage: its limits, and its price where it is taken."""

    thermal: int
    delivery: int
    lower: float
    upper: float
    price: float  #: per MW


@frozen(eq=False)
class Anticipation:
    """Of all plants of a case; stages are positions."""

    lanes: tuple[tuple[int, int], ...]  #: (thermal, stages ahead)
    decisions: tuple[tuple[Decision, ...], ...]  #: by stage
    delivers: tuple[frozenset[int], ...]  #: by stage: thermals whose generation was decided before
    decided: dict[int, list[int]]  #: thermal → deciding stage by delivery stage
    initial: F64  #: MW by lane


def anticipation_of(
    case: Case, numbers: tuple[StageNumbers, ...], discounts: list[float]
) -> Anticipation | None:
    """The decisions of a case and their states; None where every plant is dispatched as it runs."""
    stages, count = case.stages, len(case.stages)
    decided = {
        g: decision_stages(thermal.anticipated_config, stages)
        for g, thermal in enumerate(case.thermals)
        if thermal.anticipated_config is not None
    }
    if not decided:
        return None
    ahead = {
        g: max((d - t for d, t in enumerate(by_delivery) if t < d), default=0)
        for g, by_delivery in decided.items()
    }
    lanes = tuple((g, j) for g in sorted(ahead) for j in range(ahead[g]))
    decisions: list[list[Decision]] = [[] for _ in range(count)]
    for g, by_delivery in decided.items():
        for d, t in enumerate(by_delivery):
            if BEFORE_STUDY < t < d:
                decisions[t].append(_decision(g, d, numbers[d], float(np.prod(discounts[t:d]))))
    initial = np.zeros(len(lanes))
    for i, (g, j) in enumerate(lanes):
        if j < count and decided[g][j] == BEFORE_STUDY:
            windows = case.initial_conditions.past_anticipated_commitments
            mine = tuple(w for w in windows if w.thermal_id == case.thermals[g].id)
            initial[i] = commitment_of(mine, stages[j]) or 0.0
    delivers = tuple(frozenset(g for g in decided if decided[g][t] < t) for t in range(count))
    return Anticipation(lanes, tuple(tuple(each) for each in decisions), delivers, decided, initial)


def _decision(g: int, delivery: int, numbers: StageNumbers, discount: float) -> Decision:
    hours = numbers.hours
    share = hours / hours.sum()
    lower, upper = ((share * bound[g]).sum() for bound in (numbers.thermal_min, numbers.thermal_max))
    price = discount * float((numbers.thermal_cost[g] * hours).sum())
    return Decision(g, delivery, float(lower), float(upper), price)


def add_commitments(d: StageLpBuilder) -> None:
    """The lanes, this stage's decisions, and the delivery of what was decided for it."""
    plan, t = d.model.anticipation, d.model.position
    d.columns["anticipated_decision"] = np.zeros(0, np.int32)
    if plan is None:
        return
    names, lp = d.index.thermal_names, d.lp
    labels = [f"{names[g]},{j}" for g, j in plan.lanes]
    incoming = lp.columns("commitment_in", [labels], -np.inf, np.inf)
    made = plan.decisions[t]
    stages = d.case.stages
    decision = lp.columns(
        "anticipated_decision",
        [[f"{names[each.thermal]},{stages[each.delivery].id}" for each in made]],
        np.array([each.lower for each in made]),
        np.array([each.upper for each in made]),
        np.array([each.price for each in made]),
    )
    d.columns["commitment_in"], d.columns["anticipated_decision"] = incoming, decision
    d.columns["commitment"] = _outgoing(d, labels, incoming, decision)
    place = {lane: i for i, lane in enumerate(plan.lanes)}
    share = d.hours / d.hours.sum()
    for g in sorted(plan.delivers[t]):
        row = lp.rows("commitment", [[names[g]]], 0.0, 0.0)
        lp.add(row, d.columns["thermal"][g], share)
        lp.add(row, incoming[place[g, 0]], -1.0)


def _outgoing(d: StageLpBuilder, labels: list[str], incoming: I32, decision: I32) -> I32:
    """The column of every lane as the next stage sees it: one of before, one of now, or nothing."""
    plan, t = d.model.anticipation, d.model.position
    assert plan is not None
    place = {lane: i for i, lane in enumerate(plan.lanes)}
    now = {(each.thermal, each.delivery): decision[i] for i, each in enumerate(plan.decisions[t])}
    found = np.empty(len(plan.lanes), np.int32)
    for i, (g, j) in enumerate(plan.lanes):
        delivery = t + 1 + j
        deciding = plan.decided[g][delivery] if delivery < len(d.case.stages) else delivery
        if (g, delivery) in now:
            found[i] = now[g, delivery]
        elif deciding < t and deciding < delivery:
            found[i] = incoming[place[g, j + 1]]
        else:
            found[i] = d.lp.columns("no_commitment", [[labels[i]]], 0.0, 0.0)[0]
    return found
