"""What lies beyond a study's last stage, as linear functions of the state it ends in: cuts of another study."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen
from pycobre.hydro.model.table import Table, floats, ids

__all__ = ["ACCUMULATED", "CONSTANT", "FLOOR", "INFLOW_LAG", "STORAGE", "BoundaryCuts", "state_key"]

CONSTANT, STORAGE, INFLOW_LAG, ACCUMULATED, TRANSIT, COMMITMENT = range(6)
FLOOR = -1  #: in place of a cut: its constant is what the cost beyond is at least
#: How states are called, with the kind of entity that each belongs to.
KINDS = {
    "storage": (STORAGE, "hydros"),
    "inflow_lag": (INFLOW_LAG, "hydros"),
    "accumulated": (ACCUMULATED, "hydros"),
    "transit": (TRANSIT, "hydros"),
    "commitment": (COMMITMENT, "thermals"),
}


@frozen(eq=False, kw_only=True)
class BoundaryCuts(Table):
    """The numbers of the cuts, one in a row: cost beyond ≥ constant + Σ value · state.

    `kind` is 0 for the constant, 1 storage (hm³), 2 inflow of `number` periods back (m³/s), 3 inflow of the period so
    far, 4 water on its way, 5 commitments.
    """

    KEY: ClassVar = ("cut_id", "kind", "entity_id", "number")
    cut_id: I32 = ids()
    kind: I32 = ids()
    entity_id: I32 = ids()
    number: I32 = ids()
    value: F64 = floats()


def state_key(name: str, entities: Mapping[str, Mapping[str, int]]) -> tuple[int, int, int] | None:
    """(kind, entity, number) of a state by its name; None for one that belongs to no entity by a number.

    `entities` are ids by label, of "hydros" and of "thermals".
    """
    match = re.fullmatch(r"(\w+)\[(.*)\]", name)
    if match is None or match.group(1) not in KINDS:
        return None
    kind, of = KINDS[match.group(1)]
    known, parts = entities[of], match.group(2).split(",")
    numbers = [part for part in parts if part.isdigit()] if len(parts) == 2 else ["0"]
    labels = [part for part in parts if part in known and (len(parts) == 1 or part not in numbers[:1])]
    if len(parts) > 2 or len(labels) != 1 or not numbers:
        return None
    return kind, known[labels[0]], int(numbers[0])
