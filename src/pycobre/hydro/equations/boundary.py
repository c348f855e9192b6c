"""The cost beyond the last stage in terms of a study's own states."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import CaseError
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.boundary import ACCUMULATED, CONSTANT, FLOOR, INFLOW_LAG, STORAGE, state_key
from pycobre.hydro.model.case import Case

__all__ = ["BoundaryCosts", "boundary_costs"]

HANDED_ON = (STORAGE, INFLOW_LAG, ACCUMULATED)
SHOWN = 5  # names in a message


@frozen(eq=False)
class BoundaryCosts:
    """cost beyond ≥ floor and ≥ intercept + slope·state."""

    intercept: F64  #: [cuts]
    slope: F64  #: [cuts, states]
    floor: float
    dropped: tuple[str, ...]  #: what the other study prices and this one does not have


def boundary_costs(case: Case, index: Index, states: list[str]) -> BoundaryCosts | None:
    """Match the cuts of another study to the states of this one: by plant, and lag by lag.

    On error: `CaseError` where a reservoir of this study is not priced, or, if the case is strict, where the other
    study prices a state that this one does not have.
    """
    table, wanted = case.boundary_cuts, case.config.policy.boundary
    if wanted is None:
        return None
    if not len(table):
        raise CaseError(
            f"policy.boundary: expected the cuts of {wanted.path}, got none. Load the case from its directory, or "
            "give them as boundary_cuts."
        )
    entities = {
        "hydros": dict(zip(index.hydro_names, (plant.id for plant in case.hydros), strict=True)),
        "thermals": dict(zip(index.thermal_names, (plant.id for plant in case.thermals), strict=True)),
    }
    keys = [state_key(name, entities) for name in states]
    # Water and commitments that arrive after the study are not handed on: their prices are left out.
    place = {key: i for i, key in enumerate(keys) if key is not None and key[0] in HANDED_ON}
    given = list(zip(table.kind.tolist(), table.entity_id.tolist(), table.number.tolist(), strict=True))
    count = int(table.cut_id.max()) + 1
    intercept, slope, floor = np.zeros(count), np.zeros((count, len(states))), 0.0
    foreign: set[tuple[int, int, int]] = set()
    for cut, key, value in zip(table.cut_id.tolist(), given, table.value.tolist(), strict=True):
        if cut == FLOOR:
            floor = value if key[0] == CONSTANT else floor
        elif key[0] == CONSTANT:
            intercept[cut] = value
        elif key in place:
            slope[cut, place[key]] = value
        else:
            foreign.add(key)
    priced = set(given)
    reservoirs = [(name, key) for name, key in zip(states, keys, strict=True) if key and key[0] == STORAGE]
    missing = [name for name, key in reservoirs if key not in priced]
    if missing:
        some = ", ".join(missing[:SHOWN]) + (" …" if len(missing) > SHOWN else "")
        raise CaseError(
            f"policy.boundary: expected a price of every reservoir of this study, got none of {some}. "
            "Take the policy of a study that has them."
        )
    dropped = tuple(_said(key) for key in sorted(foreign))
    if dropped and wanted.strict:
        raise CaseError(
            f"policy.boundary: expected states of this study only, got prices of {len(dropped)} others: "
            f"{'; '.join(dropped[:SHOWN])}{' …' if len(dropped) > SHOWN else ''}. Give this study those plants and "
            "lags, or set policy.boundary.strict to false to do without their prices."
        )
    return BoundaryCosts(intercept, slope, floor, dropped)


def _said(key: tuple[int, int, int]) -> str:
    kind, entity, number = key
    words = ("", "storage of hydro {}", "inflow of hydro {}, lag {}", "inflow so far of hydro {}")
    more = ("water on its way to hydro {}, {}", "commitment of thermal {}, {}")
    return (*words, *more)[kind].format(entity, number) if kind >= 0 else "states without a plant"
