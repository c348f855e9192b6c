"""The value of a generic parameter where an expression uses it."""

from __future__ import annotations

from pycobre._util.frozen import frozen
from pycobre.hydro.model.constraints import ComputedParameter, EnergyProductivity, ScalarParameter
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.production import ProductionModel, SeasonalProduction, SeasonModel, StageRange
from pycobre.hydro.model.system import Hydro
from pycobre.hydro.model.table import NO_ID

__all__ = ["PlantData", "chosen_model", "parameter_value", "table_value"]

REFERENCE = 0.65  # of the range of storage, where no reference volume is given


@frozen(eq=False)
class PlantData:
    """What computed parameters are computed from."""

    hydros: tuple[Hydro, ...]
    production_models: tuple[ProductionModel, ...]
    energy_productivity: EnergyProductivity

    def value(self, spec: ComputedParameter, stage: Stage) -> float | None:
        """The quantity of a plant in a stage; None if nothing is known of it."""
        hydro = next((each for each in self.hydros if each.id == spec.hydro_id), None)
        if hydro is None:
            return None
        tank = hydro.reservoir
        match spec.tag:
            case "min_storage":
                return tank.min_storage_hm3
            case "max_storage":
                return tank.max_storage_hm3
            case "reference_turbine":
                return hydro.generation.max_turbined_m3s
            case "reference_volume":
                return self._reference_volume(hydro, stage)
            case "specific_productivity":
                name = "specific_productivity_mw_per_m3s_per_m"
                given = table_value(self.energy_productivity, hydro, stage, name)
                return hydro.specific_productivity_mw_per_m3s_per_m if given is None else given
            # A productivity that does not depend on the volume is its own mean over the volumes.
            case "equivalent_productivity" | "integrated_equivalent_productivity":
                return self._productivity(hydro, stage)
            case "accumulated_productivity" | "integrated_accumulated_productivity":
                return self._accumulated(hydro, stage)
            case "max_stored_energy":
                accumulated = self._accumulated(hydro, stage)
                width = tank.max_storage_hm3 - tank.min_storage_hm3
                return None if accumulated is None else accumulated * width
        return None

    def _productivity(self, hydro: Hydro, stage: Stage) -> float | None:
        chosen = self._chosen(hydro, stage)
        given = None if isinstance(chosen, str) else chosen.productivity_mw_per_m3s
        if given is not None:
            return given
        return table_value(self.energy_productivity, hydro, stage, "equivalent_productivity_mw_per_m3s")

    def _accumulated(self, hydro: Hydro, stage: Stage) -> float | None:
        """Of the plant and of all below it."""
        by_id = {each.id: each for each in self.hydros}
        total, at, seen = 0.0, hydro, set[int]()
        while True:
            own = self._productivity(at, stage)
            if own is None or at.id in seen:
                return None
            total += own
            seen.add(at.id)
            if at.downstream_id is None or at.downstream_id not in by_id:
                return total
            at = by_id[at.downstream_id]

    def _reference_volume(self, hydro: Hydro, stage: Stage) -> float:
        chosen = self._chosen(hydro, stage)
        given = None if isinstance(chosen, str) else chosen.reference_volume
        if given is not None and given.volume_hm3 is not None:
            return given.volume_hm3
        share = REFERENCE if given is None or given.percentile is None else given.percentile
        low, high = hydro.reservoir.min_storage_hm3, hydro.reservoir.max_storage_hm3
        return low + share * (high - low)

    def _chosen(self, hydro: Hydro, stage: Stage) -> StageRange | SeasonModel | str:
        entry = next((each for each in self.production_models if each.hydro_id == hydro.id), None)
        return chosen_model(entry, hydro, stage)


def chosen_model(entry: ProductionModel | None, hydro: Hydro, stage: Stage) -> StageRange | SeasonModel | str:
    """What holds for a plant in a stage: a range, a season, or only the name of a model."""
    if isinstance(entry, SeasonalProduction):
        for season in entry.seasons:
            if season.season_id == stage.season_id:
                return season
        return entry.default_model
    for span in entry.stage_ranges if entry is not None else ():
        if span.start_stage_id <= stage.id and (span.end_stage_id is None or stage.id <= span.end_stage_id):
            return span
    return hydro.generation.model


def table_value(table: EnergyProductivity, hydro: Hydro, stage: Stage, column: str) -> float | None:
    """A column's value of a plant: the row of the stage, else the row of all stages."""
    rows = table.rows_of(hydro.id)
    values, stages = vars(table)[column][rows].tolist(), table.stage_id[rows].tolist()
    for of_stage in (stage.id, NO_ID):
        for value, found in zip(values, stages, strict=True):
            if found == of_stage and value == value:  # not NaN
                return float(value)
    return None


def parameter_value(parameter: ScalarParameter, stage: Stage, block: int, plants: PlantData) -> float | None:
    """Its value in a stage and block (by id); None if it has none there."""
    match parameter.kind:
        case "constant":
            return parameter.value
        case "per_stage":
            return dict(parameter.values or ()).get(stage.id)
        case "seasonal" if stage.season_id is not None:
            return dict(parameter.values or ()).get(stage.season_id)
        case "per_stage_block":
            return {(s, b): v for s, b, v in parameter.block_values or ()}.get((stage.id, block))
        case "computed" if parameter.computed_spec is not None:
            return plants.value(parameter.computed_spec, stage)
    return None
