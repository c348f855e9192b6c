"""The runs below a directory, by id."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pycobre.app.answers.case_records import Source
from pycobre.app.answers.run_records import RunEntry, RunList, RunState
from pycobre.app.results.directory import Results, list_runs, open_results
from pycobre.app.results.layout import METADATA, PREVIOUS, RECORD, STATUS
from pycobre.app.results.record import read_record
from pycobre.app.results.status import RunStatus
from pycobre.errors import CobreError, OptionError, OutputError

__all__ = ["Sound", "everything", "find_run", "folders", "run_entries", "run_id_of", "run_state"]

Sound = Callable[[Path], bool]
"""Whether a directory may be looked into."""

DEEPEST = 8
MOST_FOLDERS = 20_000
LONGEST = 1024
_SKIPPED = {PREVIOUS, "checkpoints", "simulation", "training", "policy", "plots", "failed"}


def everything(directory: Path) -> bool:
    """Every directory may."""
    return True


def folders(root: Path) -> Iterator[Path]:
    """The directories below `root`, itself included, in order of their names; links are not followed."""
    waiting = [(root, 0)]
    seen = 0
    while waiting:
        folder, depth = waiting.pop()
        seen += 1
        if seen > MOST_FOLDERS:
            raise OptionError(
                f"{root}: expected at most {MOST_FOLDERS:,} directories, got more. Choose a directory below it."
            )
        yield folder
        if depth == DEEPEST:
            continue
        try:
            with os.scandir(folder) as entries:
                inside = [
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                    and not entry.name.startswith(".")
                    and entry.name not in _SKIPPED
                ]
        except OSError:  # one that may not be read holds nothing for us
            continue
        waiting += [(folder / name, depth + 1) for name in sorted(inside, reverse=True)]


def run_entries(
    root: Path, *, case: str = "", state: str = "", limit: int = 100, sound: Sound = everything
) -> RunList:
    """The runs below `root`, those started last first; `case` and `state` choose among them."""
    found = [_entry(root, run, results) for run, results in _runs(root, sound)]
    found = [
        each
        for each in found
        if (not case or case in (each.case, _case_of(each.directory))) and (not state or each.state == state)
    ]
    found.sort(key=lambda each: (each.run, each.directory), reverse=True)
    return RunList(found[:limit], len(found), len(found) > limit)


def find_run(root: Path, run: str, sound: Sound = everything) -> tuple[str, Results]:
    """The run of that id, or the one whose id begins so; its directory below `root` is accepted too."""
    found = _matching(root, run, sound)
    if len(found) == 1:
        return found[0]
    named = run.isprintable() and 0 < len(run) <= LONGEST
    if not found and named and not os.path.isabs(run) and ".." not in Path(run).parts:
        directory = Path(os.path.realpath(root / run))  # a link may lead anywhere
        there = directory.is_relative_to(os.path.realpath(root)) and directory.is_dir() and sound(directory)
        if there and ((directory / RECORD).is_file() or (directory / METADATA).is_file()):
            results = open_results(directory)
            return (results.record.id if results.record is not None else run), results
    what = "none" if not found else f"{len(found)}: {', '.join(name for name, _ in found[:5])}"
    raise OutputError(f"run {run[:80]!r}: expected the id of one run, got {what}. `list_runs` names them.")


def run_state(root: Path, run: str, results: Results) -> RunState:
    """How far a run is."""
    status = results.status
    if status is None:
        return _finished(root, run, results)
    return RunState(
        run=run,
        state=status.state,
        phase=status.phase,
        directory=_below(root, results.directory),
        case=status.case,
        iteration=status.iteration,
        iteration_limit=status.iteration_limit,
        lower_bound=status.lower_bound,
        upper_bound=status.upper_bound,
        half_width=status.half_width,
        gap=status.gap,
        scenarios=status.scenarios,
        scenarios_done=status.scenarios_done,
        elapsed_s=status.elapsed_s,
        eta_s=status.eta_s,
        memory_bytes=status.memory_bytes,
        lps_per_s=status.lps_per_s,
        warnings=list(status.warnings or ()),
        result=status.result,
        error=status.error,
        sources=[Source("run", run, STATUS)],
    )


def run_id_of(directory: Path) -> str | None:
    """The id of the run that was last in a directory, where there is one."""
    record = read_record(directory) if directory.is_dir() else None
    return None if record is None else record.id


def _finished(root: Path, run: str, results: Results) -> RunState:
    """An earlier run, of which only the metadata is left, or results from before there was a status."""
    found = results.metadata
    return RunState(
        run=run,
        state="finished" if found else "unknown",
        phase="done",
        directory=_below(root, results.directory),
        case=str(found.get("case", "")),
        iteration=int(found.get("iterations", 0)),
        iteration_limit=None,
        lower_bound=found.get("lower_bound"),
        upper_bound=found.get("upper_bound"),
        half_width=found.get("upper_bound_half_width"),
        gap=found.get("gap"),
        scenarios=int(found.get("simulation", {}).get("scenarios", 0)),
        scenarios_done=int(found.get("simulation", {}).get("scenarios", 0)),
        elapsed_s=float(found.get("elapsed_s", 0.0)),
        eta_s=None,
        memory_bytes=0,
        lps_per_s=None,
        warnings=[str(each) for each in found.get("warnings", ())],
        result=None,
        error=None,
        sources=[Source("run", run, METADATA)],
    )


def _runs(root: Path, sound: Sound) -> Iterator[tuple[str, Results]]:
    for folder in folders(root):
        if not sound(folder):
            continue
        if (folder / RECORD).is_file() or ((folder / METADATA).is_file() and (folder / "training").is_dir()):
            try:
                yield from list_runs(folder)
            except CobreError:  # a directory that only looks like one of a run
                continue


def _matching(root: Path, run: str, sound: Sound) -> list[tuple[str, Results]]:
    everything = list(_runs(root, sound))
    exact = [each for each in everything if each[0] == run]
    return exact or [each for each in everything if len(run) >= 8 and each[0].startswith(run)]


def _entry(root: Path, run: str, results: Results) -> RunEntry:
    metadata, record = results.metadata, results.record
    try:
        status: RunStatus | None = results.status
    except CobreError:  # written by another version: the rest is still worth showing
        status = None
    now = status if status is not None and status.state in ("running", "lost", "failed") else None
    simulation = metadata.get("simulation", {})
    return RunEntry(
        run=run,
        state=status.state if status is not None else "finished" if metadata else "unknown",
        case=str(metadata.get("case") or (record.case if record is not None else "")),
        directory=_below(root, results.directory),
        iterations=metadata.get("iterations") if now is None else now.iteration,
        lower_bound=metadata.get("lower_bound") if now is None else now.lower_bound,
        scenarios=simulation.get("scenarios"),
        mean_cost=simulation.get("mean"),
        policy_digest=metadata.get("policy_digest"),
    )


def _case_of(directory: str) -> str:
    return directory.rpartition("/output")[0]


def _below(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
