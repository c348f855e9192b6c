"""Which production function a hydro plant has in which stage or season."""

from __future__ import annotations

from typing import Annotated, Literal

from pycobre.hydro.model.record import Tagged, record

__all__ = [
    "AngleReduction",
    "DistanceReduction",
    "FittingWindow",
    "FphaConfig",
    "ProductionModel",
    "ReferenceVolume",
    "SeasonModel",
    "SeasonalProduction",
    "StageRange",
    "StageRangeProduction",
    "fits_planes",
]

ModelName = Literal["constant_productivity", "linearized_head", "fpha"]


@record
class FittingWindow:
    volume_min_hm3: float | None = None
    volume_max_hm3: float | None = None
    volume_min_percentile: float | None = None
    volume_max_percentile: float | None = None


@record
class FphaConfig:
    """Where the hyperplanes of a plant come from."""

    source: Literal["precomputed", "computed"]
    volume_discretization_points: int | None = None
    turbine_discretization_points: int | None = None
    spillage_discretization_points: int | None = None
    max_planes_per_hydro: int | None = None
    fitting_window: FittingWindow | None = None


@record
class ReferenceVolume:
    volume_hm3: float | None = None
    percentile: float | None = None


@record
class StageRange:
    """Stages from `start_stage_id` to `end_stage_id` inclusive (None: to the end)."""

    start_stage_id: int
    model: ModelName
    end_stage_id: int | None = None
    productivity_mw_per_m3s: float | None = None
    fpha_config: FphaConfig | None = None
    reference_volume: ReferenceVolume | None = None


@record
class SeasonModel:
    season_id: int
    model: ModelName
    productivity_mw_per_m3s: float | None = None
    fpha_config: FphaConfig | None = None
    reference_volume: ReferenceVolume | None = None


@record
class StageRangeProduction:
    hydro_id: int
    stage_ranges: tuple[StageRange, ...]
    selection_mode: Literal["stage_ranges"] = "stage_ranges"


@record
class SeasonalProduction:
    hydro_id: int
    default_model: ModelName
    seasons: tuple[SeasonModel, ...]
    selection_mode: Literal["seasonal"] = "seasonal"


ProductionModel = Annotated[StageRangeProduction | SeasonalProduction, Tagged("selection_mode")]


def fits_planes(model: StageRangeProduction | SeasonalProduction) -> bool:
    """Are planes of this plant to be computed from its geometry, in some stage?"""
    spans = model.seasons if isinstance(model, SeasonalProduction) else model.stage_ranges
    return any(span.fpha_config is not None and span.fpha_config.source == "computed" for span in spans)


@record
class AngleReduction:
    tolerance_deg: float
    method: Literal["angle"] = "angle"


@record
class DistanceReduction:
    tolerance_pct: float
    n_samples: int
    method: Literal["distance"] = "distance"


PlaneReduction = AngleReduction | DistanceReduction
