"""How far a run is, as `status.json` says it: written by the run, read by anybody, also while it goes on.

The file is replaced whole, so a reader sees one state or the next and nothing between. Numbers that are not finite
are null.
"""

from __future__ import annotations

import os
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from pycobre._util.frozen import frozen
from pycobre.app.results.files import read_json
from pycobre.app.results.layout import STATUS
from pycobre.app.results.lock import owner_of
from pycobre.app.results.record import LOST, RUNNING
from pycobre.errors import OutputError

__all__ = ["PHASES", "SCHEMA", "STATES", "RunStatus", "read_status", "status_schema"]

SCHEMA = 1
STATES = ("running", "finished", "interrupted", "failed", "lost")
PHASES = ("starting", "training", "simulating", "writing", "done")


@frozen(kw_only=True)
class RunStatus:
    """`state` is lost where the file says running and the process that wrote it is gone."""

    run: str  #: id of the run
    state: str  #: running, finished, interrupted, failed or lost
    phase: str  #: starting, training, simulating, writing or done
    case: str
    pid: int
    host: str
    backend: str
    ranks: int
    threads: int
    started: str  #: UTC, of this session
    updated: str  #: UTC
    elapsed_s: float  #: of this session
    iteration: int = 0  #: finished iterations, those before a resume included
    iteration_limit: int | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    gap: float | None = None
    lp_solves: int = 0  #: of all ranks, in this session's training
    eta_s: float | None = None  #: until the iteration limit, or the last scenario
    memory_bytes: int = 0  #: largest resident size of rank 0 so far
    scenarios: int = 0  #: to be simulated
    scenarios_done: int = 0  #: judged by rank 0's share
    checkpoint_iteration: int | None = None  #: of the newest checkpoint
    checkpoint_path: str | None = None
    checkpoint_at: str | None = None  #: UTC
    seconds_per_rank: list[dict[str, Any]] | None = None  #: solving, communicating, waiting, of this session
    memory_per_rank: list[int] | None = None  #: largest resident size so far, bytes
    sense: str = "minimise"  #: with maximise, lower_bound is an upper one
    half_width: float | None = None  #: of the 95 % interval of the upper bound
    cuts: int = 0  #: active ones
    iteration_s: float | None = None  #: mean of the last ten iterations
    lps_per_s: float | None = None  #: over the last ten iterations
    retries: int = 0  #: LPs that were solved again in another way
    pass_name: str | None = None  #: forward, backward or simulation
    stage: str | None = None  #: node that rank 0 solves in it
    stage_number: int | None = None  #: its place in the pass, from 1
    stages: int | None = None  #: of the pass
    warnings: list[str] | None = None
    result: dict[str, Any] | None = None  #: where the state is finished or interrupted
    error: dict[str, Any] | None = (
        None  #: where the state is failed: kind, message, fields, rank, exit_code, remedy
    )


def read_status(directory: str | os.PathLike[str]) -> RunStatus | None:
    """The status in a directory, or None where no run has written one."""
    path = Path(directory) / STATUS
    if not path.is_file():
        return None
    document = read_json(path)
    if document.pop("schema", None) != SCHEMA:
        raise OutputError(f"{path}: expected schema {SCHEMA}, got another. Use the pycobre that wrote it.")
    try:
        status = RunStatus(**document)
    except TypeError as cause:
        raise OutputError(f"{path}: expected the fields of a status, got others: {cause}.") from cause
    for name, kinds in _kinds().items():
        if not isinstance(document.get(name), kinds) and name in document:
            raise OutputError(
                f"{path}: {name}: expected {kinds[0].__name__}, got {document[name]!r:.60}. "
                "Use the pycobre that wrote it."
            )
    if status.state == RUNNING and owner_of(directory) is None:
        document["state"] = LOST
        return RunStatus(**document)
    return status


@cache
def _kinds() -> dict[str, tuple[type[Any], ...]]:
    """The types that JSON may give each field; a number that is not finite is null."""
    found = {}
    for name, hint in get_type_hints(RunStatus).items():
        parts = get_args(hint) if get_origin(hint) is UnionType else (hint,)
        kinds = [get_origin(part) or part for part in parts]
        found[name] = (*kinds, int, NoneType) if float in kinds else tuple(kinds)
    return found


def status_schema() -> dict[str, Any]:
    """The JSON Schema of `status.json`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "status.json of a pycobre run",
        "type": "object",
        "properties": {"schema": {"const": SCHEMA}, **properties(RunStatus), "state": {"enum": list(STATES)}}
        | {"phase": {"enum": list(PHASES)}},
        "required": ["schema", *get_type_hints(RunStatus)],
        "additionalProperties": False,
    }


def properties(cls: type[Any]) -> dict[str, Any]:
    """The fields of a frozen class as properties of a JSON Schema."""
    hints = get_type_hints(cls)
    return {each.name: _type(hints[each.name]) for each in fields(cls)}


_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def _type(hint: Any) -> dict[str, Any]:
    parts = get_args(hint)
    if hint in _NAMES:
        # A number that is not finite is written as null.
        return {"type": ["number", "null"]} if hint is float else {"type": _NAMES[hint]}
    if getattr(hint, "__origin__", None) in (list, tuple):
        return {"type": "array"}
    if getattr(hint, "__origin__", None) is dict:
        return {"type": "object"}
    names = {name for part in parts for name in [_type(part)["type"]] if isinstance(name, str)}
    names |= {
        name for part in parts for name in _type(part)["type"] if not isinstance(_type(part)["type"], str)
    }
    return {"type": sorted(names)}
