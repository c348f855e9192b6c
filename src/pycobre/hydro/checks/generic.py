"""Whether the user's own constraints can be read, mean something in every stage, and can be kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, check_reference, duplicate_ids, error
from pycobre.hydro.model.constraints import (
    EnergyProductivity,
    GenericBounds,
    GenericConstraint,
    NamedExpression,
    ScalarParameter,
)
from pycobre.hydro.model.expressions import ExpressionError, Linear, Term, parse
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.parameters import PlantData, parameter_value
from pycobre.hydro.model.production import ProductionModel
from pycobre.hydro.model.system import (
    Bus,
    EnergyContract,
    Hydro,
    Line,
    NonControllableSource,
    PumpingStation,
    Thermal,
)
from pycobre.hydro.model.table import NO_ID

_OWNERS = {
    "hydro": "hydros",
    "thermal": "thermals",
    "line": "lines",
    "bus": "buses",
    "pumping": "pumping_stations",
    "contract": "energy_contracts",
    "non": "non_controllable_sources",
}


def _parsed(
    constraints: tuple[GenericConstraint, ...],
    expressions: tuple[NamedExpression, ...],
    parameters: tuple[ScalarParameter, ...],
) -> Iterator[tuple[GenericConstraint, Linear | str]]:
    """Every constraint with its linear form, or with what is wrong about its text."""
    names = frozenset(p.name for p in parameters)
    named = {e.name: e.expression for e in expressions}
    for constraint in constraints:
        try:
            yield constraint, parse(constraint.expression, names, named)
        except ExpressionError as problem:
            yield constraint, str(problem)


@check
def generic_expressions_make_sense(
    generic_constraints: tuple[GenericConstraint, ...],
    generic_expressions: tuple[NamedExpression, ...],
    generic_parameters: tuple[ScalarParameter, ...],
    hydros: tuple[Hydro, ...],
    thermals: tuple[Thermal, ...],
    lines: tuple[Line, ...],
    buses: tuple[Bus, ...],
    pumping_stations: tuple[PumpingStation, ...],
    energy_contracts: tuple[EnergyContract, ...],
    non_controllable_sources: tuple[NonControllableSource, ...],
) -> Findings:
    """Every expression can be read, and its variables belong to entities that exist."""
    known = {
        "hydros": {x.id for x in hydros},
        "thermals": {x.id for x in thermals},
        "lines": {x.id for x in lines},
        "buses": {x.id for x in buses},
        "pumping_stations": {x.id for x in pumping_stations},
        "energy_contracts": {x.id for x in energy_contracts},
        "non_controllable_sources": {x.id for x in non_controllable_sources},
    }
    names = [p.name for p in generic_parameters]
    yield from duplicate_ids("generic_parameters", "parameter", names, "name")
    yield from duplicate_ids(
        "generic_constraints", "expression", [*(e.name for e in generic_expressions), *set(names)], "name"
    )
    for constraint, linear in _parsed(generic_constraints, generic_expressions, generic_parameters):
        entity = f"constraint {constraint.id}"
        if isinstance(linear, str):
            yield error(Layer.REFERENCES, "bad_expression", "generic_constraints", linear, entity=entity)
            continue
        for term in (*linear.terms, *linear.right):
            v = term.variable
            if v is not None:
                owner = _OWNERS[v.name.split("_")[0]]
                what = f"member of {owner}"
                yield from check_reference("generic_constraints", entity, v.name, v.id, known[owner], what)
                yield from check_reference(
                    "generic_constraints", entity, f"{v.name} bus", v.bus, known["buses"], "bus"
                )


@check
def generic_constraints_hold_somewhere(
    generic_constraints: tuple[GenericConstraint, ...],
    generic_expressions: tuple[NamedExpression, ...],
    generic_parameters: tuple[ScalarParameter, ...],
    generic_bounds: GenericBounds,
    stages: tuple[Stage, ...],
    hydros: tuple[Hydro, ...],
    production_models: tuple[ProductionModel, ...],
    energy_productivity: EnergyProductivity,
) -> Findings:
    """Where a constraint has bounds, its parameters have values, its blocks exist and its sides are in order."""
    parameters = {p.name: p for p in generic_parameters}
    plants = PlantData(hydros, production_models, energy_productivity)
    by_id = {c.id: x for c, x in _parsed(generic_constraints, generic_expressions, generic_parameters)}
    by_stage = {stage.id: stage for stage in stages}
    for row in range(len(generic_bounds)):
        linear = by_id.get(int(generic_bounds.constraint_id[row]))
        stage = by_stage.get(int(generic_bounds.stage_id[row]))
        if linear is None or isinstance(linear, str) or stage is None:
            continue  # said elsewhere
        entity = f"constraint {generic_bounds.constraint_id[row]}, stage {stage.id}"
        blocks = {block.id for block in stage.blocks}
        for term in (*linear.terms, *linear.right):
            if term.variable is not None:
                at = term.variable.block
                yield from check_reference(
                    "generic_constraints", entity, "block", at, blocks, "block of the stage"
                )
        own = int(generic_bounds.block_id[row])
        for block in sorted(blocks) if own == NO_ID else [own]:
            used = _used(linear)
            values = {name: parameter_value(parameters[name], stage, block, plants) for name in used}
            missing = [name for name in used if values[name] is None]
            if missing:
                yield error(
                    Layer.COVERAGE,
                    "missing_parameter",
                    "generic_parameters",
                    "a parameter has a value where a constraint uses it",
                    entity=f"parameter {missing[0]!r}, {entity}, block {block}",
                    suggestion=f"Its kind is {parameters[missing[0]].kind!r}.",
                )
                break
            low, high = _sides(linear, generic_bounds, row, values)
            if low > high:
                yield error(
                    Layer.PHYSICAL,
                    "inverted_bounds",
                    "generic_bounds",
                    "the lower bound is not above the upper bound",
                    entity=entity,
                    value=f"{low:g} and {high:g}",
                )
                break


def _used(linear: Linear) -> list[str]:
    return sorted({name for term in (*linear.terms, *linear.right) for name in term.parameters})


def _sides(
    linear: Linear, bounds: GenericBounds, row: int, values: Mapping[str, float | None]
) -> tuple[float, float]:
    """The interval in force: a relation adds its right side to the bound on its side."""
    low, high = float(bounds.bound_lower[row]), float(bounds.bound_upper[row])
    fixed = sum(_constant(term, values) for term in linear.right)
    if linear.relation in ("<=", "=="):
        high = fixed + (0.0 if np.isnan(high) else high)
    if linear.relation in (">=", "=="):
        low = fixed + (0.0 if np.isnan(low) else low)
    return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)


def _constant(term: Term, values: Mapping[str, float | None]) -> float:
    if term.variable is not None:
        return 0.0
    return term.coefficient * float(np.prod([values[name] or 0.0 for name in term.parameters]))
