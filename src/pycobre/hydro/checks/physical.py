"""Numbers that a power system can have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, error, warning
from pycobre.hydro.model.config import Config, SampledPasses, SampledScenarios
from pycobre.hydro.model.constraints import GenericConstraint
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import PolicyGraph, PreStudyStage, Stage
from pycobre.hydro.model.initial import InflowObservation, InitialConditions, PastDefluence
from pycobre.hydro.model.penalties import Penalties
from pycobre.hydro.model.scenarios import (
    ArCoefficients,
    Correlation,
    InflowStats,
    LoadFactors,
    LoadStats,
    SourceFactors,
    SourceStats,
)
from pycobre.hydro.model.system import (
    Bus,
    EnergyContract,
    Hydro,
    Line,
    NonControllableSource,
    PumpingStation,
    Thermal,
)

PHYSICAL = Layer.PHYSICAL

LONGEST_LAG = 366  # stages; every lag of every plant is a state


def _ordered(section: str, entity: str, low: float, high: float | None, names: str) -> Findings:
    """low ≤ high, and neither negative."""
    if low < 0.0:
        yield error(
            PHYSICAL, "negative", section, f"{names} are not negative", entity=entity, value=f"{low:g}"
        )
    if high is not None and high < max(low, 0.0):
        kind = "negative" if high < 0.0 else "inverted_bounds"
        yield error(
            PHYSICAL,
            kind,
            section,
            f"{names}: the minimum is not above the maximum",
            entity=entity,
            value=f"{low:g} and {high:g}",
        )


def _not_negative(section: str, entity: str, pairs: Iterable[tuple[str, float | None]]) -> Findings:
    for name, value in pairs:
        if value is not None and value < 0.0:
            yield error(
                PHYSICAL, "negative", section, f"{name} is not negative", entity=entity, value=f"{value:g}"
            )


@check
def times(stages: tuple[Stage, ...], pre_study_stages: tuple[PreStudyStage, ...]) -> Findings:
    every: list[Stage | PreStudyStage] = [*pre_study_stages, *stages]
    for stage in every:
        if stage.end_date <= stage.start_date:
            yield error(
                PHYSICAL,
                "dates",
                "stages",
                "a stage ends after it starts",
                entity=f"stage {stage.id}",
                value=f"{stage.start_date} to {stage.end_date}",
            )
    for stage in stages:
        for block in stage.blocks:
            if block.hours <= 0.0:
                yield error(
                    PHYSICAL,
                    "hours",
                    "stages",
                    "a block has hours",
                    entity=f"stage {stage.id}, block {block.id}",
                    value=f"{block.hours:g}",
                )
        risk = stage.risk_measure
        if not isinstance(risk, str):
            alpha, weight = risk.cvar.alpha, risk.cvar.lambda_
            if not 0.0 < alpha <= 1.0 or not 0.0 <= weight <= 1.0:
                yield error(
                    PHYSICAL,
                    "risk_measure",
                    "stages",
                    "0 < alpha ≤ 1 and 0 ≤ lambda ≤ 1",
                    entity=f"stage {stage.id}",
                    value=f"alpha {alpha:g}, lambda {weight:g}",
                )


@check
def rates(policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> Findings:
    given: list[tuple[str, float | None]]
    given = [("policy_graph.annual_discount_rate", policy_graph.annual_discount_rate)]
    given += [(f"stage {s.id}", s.annual_discount_rate_override) for s in stages]
    given += [
        (f"transition from {a.source_id}", a.annual_discount_rate_override) for a in policy_graph.transitions
    ]
    for where, rate in given:
        if rate is not None and rate < 0.0:
            yield error(
                PHYSICAL,
                "negative",
                "policy_graph",
                "a discount rate is not negative",
                where=where,
                value=rate,
            )


@check
def lines_make_sense(lines: tuple[Line, ...]) -> Findings:
    for line in lines:
        entity = f"line {line.id}"
        yield from _not_negative(
            "lines",
            entity,
            [
                ("capacity.direct_mw", line.capacity.direct_mw),
                ("capacity.reverse_mw", line.capacity.reverse_mw),
            ],
        )
        if line.source_bus_id == line.target_bus_id:
            yield error(PHYSICAL, "loop", "lines", "a line joins two buses", entity=entity)


@check
def plants_make_sense(
    thermals: tuple[Thermal, ...],
    non_controllable_sources: tuple[NonControllableSource, ...],
    energy_contracts: tuple[EnergyContract, ...],
    pumping_stations: tuple[PumpingStation, ...],
) -> Findings:
    for thermal in thermals:
        entity, limits = f"thermal {thermal.id}", thermal.generation
        yield from _ordered("thermals", entity, limits.min_mw, limits.max_mw, "generation limits")
        yield from _not_negative("thermals", entity, [("cost_per_mwh", thermal.cost_per_mwh)])
    for source in non_controllable_sources:
        yield from _not_negative(
            "non_controllable_sources",
            f"source {source.id}",
            [("max_generation_mw", source.max_generation_mw), ("curtailment_cost", source.curtailment_cost)],
        )
    for contract in energy_contracts:
        entity, limits = f"contract {contract.id}", contract.limits
        yield from _ordered("energy_contracts", entity, limits.min_mw, limits.max_mw, "limits")
    for station in pumping_stations:
        entity, flow = f"pumping station {station.id}", station.flow
        yield from _ordered("pumping_stations", entity, flow.min_m3s, flow.max_m3s, "flow limits")


@check
def hydros_make_sense(hydros: tuple[Hydro, ...], initial_conditions: InitialConditions) -> Findings:
    storage = {s.hydro_id: s.value_hm3 for s in initial_conditions.storage}
    for hydro in hydros:
        entity, tank, made = f"hydro {hydro.id}", hydro.reservoir, hydro.generation
        yield from _ordered("hydros", entity, tank.min_storage_hm3, tank.max_storage_hm3, "storage limits")
        out = hydro.outflow
        yield from _ordered("hydros", entity, out.min_outflow_m3s, out.max_outflow_m3s, "outflow limits")
        for name, unit in (("turbined", "m3s"), ("generation", "mw")):
            low, high = (getattr(made, f"{side}_{name}_{unit}") for side in ("min", "max"))
            yield from _ordered("hydros", entity, low, high, f"{name} limits")
            least = sum(getattr(group, f"min_{name}_{unit}") for group in hydro.unit_groups)
            most = sum(getattr(group, f"max_{name}_{unit}") for group in hydro.unit_groups)
            for group in hydro.unit_groups:
                small, large = (getattr(group, f"{side}_{name}_{unit}") for side in ("min", "max"))
                inside = f"{entity}, unit group {group.id}"
                yield from _ordered("hydros", inside, small, large, f"{name} limits")
            if most > high * (1.0 + 1e-9) + 1e-9:
                yield error(
                    PHYSICAL,
                    "unit_groups_exceed_plant",
                    "hydros",
                    f"the unit groups' max_{name}_{unit} sum to no more than the plant's {high:g}",
                    entity=entity,
                    value=f"{most:g}",
                )
            if least < low * (1.0 - 1e-9) - 1e-9:
                yield error(
                    PHYSICAL,
                    "unit_groups_below_plant",
                    "hydros",
                    f"the unit groups' min_{name}_{unit} sum to no less than the plant's {low:g}",
                    entity=entity,
                    value=f"{least:g}",
                )
        if hydro.diversion is not None:
            channel = [("diversion.max_flow_m3s", hydro.diversion.max_flow_m3s)]
            yield from _not_negative("hydros", entity, channel)
        yield from _not_negative("hydros", entity, [("travel_time_hours", hydro.travel_time_hours)])
        start = storage.get(hydro.id, 0.0)
        if hydro.filling is None and not tank.min_storage_hm3 <= start <= tank.max_storage_hm3:
            yield warning(
                PHYSICAL,
                "initial_storage",
                "initial_conditions",
                f"storage starts between {tank.min_storage_hm3:g} and {tank.max_storage_hm3:g} hm³",
                entity=entity,
                value=f"{start:g}",
            )


@check
def initial_makes_sense(initial_conditions: InitialConditions) -> Findings:
    for name in ("storage", "filling_storage"):
        for entry in getattr(initial_conditions, name):
            yield from _not_negative(
                "initial_conditions", f"hydro {entry.hydro_id}", [(name, entry.value_hm3)]
            )
    for entry in initial_conditions.past_defluences:
        entity = f"hydro {entry.hydro_id}"
        yield from _not_negative("initial_conditions", entity, [("past_defluences", entry.value_m3s)])
    windows: list[InflowObservation | PastDefluence]
    windows = [*initial_conditions.recent_observations, *initial_conditions.past_defluences]
    for window in windows:
        if window.end_date <= window.start_date:
            yield error(
                PHYSICAL,
                "dates",
                "initial_conditions",
                "an observation ends after it starts",
                entity=f"hydro {window.hydro_id}",
                value=f"{window.start_date} to {window.end_date}",
            )


@check
def deficits(penalties: Penalties, buses: tuple[Bus, ...]) -> Findings:
    lists = [("penalties", "bus.deficit_segments", penalties.bus.deficit_segments)]
    lists += [("buses", f"bus {b.id}", b.deficit_segments) for b in buses if b.deficit_segments is not None]
    for section, entity, segments in lists:
        if not segments:
            yield error(PHYSICAL, "deficit_segments", section, "there is a deficit segment", entity=entity)
            continue
        for i, segment in enumerate(segments):
            last = i == len(segments) - 1
            if (segment.depth_mw is None) != last:
                yield error(
                    PHYSICAL,
                    "deficit_segments",
                    section,
                    "the last deficit segment, and only it, has no depth",
                    entity=entity,
                    where=f"segment {i}",
                    value=segment.depth_mw,
                )
            yield from _not_negative(
                section, entity, [("depth_mw", segment.depth_mw), ("cost", segment.cost)]
            )


@check
def penalties_make_sense(penalties: Penalties) -> Findings:
    for part in ("hydro", "line", "non_controllable_source"):
        values = vars(getattr(penalties, part)).items()
        yield from _not_negative("penalties", part, [(name, value) for name, value in values])
    yield from _not_negative("penalties", "bus", [("excess_cost", penalties.bus.excess_cost)])


@check
def own_penalties_make_sense(hydros: tuple[Hydro, ...], lines: tuple[Line, ...]) -> Findings:
    for hydro in hydros:
        if hydro.penalties is not None:
            yield from _not_negative("hydros", f"hydro {hydro.id}", vars(hydro.penalties).items())
    for line in lines:
        yield from _not_negative("lines", f"line {line.id}", [("exchange_cost", line.exchange_cost)])


@check
def statistics(
    inflow_stats: InflowStats,
    load_stats: LoadStats,
    source_stats: SourceStats,
    ar_coefficients: ArCoefficients,
) -> Findings:
    for section, table, column in (
        ("inflow_stats", inflow_stats, "std_m3s"),
        ("load_stats", load_stats, "std_mw"),
        ("source_stats", source_stats, "std"),
        ("load_stats", load_stats, "mean_mw"),
        ("source_stats", source_stats, "mean"),
    ):
        values = getattr(table, column)
        for row in np.flatnonzero(values < 0.0).tolist():
            yield error(
                PHYSICAL,
                "negative",
                section,
                f"{column} is not negative",
                where=f"{column}, row {row}",
                value=f"{values[row]:g}",
            )
    lags = ar_coefficients.lag
    for row in np.flatnonzero((lags < 1) | (lags > LONGEST_LAG)).tolist():
        yield error(
            PHYSICAL,
            "lag",
            "ar_coefficients",
            f"lags count from 1 to {LONGEST_LAG}",
            where=f"lag, row {row}",
            value=ar_coefficients.lag[row],
        )


@check
def factors_make_sense(
    load_factors: tuple[LoadFactors, ...], source_factors: tuple[SourceFactors, ...]
) -> Findings:
    for section, entries, key in (
        ("load_factors", load_factors, "bus_id"),
        ("source_factors", source_factors, "ncs_id"),
    ):
        for entry in entries:
            for factor in entry.block_factors:
                if factor.factor <= 0.0:
                    yield error(
                        PHYSICAL,
                        "factor",
                        section,
                        "a factor is positive",
                        entity=f"{key} {getattr(entry, key)}, stage {entry.stage_id}, block {factor.block_id}",
                        value=f"{factor.factor:g}",
                    )


@check
def matrices(correlation: Correlation | None) -> Findings:
    if correlation is None:
        return
    for name, profile in correlation.profiles.items():
        for group in profile.correlation_groups:
            entity, n = f"profile {name!r}, group {group.name!r}", len(group.entities)
            if len(group.matrix) != n or any(len(row) != n for row in group.matrix):
                continue
            matrix = np.array(group.matrix, dtype=np.float64).reshape(n, n)
            if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-10:
                yield error(
                    PHYSICAL, "not_symmetric", "correlation", "the matrix is symmetric", entity=entity
                )
            elif (
                np.abs(np.diag(matrix) - 1.0).max(initial=0.0) > 1e-12
                or np.abs(matrix).max(initial=0.0) > 1.0
            ):
                rule = "the matrix has 1 on its diagonal and entries from −1 to 1"
                yield error(PHYSICAL, "not_a_correlation", "correlation", rule, entity=entity)
            elif n and np.linalg.eigvalsh(matrix)[0] < -1e-9:
                yield warning(
                    PHYSICAL,
                    "not_positive_definite",
                    "correlation",
                    "the matrix is positive semidefinite",
                    entity=entity,
                    value=f"smallest eigenvalue {np.linalg.eigvalsh(matrix)[0]:.3g}",
                    suggestion="Negative eigenvalues are taken as 0, so other correlations will be used.",
                )


@check
def slacks(generic_constraints: tuple[GenericConstraint, ...]) -> Findings:
    for constraint in generic_constraints:
        slack = constraint.slack
        if slack.enabled and not (slack.penalty is not None and slack.penalty > 0.0):
            yield error(
                PHYSICAL,
                "slack_penalty",
                "generic_constraints",
                "a slack that is enabled has a positive penalty",
                entity=f"constraint {constraint.id}",
                value=slack.penalty,
            )


MOST = 1_000_000  # openings, passes and scenarios fill memory


@check
def counts(config: Config, stages: tuple[Stage, ...]) -> Findings:
    training, simulation = config.training, config.simulation
    rules, where = training.stopping_rules, "training.stopping_rules"
    given: list[tuple[str, int | None, int | None]]
    given = [(where, getattr(rule, name, None), None) for rule in rules for name in ("limit", "iterations")]
    if isinstance(training.selection, SampledPasses):
        given.append(("training.selection.forward_passes", training.selection.forward_passes, MOST))
    if isinstance(simulation.selection, SampledScenarios):
        given.append(("simulation.selection.num_scenarios", simulation.selection.num_scenarios, MOST))
    if training.interior_points is not None:
        given.append(("training.interior_points.last", training.interior_points.last, None))
        given.append(("training.interior_points.least_states", training.interior_points.least_states, None))
    if (growing := training.growing_trajectories) is not None:
        given.append(("training.growing_trajectories.initial", growing.initial, None))
        given.append(("training.growing_trajectories.every", growing.every, None))
    for where, value, most in given:
        if value is not None and value < 1:
            yield error(PHYSICAL, "count", "config", "a count is at least 1", where=where, value=value)
        elif value is not None and most is not None and value > most:
            rule = f"a count is at most {most}"
            yield error(PHYSICAL, "count", "config", rule, where=where, value=value)
    interior = training.interior_points
    if interior is not None and not 0.0 <= interior.initial <= 1.0:
        where = "training.interior_points.initial"
        yield error(
            PHYSICAL,
            "weight",
            "config",
            "a weight is from 0 to 1",
            where=where,
            value=interior.initial,
        )
    for stage in stages:
        if stage.num_openings is not None and stage.num_openings > MOST:
            rule, entity = f"num_openings is at most {MOST}", f"stage {stage.id}"
            yield error(PHYSICAL, "count", "stages", rule, entity=entity, value=stage.num_openings)
