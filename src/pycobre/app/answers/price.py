"""Which plant or constraint sets a price: the stage's LP solved again at the recorded state, read by its basis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pycobre.app.answers.answer_records import Binding, Contribution, PriceExplanation
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.scenario_replay import stage_visit
from pycobre.app.answers.stage_names import StageNames
from pycobre.app.answers.table_scan import Columns, Comparison
from pycobre.errors import OptionError
from pycobre.sddp import Policy
from pycobre.sddp.plan import Plan
from pycobre.sddp.policy import cuts_of
from pycobre.solver.api import LpModel, LpTemplate
from pycobre.solver.marginal import Marginal, marginal, stage_lp

__all__ = ["explain_price"]

MOST = 40
FREE = 1e-7


def explain_price(
    tables: RunTables,
    case: Path,
    policy: Policy,
    bus: str | int,
    stage: str | int,
    block: int = 0,
    scenario: int = 0,
) -> PriceExplanation:
    """Explain the marginal cost of a bus in one stage, block and scenario of a simulation."""
    number, name = tables.entity("buses", bus)
    where = tables.stage(stage)
    visit = stage_visit(tables, case, policy, scenario, where)
    blocks = [each.id for each in visit.model.numbers[visit.position].stage.blocks]
    if block not in blocks:
        raise OptionError(f"block: expected one of {blocks}, got {block}.")
    k = blocks.index(block)
    hours = float(visit.model.numbers[visit.position].hours[k])
    lps = visit.model.lps[visit.position]
    row = int(lps.rows["load_balance"][visit.model.index.bus[number], k])
    node = Plan.of(visit.model.problem).nodes[visit.position]
    cuts = cuts_of(node, policy).view() if node.has_future else None
    lp = stage_lp(node.model, visit.incoming, visit.noise, cuts, visit.outgoing)
    found = marginal(lp, row)
    names = StageNames(visit.model)
    price = float(found.row_dual[row]) / hours
    recorded = _recorded(tables, number, where, block, scenario)
    parts = _contributions(names, lp, node.model, found, hours)
    binding = _binding(names, lp, found, row)
    return PriceExplanation(
        run=tables.run,
        bus=name,
        stage=where,
        block=block,
        scenario=scenario,
        price=price,
        recorded=recorded,
        agrees=recorded is not None and abs(price - recorded) <= 1e-6 * max(1.0, abs(recorded)),
        load_mw=float(lp.row_lower[row]),
        sentence=_sentence(name, price, parts, binding),
        contributions=parts,
        binding=binding,
        sources=[
            tables.source("buses"),
            tables.policy_source(),
        ],
    )


def _contributions(
    names: StageNames, lp: LpTemplate, model: LpModel, found: Marginal, hours: float
) -> list[Contribution]:
    """What moves with one more MW of load, dearest first; their costs add up to the price."""
    parts = []
    for column in np.flatnonzero(found.response).tolist():
        change = float(found.response[column])
        cost = float(lp.cost[column]) * change / hours
        if column == model.theta_column:
            parts += _later(names, lp, model, found, hours, cost)
            continue
        place = names.of(lp.col_name(column))
        if cost == 0.0 and place.kind in ("state", "other"):
            continue
        parts.append(
            Contribution(
                place.kind, place.entity, place.entity_id, lp.col_name(column), change, place.unit, cost
            )
        )
    parts.sort(key=lambda each: (-abs(each.cost), -abs(each.change_per_mw), each.variable))
    return parts[:MOST]


def _later(
    names: StageNames, lp: LpTemplate, model: LpModel, found: Marginal, hours: float, cost: float
) -> list[Contribution]:
    """The part of the price that is cost of later stages, by the state that changes, such as stored water."""
    tight = [r for r in range(model.template.num_rows, lp.num_rows) if not found.row_basic[r]]
    if not tight:
        return [Contribution("cost-to-go", "", None, "theta", cost, "$", cost)] if cost else []
    row = tight[0]  # along the move all tight cuts rise alike, since θ follows each of them
    parts = []
    for column, value in _entries(lp, row):
        change = float(found.response[column])
        if column == model.theta_column or change == 0.0:
            continue
        place = names.of(lp.col_name(column))
        share = -value * change * float(lp.cost[model.theta_column]) / hours
        kind = "stored water" if place.kind == "storage" else "later stages"
        parts.append(
            Contribution(kind, place.entity, place.entity_id, lp.col_name(column), change, place.unit, share)
        )
    return parts


def _binding(names: StageNames, lp: LpTemplate, found: Marginal, row: int) -> list[Binding]:
    """Limits of what stands in the bus's balance that hold and cost something, the dearest first."""
    limits = []
    for column, _ in _entries(lp, row):
        cost = float(found.reduced_cost[column])
        upper = cost < 0.0
        unused = not upper and found.primal[column] == 0.0  # that a plant stands still is no limit
        fixed = lp.col_lower[column] == lp.col_upper[column]
        if found.col_basic[column] or abs(cost) <= FREE or fixed or unused:
            continue
        place = names.of(lp.col_name(column))
        limits.append(
            Binding(
                place.kind,
                place.entity,
                place.entity_id,
                lp.col_name(column),
                "upper" if upper else "lower",
                float(found.primal[column]),
                abs(cost),
            )
        )
    limits.sort(key=lambda each: (-each.saves, each.variable))
    return limits[:MOST]


def _entries(lp: LpTemplate, row: int) -> list[tuple[int, float]]:
    """Columns and coefficients of a row."""
    at = np.flatnonzero(lp.rows == row)
    columns = np.searchsorted(lp.starts, at, side="right") - 1
    return list(zip(columns.tolist(), lp.values[at].tolist(), strict=True))


def _sentence(bus: str, price: float, parts: Sequence[Contribution], binding: Sequence[Binding]) -> str:
    costs: dict[str, float] = {}
    for each in parts:
        who = f"{each.kind} {each.entity}".rstrip()
        costs[who] = costs.get(who, 0.0) + each.cost
    paid = [(who, cost) for who, cost in costs.items() if abs(cost) > 1e-6 * max(1.0, abs(price))]
    by = ", ".join(f"{who} ({cost:.6g})" for who, cost in paid[:4])
    more = f" and {len(paid) - 4} more" if len(paid) > 4 else ""
    text = f"One more MWh at {bus} costs {price:.6g} $: {by or 'nothing has to be paid for it'}{more}."
    full = [each for each in binding if each.kind == "exchange" and each.limit == "upper"]
    if full:
        text += f" Full lines: {', '.join(each.entity for each in full[:4])}."
    return text


def _recorded(tables: RunTables, bus: int, stage: int, block: int, scenario: int) -> float | None:
    if "buses" not in tables.available:
        return None
    where = [
        Comparison(name, "==", (float(value),))
        for name, value in (
            ("scenario_id", scenario),
            ("stage_id", stage),
            ("bus_id", bus),
            ("block_id", block),
        )
    ]

    def take(columns: Columns) -> list[float]:
        return [float(each) for each in columns["marginal_cost"]]

    found = [
        value for part in tables.open("buses").reduced(("marginal_cost",), where, take) for value in part
    ]
    return found[0] if found else None
