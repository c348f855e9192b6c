"""Plants that are not simply there: reservoirs that fill before they serve, and generation decided ahead."""

from __future__ import annotations

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, check_reference, error, warning
from pycobre.hydro.model.anticipation import BEFORE_STUDY, commitment_of, decision_stages
from pycobre.hydro.model.constraints import ThermalBounds
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.initial import AnticipatedCommitment, InitialConditions
from pycobre.hydro.model.system import AnticipatedStages, Hydro, Thermal
from pycobre.hydro.model.table import NO_ID

HM3_PER_M3S_HOUR = 0.0036


@check
def filling_makes_sense(
    hydros: tuple[Hydro, ...], initial_conditions: InitialConditions, stages: tuple[Stage, ...]
) -> Findings:
    """A reservoir fills from a stage on until its plant enters service, and starts with what is in it."""
    seeds = {s.hydro_id: s.value_hm3 for s in initial_conditions.filling_storage}
    both = {s.hydro_id for s in initial_conditions.storage} & seeds.keys()
    for hydro in hydros:
        entity, filling, entry = f"hydro {hydro.id}", hydro.filling, hydro.entry_stage_id
        seed, dead = seeds.get(hydro.id, 0.0), hydro.reservoir.min_storage_hm3
        if hydro.id in both:
            rule = "a hydro is in storage or in filling_storage"
            yield error(Layer.REFERENCES, "duplicate_id", "initial_conditions", rule, entity=entity)
        if filling is None:
            continue
        problems = (
            (entry is None, "a reservoir that fills has an entry_stage_id", entry),
            (
                entry is not None and filling.start_stage_id >= entry,
                "filling starts before entry_stage_id",
                filling.start_stage_id,
            ),
            (
                hydro.exit_stage_id is not None,
                "a reservoir that fills has no exit_stage_id",
                hydro.exit_stage_id,
            ),
            (filling.filling_min_rate_m3s < 0.0, "filling_min_rate_m3s is not negative", ""),
            (not 0.0 <= seed <= dead, f"filling_storage is from 0 to {dead:g}", f"{seed:g}"),
            (
                seed > 0.0 and filling.start_stage_id > 0,
                "filling_storage is 0 before filling starts",
                f"{seed:g}",
            ),
        )
        for wrong, rule, value in problems:
            if wrong:
                yield error(
                    Layer.PHYSICAL, "filling", "hydros", rule, entity=entity, where="filling", value=value
                )
        hours = sum(s.hours for s in stages if filling.start_stage_id <= s.id < (entry or 0))
        comes = filling.filling_min_rate_m3s * HM3_PER_M3S_HOUR * hours
        if entry is not None and comes < (dead - seed) * (1.0 - 1e-6):
            yield warning(
                Layer.PHYSICAL,
                "filling",
                "hydros",
                f"filling_min_rate_m3s fills the dead volume of {dead:g} hm³ before stage {entry}",
                entity=entity,
                where="filling",
                value=f"{comes:g} hm³ beside {seed:g}",
            )


@check
def anticipation_makes_sense(
    thermals: tuple[Thermal, ...],
    initial_conditions: InitialConditions,
    stages: tuple[Stage, ...],
    thermal_bounds: ThermalBounds,
) -> Findings:
    """What was decided before the study is given for each stage that it delivers in, within the plant's limits."""
    windows = initial_conditions.past_anticipated_commitments
    ahead = {thermal.id for thermal in thermals if thermal.anticipated_config is not None}
    for window in windows:
        entity = f"thermal {window.thermal_id}"
        yield from check_reference(
            "initial_conditions",
            entity,
            "thermal_id",
            window.thermal_id,
            ahead,
            "thermal with anticipated_config",
        )
        if window.end_date <= window.start_date:
            value = f"{window.start_date} to {window.end_date}"
            rule = "a commitment ends after it starts"
            yield error(Layer.PHYSICAL, "dates", "initial_conditions", rule, entity=entity, value=value)
    for thermal in thermals:
        lead = thermal.anticipated_config
        if lead is None or not stages:
            continue
        length = lead.lead_stages if isinstance(lead, AnticipatedStages) else lead.lead_time_hours
        if length <= 0:
            rule = "anticipated_config has a lead above 0"
            yield error(
                Layer.PHYSICAL, "lead", "thermals", rule, entity=f"thermal {thermal.id}", value=length
            )
            continue
        mine = tuple(w for w in windows if w.thermal_id == thermal.id)
        yield from _commitments(thermal, mine, decision_stages(lead, stages), stages, thermal_bounds)


def _commitments(
    thermal: Thermal,
    windows: tuple[AnticipatedCommitment, ...],
    decided: list[int],
    stages: tuple[Stage, ...],
    bounds: ThermalBounds,
) -> Findings:
    for stage, deciding in zip(stages, decided, strict=True):
        entity = f"thermal {thermal.id}, stage {stage.id}"
        given = commitment_of(windows, stage)
        if deciding != BEFORE_STUDY:
            if any(w.start_date < stage.end_date and w.end_date > stage.start_date for w in windows):
                rule = "past_anticipated_commitments are of stages that the study does not decide"
                yield error(Layer.COVERAGE, "commitments", "initial_conditions", rule, entity=entity)
            continue
        if given is None:
            rule = "past_anticipated_commitments cover every stage that was decided before the study"
            yield error(Layer.COVERAGE, "commitments", "initial_conditions", rule, entity=entity)
            continue
        low, high = _limits(thermal, stage, bounds)
        if not low - 1e-9 <= given <= high + 1e-9:
            rule = f"a commitment is within the plant's limits, {low:g} to {high:g} MW"
            value = f"{given:g}"
            yield error(Layer.PHYSICAL, "commitments", "initial_conditions", rule, entity=entity, value=value)


def _limits(thermal: Thermal, stage: Stage, bounds: ThermalBounds) -> tuple[float, float]:
    low, high = thermal.generation.min_mw, thermal.generation.max_mw
    rows = (bounds.thermal_id == thermal.id) & (bounds.stage_id == stage.id) & (bounds.block_id == NO_ID)
    for row in np.flatnonzero(rows).tolist():
        low = low if np.isnan(bounds.min_generation_mw[row]) else float(bounds.min_generation_mw[row])
        high = high if np.isnan(bounds.max_generation_mw[row]) else float(bounds.max_generation_mw[row])
    entry, leave = thermal.entry_stage_id, thermal.exit_stage_id
    serves = (entry is None or stage.id >= entry) and (leave is None or stage.id < leave)
    return (low, high) if serves else (0.0, 0.0)
