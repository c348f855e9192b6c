"""Checkpoints of a training run: a directory of numbered files, of which the last three are kept, and a log of cuts.

A file appears whole or not at all, and carries a checksum. It holds what an iteration changes: history, starting
bases, which cuts are active; cuts and visited points, which only become more, are in a log that grows by what is new
(`cut_log`), and the file says how far it counts. The log is on the disk before the file that refers to it. Where the
newest checkpoint is truncated or inconsistent, the one before it is used and a warning says so. What is in it goes on
bit for bit, on any backend and number of ranks.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pycobre._util import container
from pycobre._util.files import write_atomically
from pycobre.errors import OptionError, OutputError, PolicyError
from pycobre.sddp.training import cut_log
from pycobre.sddp.training.outcome import Receipt
from pycobre.sddp.training.state import TrainingState

__all__ = [
    "KEPT",
    "Checkpoints",
    "has_checkpoints",
    "iteration_of",
    "latest",
    "pack_checkpoint",
    "read_checkpoint",
    "unpack_checkpoint",
]

KIND, VERSION = "checkpoint", 3
SUFFIX = ".cobre"
KEPT = 3
DEFAULT_S = 120.0
"""Seconds between checkpoints where no interval is given."""
SHARE = 100.0
"""They are further apart where writing, or holding, one takes more than a hundredth of that."""


class Checkpoints:
    """Writes a checkpoint every `iterations` iterations or `minutes` minutes, and after the last iteration.

    Without either: after the first iteration, then every two minutes, or less often where writing takes long. When
    a checkpoint is written changes no bit of the training.

    In between it holds the state of the last iteration (of an earlier one where iterations are so short that holding
    each would take more than a hundredth of the time), which `save` writes when the run cannot go on.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        iterations: int | None = None,
        minutes: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if iterations is not None and iterations < 1:
            raise OptionError(f"checkpoint iterations: expected at least 1, got {iterations}.")
        if minutes is not None and not minutes > 0:
            raise OptionError(f"checkpoint minutes: expected a number above 0, got {minutes}.")
        self._directory = Path(directory)
        self._iterations = iterations
        self._seconds = None if minutes is None else 60.0 * minutes
        self._clock = clock
        self._by_default = iterations is None and minutes is None
        self._written_at = -math.inf if self._by_default else clock()
        self._wait_s = DEFAULT_S
        self._requested = False
        self._mark: cut_log.Mark | None = None  # how far the log counts, when something is in it
        self._lock = threading.Lock()  # `save` may be called on another thread
        self._newest = 0  # iteration of the newest checkpoint written here
        self._hold_at = -math.inf
        self._held: tuple[int, Callable[[], TrainingState]] | None = None
        _make(self._directory)

    def due(self, iteration: int, *, last: bool) -> bool:
        """Whether to write after this iteration."""
        by_count = self._iterations is not None and iteration % self._iterations == 0
        seconds = self._wait_s if self._by_default else self._seconds
        by_clock = seconds is not None and self._clock() - self._written_at >= seconds
        return last or by_count or by_clock or self._requested

    def request(self) -> None:
        """Write one after this iteration, due or not."""
        self._requested = True

    def holds(self) -> bool:
        """After every iteration, or less often where that would take more than a hundredth of the time."""
        return self._clock() >= self._hold_at

    def hold(self, iteration: int, state: Callable[[], TrainingState], cost_s: float) -> None:
        """Remember the state after `iteration` for `save`."""
        self._held = iteration, state
        self._hold_at = self._clock() + SHARE * cost_s

    def write(self, state: TrainingState) -> Receipt:
        """Write the cuts that are new and one file, and drop the oldest beyond `KEPT`."""
        with self._lock:
            return self._write(state)

    def save(self) -> Receipt | None:
        """Write the state that is held, from whichever thread; None where it is on the disk already."""
        with self._lock:
            if self._held is None or self._held[0] <= self._newest:
                return None
            return self._write(self._held[1]())

    def _write(self, state: TrainingState) -> Receipt:
        begin = self._clock()
        self._requested = False
        name = f"{state.iteration:08d}"
        before = self._mark or _mark_of(self._directory, state) or cut_log.Mark(name + cut_log.SUFFIX)
        meta, arrays = state.to_arrays()
        growing = {key: array for key, array in arrays.items() if _grows(key)}
        mark = cut_log.append(self._directory, before, growing)
        rest = {key: array for key, array in arrays.items() if key not in growing}
        data = container.pack(container.Container(KIND, VERSION, {**meta, "log": mark.meta()}, rest))
        path = self._directory / (name + SUFFIX)
        write_atomically(path, data)
        self._mark, self._newest = mark, state.iteration
        _prune(self._directory)
        self._written_at = self._clock()
        self._wait_s = max(DEFAULT_S, SHARE * (self._written_at - begin))
        return Receipt(str(path), len(data) + mark.size - before.size)


