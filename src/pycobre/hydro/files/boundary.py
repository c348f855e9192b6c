"""The cost beyond a study's last stage, from the policy of another study: of a run of pycobre, or of Cobre 0.18.

The cuts taken are those that price the state on the day on which the study ends. Nothing in a file is executed or
believed: what does not fit is a finding.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from pycobre._util.arrays import F64
from pycobre.errors import PolicyError
from pycobre.hydro.files.flat_buffer import FlatTable, NotFlat, root_table
from pycobre.hydro.model.boundary import CONSTANT, FLOOR, INFLOW_LAG, STORAGE, BoundaryCuts, state_key
from pycobre.hydro.model.findings import Finding, Layer

__all__ = ["read_boundary"]

OURS, THEIRS = "policy.cobre", "manifest.bin"
LARGEST = 4 << 30
Key = tuple[int, int, int]
#: Cobre's kinds of states; of the others it keeps no number that says which of ours they are.
THEIR_KINDS = {0: STORAGE, 1: INFLOW_LAG}
UNMATCHED = -1  #: of states that belong to no plant by a number


class _Refused(Exception):
    """What is wrong with the policy; becomes a finding, and never leaves this package."""


def read_boundary(root: Path, path: str, end: date) -> tuple[BoundaryCuts | None, list[Finding]]:
    """The cuts at `path` (relative to the case directory `root`) that price the state on the day `end`."""
    source = root / path
    try:
        keys, intercept, slope, floor = _read(source, end)
        return _table(keys, intercept, slope, floor), []
    except (_Refused, NotFlat, PolicyError) as cause:
        problem = str(cause)
    except OSError as cause:
        problem = f"cannot be read: {cause.strerror}"
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        problem = f"expected the results of a run, got something else ({type(cause).__name__}: {cause})"
    return None, [
        Finding(
            kind="boundary",
            layer=Layer.FILES,
            file="config.json",
            where="policy.boundary",
            rule=f"the policy of another study gives the cost beyond the last stage: {problem}",
            value=path,
        )
    ]


def _read(source: Path, end: date) -> tuple[list[Key], F64, F64, float]:
    for folder in (source, source / "policy"):
        if (folder / OURS).is_file():
            return _ours(folder / OURS, folder.parent / "metadata.json", end)
        if (folder / THEIRS).is_file():
            return _theirs(folder, end)
    raise _Refused(f"expected {OURS} of a run of pycobre or {THEIRS} of Cobre in it, got neither")


def _ours(file: Path, about: Path, end: date) -> tuple[list[Key], F64, F64, float]:
    """Of a result directory: its policy, and from its metadata which node ends when and what plants are called."""
    from pycobre.sddp.policy import Policy

    policy, metadata = Policy.load(file), json.loads(_bytes(about))
    ends = {stage["id"]: stage.get("end_date") for stage in metadata["stages"]}
    nodes = metadata.get("graph_nodes")
    names = (
        [(f"stage {number}", number) for number in ends]
        if nodes is None
        else [(f"node {node['id']}, stage {node['stage_id']}", node["stage_id"]) for node in nodes]
    )
    there = [name for name, stage in names if ends[stage] == end.isoformat()]
    place = policy.node_names.index(_only(there, end, ends.values()))
    cuts, floor = policy.cuts[place], float(policy.theta_lower[place])
    entities = {of: _ids(metadata["entities"][of]) for of in ("hydros", "thermals")}
    keys = [state_key(name, entities) or (UNMATCHED, 0, i) for i, name in enumerate(policy.state_names)]
    active = cuts.active != 0
    if not active.any():
        raise _Refused(
            f"expected cuts at the end of {there[0]}, got none: nothing follows it in its own study"
        )
    return keys, cuts.intercept[active], cuts.slope[active], floor


def _theirs(folder: Path, end: date) -> tuple[list[Key], F64, F64, float]:
    """Of Cobre's checkpoint: the pool with that date; its costs are at least 0."""
    pools = [root_table(_bytes(file), b"CBVF") for file in sorted((folder / "cuts").glob("*.bin"))]
    dates = [pool.number(11, "i", -1) for pool in pools]
    wanted = end.year * 10000 + end.month * 100 + end.day
    at = _only([i for i, day in enumerate(dates) if day == wanted], end, [str(day) for day in dates])
    pool = pools[at]
    keys = [_their_key(slot, i) for i, slot in enumerate(pool.tables(7))]
    width = pool.number(1, "I")
    intercept, slope = [], []
    for cut in pool.tables(4):
        if cut.number(6, "B"):
            intercept.append(cut.real(4))
            slope.append(cut.reals(5))
    if len(keys) != width or any(len(each) != width for each in slope):
        raise _Refused(f"expected cuts of {width} states, as the pool says, got others")
    if not slope:
        raise _Refused(f"expected cuts that price {end}, got none: nothing follows that day in its own study")
    found = np.array(intercept), np.stack(slope)
    if not (np.isfinite(found[0]).all() and np.isfinite(found[1]).all()):
        raise _Refused("expected finite cuts, got NaN or infinity among them")
    return keys, *found, 0.0


def _their_key(slot: FlatTable, place: int) -> Key:
    kind = THEIR_KINDS.get(slot.number(0, "B"))
    return (UNMATCHED, 0, place) if kind is None else (kind, slot.number(1, "i"), slot.number(2, "I"))


def _only(found: list[Any], end: date, all_days: Any) -> Any:
    if len(found) != 1:
        days = ", ".join(sorted({str(day) for day in all_days}))
        raise _Refused(
            f"expected one node whose cuts price the state of {end}, got {len(found)}; it prices {days}"
        )
    return found[0]


def _ids(pairs: list[list[Any]]) -> Mapping[str, int]:
    """Ids by label, where names used twice have their id behind them."""
    count = Counter(name for _, name in pairs)
    return {
        label: int(id_) for id_, name in pairs for label in _labels(int(id_), str(name), count[name] == 1)
    }


def _labels(id_: int, name: str, alone: bool) -> Iterator[str]:
    yield f"{name}#{id_}"
    if alone:
        yield name


def _bytes(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise _Refused(f"expected a regular file {path.name} of at most {LARGEST:,} bytes")
    return path.read_bytes()


def _table(keys: list[Key], intercept: F64, slope: F64, floor: float) -> BoundaryCuts:
    """One row for every number that is not zero, and one that says that a state is known."""
    cut, state = np.nonzero(slope)
    what, constant = np.array(keys, np.int64).reshape(-1, 3), np.array([[CONSTANT, 0, 0]])
    joined = [constant, what, np.repeat(constant, len(intercept), axis=0), what[state]]
    rows = np.concatenate(joined).astype(np.int32)
    return BoundaryCuts(
        cut_id=np.concatenate([np.full(1 + len(keys), FLOOR), np.arange(len(intercept)), cut]).astype(
            np.int32
        ),
        kind=rows[:, 0],
        entity_id=rows[:, 1],
        number=rows[:, 2],
        value=np.concatenate([[floor], np.zeros(len(keys)), intercept, slope[cut, state]]),
    )
