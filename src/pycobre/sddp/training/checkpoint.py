"""Checkpoints of a training run: a directory of numbered files, of which the last three are kept.

A file appears whole or not at all, and carries a checksum; where the newest is truncated or inconsistent, the one
before it is used and a warning says so. What is in it goes on bit for bit, on any backend and number of ranks.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

from pycobre._util import container
from pycobre._util.files import write_atomically
from pycobre.errors import OptionError, OutputError, PolicyError
from pycobre.sddp.training.outcome import Receipt
from pycobre.sddp.training.state import TrainingState

__all__ = [
    "KEPT",
    "Checkpoints",
    "has_checkpoints",
    "latest",
    "pack_checkpoint",
    "read_checkpoint",
    "unpack_checkpoint",
]

KIND, VERSION = "checkpoint", 2
SUFFIX = ".cobre"
KEPT = 3
DEFAULT_S = 120.0
"""Seconds between checkpoints where no interval is given."""
SHARE = 100.0
"""They are further apart where writing one takes more than a hundredth of that."""


class Checkpoints:
    """Writes a checkpoint every `iterations` iterations or `minutes` minutes, and after the last iteration.

    Without either: after the first iteration, then every two minutes, or less often where writing takes long. When
    a checkpoint is written changes no bit of the training.
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

    def write(self, state: TrainingState) -> Receipt:
        """Write one file and drop the oldest beyond `KEPT`."""
        begin = self._clock()
        self._requested = False
        data = pack_checkpoint(state)
        path = self._directory / f"{state.iteration:08d}{SUFFIX}"
        write_atomically(path, data)
        for old in _files(self._directory)[KEPT:]:
            old.unlink()
        self._written_at = self._clock()
        self._wait_s = max(DEFAULT_S, SHARE * (self._written_at - begin))
        return Receipt(str(path), len(data))


def pack_checkpoint(state: TrainingState) -> bytes:
    """The bytes of a checkpoint file."""
    meta, arrays = state.to_arrays()
    return container.pack(container.Container(KIND, VERSION, meta, arrays))


def unpack_checkpoint(data: bytes, where: str) -> TrainingState:
    """Undo `pack_checkpoint`; truncated, changed or inconsistent bytes raise PolicyError."""
    return _state(container.unpack(data, KIND, VERSION, where=where, error=PolicyError), where)


def read_checkpoint(path: str | os.PathLike[str]) -> TrainingState:
    """Read one file; truncated, changed or inconsistent files raise PolicyError."""
    return _state(container.read(path, KIND, VERSION, error=PolicyError), str(path))


def _state(found: container.Container, where: str) -> TrainingState:
    return TrainingState.from_arrays(found.meta, found.arrays, where=where)


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
