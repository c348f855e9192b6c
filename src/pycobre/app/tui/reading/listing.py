"""The runs below a directory, one line each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.app.results.files import read_json
from pycobre.app.results.layout import EVENTS, METADATA, PREVIOUS, RECORD, STATUS
from pycobre.app.results.record import RunRecord, read_record
from pycobre.app.results.status import RunStatus, read_status
from pycobre.app.tui.reading.numbers import number, text, whole
from pycobre.errors import OutputError

__all__ = ["Found", "RunLine", "find_runs", "line_of", "names_of", "read_lines"]

DEEP = 8  #: levels below a directory that are looked into
MOST = 20_000  #: directories that are looked into
SILENT_S = 60.0  #: a running run that says nothing for so long is pointed out


@frozen()
class Found:
    """Directories of runs; `complete` is false where there were too many directories to look into all."""

    directories: tuple[Path, ...]
    complete: bool = True


@frozen(kw_only=True)
class RunLine:
    """One run in a few figures. NaN and None: not known."""

    directory: Path
    name: str
    case: str = ""
    run: str = ""
    state: str = "unknown"  #: running, finished, interrupted, failed, lost or unknown
    phase: str = ""
    iteration: int | None = None
    limit: int | None = None
    lower: float = number(None)
    upper: float = number(None)
    half_width: float = number(None)
    gap: float = number(None)
    sense: str = "minimise"
    eta_s: float = number(None)
    event_age_s: float = number(None)
    silent: bool = False  #: running, and for a long time without a word
    backend: str = ""
    ranks: int | None = None
    started: str = ""
    problem: str | None = None

    @property
    def said(self) -> str:
        """Phase of a running run, state of any other."""
        return self.phase if self.state == "running" and self.phase else self.state


def find_runs(roots: Iterable[Path]) -> Found:
    """Result directories at or below `roots`, earlier runs included; links to directories are not followed."""
    found: dict[Path, None] = {}
    looked = 0
    for root in roots:
        level = [root]
        for _ in range(DEEP):
            following: list[Path] = []
            for directory in level:
                looked += 1
                if looked > MOST:
                    return Found(tuple(found), complete=False)
                inside, is_run = _look(directory)
                if is_run:
                    found[directory] = None
                following += inside
            level = following
    return Found(tuple(found))


def _look(directory: Path) -> tuple[list[Path], bool]:
    """The directories to look into next, and whether a run is here; of a run only those of earlier runs."""
    try:
        with os.scandir(directory) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        names = {entry.name for entry in listed}
        is_run = bool(names & {RECORD, STATUS})
        inside = [Path(entry.path) for entry in listed if _is_directory(entry)]
    except OSError:  # vanished meanwhile, or not ours to read
        return [], False
    if not is_run:
        return inside, False
    return [path for path in inside if path.name == PREVIOUS], True


def _is_directory(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)


def read_lines(found: Found, roots: Iterable[Path], now: float) -> list[RunLine]:
    """A line of every run; one that cannot be read says why."""
    names = names_of(found.directories, list(roots))
    lines = []
    for directory in found.directories:
        status = record = problem = None
        try:
            status, record = read_status(directory), read_record(directory)
        except (OutputError, OSError) as error:
            problem = str(error)
        line = line_of(directory, status, record, _modified(directory / EVENTS), now, problem)
        values = {**vars(line), "name": names[directory]}
        lines.append(RunLine(**values))
    return lines


def line_of(
    directory: Path,
    status: RunStatus | None,
    record: RunRecord | None,
    modified: float | None,
    now: float,
    problem: str | None = None,
) -> RunLine:
    """What a status says; of a run without one, what is in its results."""
    age = number(None) if modified is None else max(0.0, now - modified)
    if status is None:
        return _of_results(directory, record, age, problem)
    running = status.state == "running"
    told = _modified(directory / STATUS)
    quiet = min(age if age == age else SILENT_S * 10, number(None) if told is None else now - told)
    usual = max(SILENT_S, 10 * (status.iteration_s or 0.0))
    return RunLine(
        directory=directory,
        name=directory.name,
        case=text(status.case),
        run=text(status.run),
        state=text(status.state),
        phase=text(status.phase),
        iteration=status.iteration,
        limit=status.iteration_limit,
        lower=number(status.lower_bound),
        upper=number(status.upper_bound),
        half_width=number(status.half_width),
        gap=number(status.gap),
        sense=text(status.sense),
        eta_s=number(status.eta_s) if running else number(None),
        event_age_s=age,
        silent=running and quiet > usual,
        backend=text(status.backend),
        ranks=status.ranks,
        started=text(status.started),
        problem=problem,
    )


def _of_results(directory: Path, record: RunRecord | None, age: float, problem: str | None) -> RunLine:
    metadata: dict[str, Any] = {}
    try:
        if (directory / METADATA).is_file():
            metadata = read_json(directory / METADATA)
    except OutputError as error:
        problem = problem or str(error)
    if problem is None and record is None and not metadata:
        problem = f"{directory}: no run has written a status here"
    return RunLine(
        directory=directory,
        name=directory.name,
        case=text(metadata.get("case") or (record.case if record is not None else "")),
        run=text(record.id) if record is not None else "",
        state="unknown" if problem else "finished" if metadata else record.state if record else "unknown",
        iteration=whole(metadata.get("iterations")),
        lower=number(metadata.get("lower_bound")),
        upper=number(metadata.get("upper_bound")),
        half_width=number(metadata.get("upper_bound_half_width")),
        gap=number(metadata.get("gap")),
        sense=text(metadata.get("sense", "minimise")),
        event_age_s=age,
        backend=text(metadata.get("backend", "")),
        ranks=whole(metadata.get("ranks")),
        started=text(metadata.get("started", "")),
        problem=problem,
    )


def names_of(directories: Iterable[Path], roots: list[Path]) -> dict[Path, str]:
    """Each directory as seen from the root it was found below; of one that is a root, its own name."""
    roots = [root.absolute() for root in roots]
    found = {}
    for directory in directories:
        whole_path = directory.absolute()
        name = str(directory)
        for root in roots:
            if whole_path == root:
                name = "/".join(root.resolve().parts[-2:]).lstrip("/")
            elif whole_path.is_relative_to(root):
                inside = str(whole_path.relative_to(root))
                name = inside if len(roots) == 1 else f"{root.name}/{inside}"
            else:
                continue
            break
        found[directory] = text(name)
    return found


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