def pack_checkpoint(state: TrainingState) -> bytes:
    """A whole checkpoint as bytes, cuts included: how it travels to other ranks."""
    meta, arrays = state.to_arrays()
    return container.pack(container.Container(KIND, VERSION, meta, arrays))


def unpack_checkpoint(data: bytes, where: str) -> TrainingState:
    """Undo `pack_checkpoint`; truncated, changed or inconsistent bytes raise PolicyError."""
    found = container.unpack(data, KIND, VERSION, where=where, error=PolicyError)
    return TrainingState.from_arrays(found.meta, found.arrays, where=where)


def read_checkpoint(path: str | os.PathLike[str]) -> TrainingState:
    """Read one file and its part of the log; truncated, changed or inconsistent ones raise PolicyError."""
    found = container.read(path, KIND, VERSION, error=PolicyError)
    mark = cut_log.Mark.read(found.meta.get("log"), str(path))
    rows = cut_log.read_rows(Path(path).parent, mark)
    twice = sorted(set(rows) & set(found.arrays))
    if twice:
        raise PolicyError(
            f"{path}: array {twice[0]!r}: expected in the log alone, got two. Use an earlier copy."
        )
    return TrainingState.from_arrays(found.meta, {**found.arrays, **rows}, where=str(path))


def _grows(name: str) -> bool:
    """Whether an array of a state only gains rows; which cuts are active may change with every selection."""
    return name.startswith("points/") or (name.startswith("cuts/") and not name.endswith("/active"))


def _mark_of(directory: Path, state: TrainingState) -> cut_log.Mark | None:
    """How far the log of the checkpoint counts from which this state's training went on, if there is one here."""
    for path in _files(directory):
        try:
            found = container.read(path, KIND, VERSION, error=PolicyError)
            mark = cut_log.Mark.read(found.meta.get("log"), str(path))
        except PolicyError:
            continue  # `latest` has said so
        same = (found.meta.get("fingerprint"), found.meta.get("options")) == (
            state.fingerprint,
            state.options,
        )
        if same and mark.fits(directory) and _continues(state, found.arrays):
            return mark
    return None


def _continues(state: TrainingState, earlier: dict[str, NDArray[Any]]) -> bool:
    """Whether the state's history begins with the earlier one, seconds included: no two runs have the same."""
    for name, column in state.history.arrays().items():
        before = earlier.get(f"history/{name}")
        if before is None or before.tobytes() != column[: len(before)].tobytes():
            return False
    return True


def _prune(directory: Path) -> None:
    """Drop the oldest checkpoints beyond `KEPT`, then logs that none of the others refers to."""
    files = _files(directory)
    for old in files[KEPT:]:
        old.unlink()
    logs = set(directory.glob(f"*{cut_log.SUFFIX}"))
    if len(logs) < 2:
        return
    for path in files[:KEPT]:
        try:
            found = container.read(path, KIND, VERSION, error=PolicyError)
            logs.discard(directory / cut_log.Mark.read(found.meta.get("log"), str(path)).file)
        except PolicyError:
            return  # one that cannot be read may refer to any of them
    for log in logs:
        log.unlink()


def iteration_of(path: str | os.PathLike[str]) -> int:
    """The iteration after which a checkpoint was written, by its name."""
    return int(Path(path).stem)


def has_checkpoints(directory: str | os.PathLike[str]) -> bool:
    """Whether there is any file to resume from."""
    return bool(_files(Path(directory)))


def latest(directory: str | os.PathLike[str]) -> tuple[TrainingState, list[str]]:
    """The newest checkpoint that can be read, and what was wrong with newer ones."""
    files = _files(Path(directory))
    if not files:
        raise PolicyError(
            f"{directory}: expected checkpoints of an earlier run, got none. "
            "Start without resuming, or give the output directory of that run."
        )
    faults: list[str] = []
    for path in files:
        try:
            return read_checkpoint(path), faults
        except PolicyError as fault:
            faults.append(f"{fault} Looking for an earlier checkpoint.")
    raise PolicyError(f"{directory}: none of its {len(files)} checkpoints can be read. " + " ".join(faults))


def _files(directory: Path) -> list[Path]:
    """Checkpoint files, newest first."""
    return sorted((p for p in directory.glob(f"*{SUFFIX}") if p.stem.isdigit()), reverse=True)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise OutputError(
            f"{directory}: cannot create the checkpoint directory: {cause.strerror}. "
            "Choose an output directory that can be written."
        ) from cause
