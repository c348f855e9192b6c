"""User constraints: lower ≤ linear form of the system's variables ≤ upper, per stage and block, with slack."""

from __future__ import annotations

from functools import cache

import numpy as np

from pycobre.errors import CaseError
from pycobre.hydro.equations.index import labels
from pycobre.hydro.equations.stage_builder import StageLpBuilder
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.constraints import GenericConstraint, ScalarParameter
from pycobre.hydro.model.expressions import Linear, Term, Variable, parse
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.parameters import PlantData, parameter_value
from pycobre.hydro.model.table import NO_ID

__all__ = ["add_generic_constraints"]

Entries = tuple[list[tuple[int, float]], float]


def add_generic_constraints(d: StageLpBuilder) -> None:
    """A row for every block that a bound names (null: all blocks), with slacks at the penalty per hour.

    A relation in the expression adds its right side to the bound on its side of the interval.
    """
    table, stage = d.case.generic_bounds, d.numbers.stage
    by_id = {constraint.id: constraint for constraint in d.case.generic_constraints}
    places: list[tuple[int, int]] = []
    rows: list[int] = []
    slacks: list[tuple[int, int]] = []
    constants: list[float] = []
    names = dict(zip(by_id, labels(d.case.generic_constraints), strict=True))
    block = {b.id: k for k, b in enumerate(stage.blocks)}
    parsed = {constraint.id: _parse(d.case, constraint) for constraint in d.case.generic_constraints}
    for i in np.flatnonzero(table.stage_id == stage.id).tolist():
        constraint = by_id[int(table.constraint_id[i])]
        named = int(table.block_id[i])
        for k in range(len(d.blocks)) if named == NO_ID else [block[named]]:
            lower, upper = float(table.bound_lower[i]), float(table.bound_upper[i])
            # A bound for all blocks and one for a block are two rows.
            twice = "" if (constraint.id, k) not in places else "+"
            label = f"{names[constraint.id]}{twice},{d.blocks[k]}"
            row, slack, constant = _add_row(d, constraint, label, parsed[constraint.id], k, lower, upper)
            if row is not None:
                places.append((constraint.id, k))
                rows.append(row)
                slacks.append(slack)
                constants.append(constant)
    d.places["generic"] = np.array(places, dtype=np.int32).reshape(-1, 2)
    d.rows["generic"] = np.array(rows, dtype=np.int32)
    d.columns["generic_slack"] = np.array(slacks, dtype=np.int32).reshape(-1, 2)
    d.constants["generic"] = np.array(constants)


def _add_row(
    d: StageLpBuilder,
    constraint: GenericConstraint,
    label: str,
    linear: Linear,
    k: int,
    lower: float,
    upper: float,
) -> tuple[int | None, tuple[int, int], float]:
    """The row, its columns of slack below and above (−1: none), and the expression's constant."""
    entries, constant = _entries(d, linear.terms, k)
    if linear.relation is not None:
        moved, fixed = _entries(d, linear.right, k)
        entries += [(column, -value) for column, value in moved]
        if linear.relation in ("<=", "=="):
            upper = fixed + (0.0 if np.isnan(upper) else upper)
        if linear.relation in (">=", "=="):
            lower = fixed + (0.0 if np.isnan(lower) else lower)
    low = -np.inf if np.isnan(lower) else lower - constant
    high = np.inf if np.isnan(upper) else upper - constant
    if np.isinf(low) and np.isinf(high):
        return None, (-1, -1), constant
    row = int(d.lp.rows("generic", [[label]], low, high)[0])
    for column, value in entries:
        d.lp.add(row, column, value)
    slack = [-1, -1]
    if constraint.slack.enabled:
        price = (constraint.slack.penalty or 0.0) * d.hours[k]
        for side, (bound, sign, name) in enumerate(((low, 1.0, "below"), (high, -1.0, "above"))):
            if np.isfinite(bound):
                slack[side] = int(d.lp.columns(f"generic_{name}", [[label]], 0.0, np.inf, price)[0])
                d.lp.add(row, slack[side], sign)
    return row, (slack[0], slack[1]), constant


def _parse(case: Case, constraint: GenericConstraint) -> Linear:
    return _read(
        constraint.expression,
        frozenset(p.name for p in case.generic_parameters),
        tuple((e.name, e.expression) for e in case.generic_expressions),
    )


@cache
def _read(text: str, parameters: frozenset[str], expressions: tuple[tuple[str, str], ...]) -> Linear:
    """The same text stands in every stage."""
    return parse(text, parameters, dict(expressions))


