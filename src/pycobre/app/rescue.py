"""Saving what a run has come to when it cannot go on: a rank was lost, or whoever started it.

Rank 0 holds the state of the last finished iteration (`Checkpoints.hold`). Whoever notices first that the run has no
next one writes it: the error on its way out of the run, or the thread that listens to the launcher while rank 0 is in
the middle of a long solve.
"""

from __future__ import annotations

from pycobre.errors import CobreError
from pycobre.sddp.training.checkpoint import Checkpoints
from pycobre.sddp.training.outcome import Receipt

__all__ = ["Rescue"]


class Rescue:
    """Where the held state of a run can be written from, by any thread of rank 0; elsewhere nothing is held."""

    def __init__(self) -> None:
        self._checkpoints: Checkpoints | None = None
        self.receipt: Receipt | None = None  #: of what was saved

    def watch(self, checkpoints: Checkpoints | None) -> None:
        """From now on save what these hold; None: the training has ended, and there is nothing to save."""
        self._checkpoints = checkpoints

    def save(self) -> None:
        """Write the held state, where it is not on the disk already; returns when it is, whoever wrote it."""
        checkpoints = self._checkpoints
        if checkpoints is not None:
            self.receipt = checkpoints.save() or self.receipt

    def try_to_save(self) -> None:
        """The same for a thread that nobody hears: a failure to write is left to the error of the run itself."""
        try:
            self.save()
        except (CobreError, OSError, MemoryError):
            return
