"""The value of a generic parameter where an expression uses it."""

from __future__ import annotations

from collections.abc import Iterable

from pycobre.hydro.model.constraints import ScalarParameter
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.system import Hydro

__all__ = ["parameter_value"]


def parameter_value(
    parameter: ScalarParameter, stage: Stage, block: int, hydros: Iterable[Hydro]
) -> float | None:
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
        case "computed":
            return _computed(parameter, hydros)
    return None


def _computed(parameter: ScalarParameter, hydros: Iterable[Hydro]) -> float | None:
    spec = parameter.computed_spec
    for hydro in hydros:
        if spec is not None and hydro.id == spec.hydro_id:
            limits = hydro.reservoir
            return {"min_storage": limits.min_storage_hm3, "max_storage": limits.max_storage_hm3}.get(
                spec.tag
            )
    return None
