"""One order for everything that has none: the lists inside records, sorted by id, name or date.

Together with the sorted lists and tables of a case this makes every result independent of the order in which
things are declared. Lists whose order means something (deficit segments, stage ranges) are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from pycobre.hydro.model.constraints import ScalarParameter
from pycobre.hydro.model.horizon import PolicyGraph, SeasonDefinitions, Stage
from pycobre.hydro.model.initial import InitialConditions
from pycobre.hydro.model.production import SeasonalProduction
from pycobre.hydro.model.scenarios import (
    Correlation,
    CorrelationGroup,
    CorrelationProfile,
    LoadFactors,
    SourceFactors,
)
from pycobre.hydro.model.system import Hydro

__all__ = ["canonical"]

T = TypeVar("T")
Key = Callable[[Any], Any]

_ID = attrgetter("id")
_STORAGE = attrgetter("hydro_id")
_WINDOW = attrgetter("hydro_id", "start_date")


def canonical(item: T) -> T:
    """The record with its lists in order; itself where they are."""
    ordered: T = _in_order(item)
    return ordered


def _in_order(item: Any) -> Any:
    match item:
        case Stage():
            return _sorted(item, blocks=_ID)
        case Hydro():
            return _sorted(item, unit_groups=_ID)
        case SeasonDefinitions():
            return _sorted(item, seasons=_ID)
        case LoadFactors() | SourceFactors():
            return _sorted(item, block_factors=attrgetter("block_id"))
        case SeasonalProduction():
            return _sorted(item, seasons=attrgetter("season_id"))
        case ScalarParameter():
            return _sorted(item, values=lambda pair: pair[0], block_values=lambda triple: triple[:2])
        case PolicyGraph():
            return _sorted(item, transitions=attrgetter("source_id", "target_id"), nodes=_ID)
        case InitialConditions():
            return _sorted(
                item,
                storage=_STORAGE,
                filling_storage=_STORAGE,
                recent_observations=_WINDOW,
                past_defluences=_WINDOW,
                past_anticipated_commitments=attrgetter("thermal_id", "start_date"),
            )
        case Correlation():
            ordered = _sorted(item, schedule=attrgetter("stage_id"))
            return replace(ordered, profiles={n: _profile(item.profiles[n]) for n in sorted(item.profiles)})
        case _:
            return item


def _sorted(item: Any, **keys: Key) -> Any:
    changes: dict[str, Any] = {}
    for name, key in keys.items():
        values = getattr(item, name) or ()
        found = [key(value) for value in values]
        if found != sorted(found):
            changes[name] = tuple(sorted(values, key=key))
    return replace(item, **changes) if changes else item


def _profile(profile: CorrelationProfile) -> CorrelationProfile:
    groups = tuple(_group(group) for group in profile.correlation_groups)
    ordered = sorted(groups, key=attrgetter("name"))
    return replace(profile, correlation_groups=tuple(ordered))


def _group(group: CorrelationGroup) -> CorrelationGroup:
    """Entities by id, and the matrix with them; a matrix of another size is left to the checks."""
    count = len(group.entities)
    order = sorted(range(count), key=lambda i: (group.entities[i].type, group.entities[i].id))
    if order == list(range(count)) or [len(row) for row in group.matrix] != [count] * count:
        return group
    return replace(
        group,
        entities=tuple(group.entities[i] for i in order),
        matrix=tuple(tuple(group.matrix[i][j] for j in order) for i in order),
    )
