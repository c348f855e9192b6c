"""The record of a run: its id, and one entry for every session, from the first start to the last resumption."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pycobre._util.codec import Codec
from pycobre._util.frozen import frozen
from pycobre.app.results.files import read_json, write_json
from pycobre.app.results.layout import CHECKPOINTS, METADATA, RECORD
from pycobre.errors import OutputError

__all__ = ["LOST", "RunRecord", "Session", "new_id", "read_record", "utc"]

SCHEMA = 1
RUNNING, FINISHED, INTERRUPTED, FAILED, LOST = "running", "finished", "interrupted", "failed", "lost"


@frozen()
class Session:
    """One process group's work on a run. `state` is running, finished, interrupted or failed."""

    started: str  #: UTC
    pid: int
    host: str
    backend: str
    ranks: int
    threads: int
    train: bool
    simulate: bool
    state: str = RUNNING
    ended: str | None = None
    error: str | None = None


@frozen()
class RunRecord:
    """What `run.json` holds."""

    id: str
    case: str
    policy_digest: str | None = None
    sessions: tuple[Session, ...] = ()

    @property
    def state(self) -> str:
        """How the last session ended, or that it runs."""
        return self.sessions[-1].state if self.sessions else FINISHED

    def begin(self, session: Session) -> RunRecord:
        return replace(self, sessions=(*self.sessions, session))

    def end(self, state: str, error: str | None = None) -> RunRecord:
        ended = replace(self.sessions[-1], state=state, ended=utc(), error=error)
        return replace(self, sessions=(*self.sessions[:-1], ended))

    def write(self, directory: str | os.PathLike[str]) -> None:
        write_json(Path(directory) / RECORD, {"schema": SCHEMA, "run": _CODEC.encode(self)})


_CODEC = Codec(
    {"RunRecord": RunRecord, "Session": Session},
    tag="type",
    root="run",
    error=OutputError,
    foreign="expected a record of a run, got {}. Choose another directory.",
)


def read_record(directory: str | os.PathLike[str]) -> RunRecord | None:
    """The record in a directory. None: no run was ever here.

    Results from before there were records get one that is named by the time of their files.
    """
    root = Path(directory)
    if (root / RECORD).is_file():
        document = read_json(root / RECORD)
        found: Any = _CODEC.decode(document.get("run"), f"{root / RECORD}: run")
        if document.get("schema") != SCHEMA or not isinstance(found, RunRecord):
            raise OutputError(
                f"{root / RECORD}: expected a record of schema {SCHEMA}, got {document.get('schema')!r}. "
                "Use the pycobre that wrote it, or choose another output directory."
            )
        return found
    left = [path for path in (root / METADATA, root / CHECKPOINTS) if path.exists()]
    if not left:
        return None
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(left[0].stat().st_mtime))
    metadata = read_json(root / METADATA) if (root / METADATA).is_file() else {}
    return RunRecord(f"{stamp}-unrecorded", str(metadata.get("case", "")), metadata.get("policy_digest"))


def new_id() -> str:
    """An id that sorts by time and that no other run has."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(3).hex()}"


def utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