def _entries(d: StageLpBuilder, terms: tuple[Term, ...], k: int) -> Entries:
    """Columns with coefficients, and the constant part, of some terms in block `k`."""
    found: list[tuple[int, float]] = []
    constant = 0.0
    parameters = {p.name: p for p in d.case.generic_parameters}
    for term in terms:
        factor = term.coefficient
        for name in term.parameters:
            factor *= _parameter(d.case, parameters[name], d.numbers.stage, k)
        if term.variable is None:
            constant += factor
            continue
        columns, fixed = _variable(d, term.variable, k)
        found += [(column, factor * value) for column, value in columns]
        constant += factor * fixed
    return found, constant


def _parameter(case: Case, parameter: ScalarParameter, stage: Stage, k: int) -> float:
    block = stage.blocks[k].id
    plants = PlantData(case.hydros, case.production_models, case.energy_productivity)
    value = parameter_value(parameter, stage, block, plants)
    if value is None:
        raise CaseError(
            f"constraints/generic_parameters.json: parameter {parameter.name!r}: expected a value for stage "
            f"{stage.id}, block {block}, got none."
        )
    return value


def _variable(d: StageLpBuilder, variable: Variable, k: int) -> Entries:
    """What a variable is in the LP: columns with factors, and a constant."""
    index, c, n = d.index, d.columns, d.numbers
    if variable.block is not None:
        k = [block.id for block in n.stage.blocks].index(variable.block)
    name, id_ = variable.name, variable.id
    if name.startswith("hydro_"):
        return _hydro(d, variable, index.hydro[id_], k)
    if name == "thermal_generation":
        return [(int(c["thermal"][index.thermal[id_], k]), 1.0)], 0.0
    if name.startswith("line_"):
        direct, reverse = (int(c[side][index.line[id_], k]) for side in ("direct", "reverse"))
        parts = {"line_direct": [(direct, 1.0)], "line_reverse": [(reverse, 1.0)]}
        return parts.get(name, [(direct, 1.0), (reverse, -1.0)]), 0.0
    if name == "bus_excess":
        return [(int(c["excess"][index.bus[id_], k]), 1.0)], 0.0
    if name == "bus_deficit":
        mine = np.flatnonzero(d.places["deficit"][:, 0] == index.bus[id_])
        return [(int(c["deficit"][s, k]), 1.0) for s in mine], 0.0
    if name.startswith("pumping_"):
        s = index.pump[id_]
        factor = d.case.pumping_stations[s].consumption_mw_per_m3s if name == "pumping_power" else 1.0
        return [(int(c["pumped"][s, k]), factor)], 0.0
    if name.startswith("contract_"):
        return [(int(c["contract"][index.contract[id_], k]), 1.0)], 0.0
    r = index.source[id_]
    column = int(c["source"][r, k])
    if name == "non_controllable_generation":
        return [(column, 1.0)], 0.0
    available = n.source_capacity[r] * np.clip(d.model.mean_availability[r], 0.0, 1.0) * n.source_factor[r, k]
    return [(column, -1.0)], float(available)


def _hydro(d: StageLpBuilder, variable: Variable, h: int, k: int) -> Entries:
    index, c = d.index, d.columns
    pairs = [
        p for p in index.pairs_of(h).tolist() if variable.bus in (None, d.case.buses[index.pair_bus[p]].id)
    ]
    turbined = [(int(c["turbined"][p, k]), 1.0) for p in pairs]
    spilled = [(int(c["spillage"][h, k]), 1.0)]
    channel = [i for i, plant in enumerate(d.diverting.tolist()) if plant == h]
    diverted = [(int(c["diversion"][i, k]), 1.0) for i in channel]
    match variable.name:
        case "hydro_storage":
            return [(int(c["storage"][h]), 1.0)], 0.0
        case "hydro_turbined":
            return turbined, 0.0
        case "hydro_spillage":
            return spilled, 0.0
        case "hydro_diversion":
            return diverted, 0.0
        case "hydro_outflow":
            return turbined + spilled, 0.0
        case "hydro_generation":
            return [(int(d.generation[p][0][k]), d.generation[p][1]) for p in pairs], 0.0
        case "hydro_evaporation":
            wet = np.flatnonzero(d.places["evaporation"] == h)
            return [(int(c["evaporation"][i, k if d.chronological else 0]), 1.0) for i in wet], 0.0
        case _:
            drawn = np.flatnonzero(d.places["withdrawal"] == h)
            slack = [(int(c["withdrawal_over"][i]), 1.0) for i in drawn]
            slack += [(int(c["withdrawal_under"][i]), -1.0) for i in drawn]
            return slack, float(d.numbers.hydro.withdrawal[h])
