"""The end of an iteration: whether to stop, and whether to write a checkpoint, agreed on by all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pycobre._util.arrays import F64
from pycobre.sddp.error_agreement import CheckedCollectives
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.reporter import Reporter
from pycobre.sddp.stopping import Stop
from pycobre.sddp.training.log import TrainingLog
from pycobre.sddp.training.outcome import Checkpointer, HoldsStates

__all__ = ["Decision", "StopAgreement"]

# What a rank reports at the end of an iteration; rank 0 speaks for the stopping rules.
GO_ON, RULE_FIRED, LISTENER_ASKED, INTERRUPTED = 0.0, 1.0, 2.0, 3.0


class Decision(NamedTuple):
    """What all ranks do after an iteration."""

    stop: Stop | None  #: why to stop, if at all
    write: bool  #: a checkpoint is due
    hold: bool  #: rank 0 is to hold the state


class StopAgreement:
    """Asks the rules and the checkpointer on rank 0, the listener and the interrupt on every rank."""

    def __init__(
        self,
        collectives: CheckedCollectives,
        options: TrainOptions,
        reporter: Reporter,
        should_stop: Callable[[], bool] | None,
        checkpoint: Checkpointer | None,
    ) -> None:
        self._collectives, self._stopping, self._reporter = collectives, options.stopping, reporter
        self._should_stop, self._checkpoint = should_stop, checkpoint

    def decide(self, log: TrainingLog, simulated: F64 | None, *, resuming: bool) -> Decision:
        """What to do now (collective)."""
        collectives = self._collectives
        rank, size = collectives.comm.rank, collectives.comm.size
        word, stop = GO_ON, None
        due, due_if_last, hold = False, False, False
        with collectives.deferred_errors():
            if rank == 0:
                stop = self._stopping.check(log.progress(simulated))
            if stop is not None:
                word = RULE_FIRED
            elif self._should_stop is not None and self._should_stop():
                word = INTERRUPTED
            elif self._reporter.stop_requested:
                word = LISTENER_ASKED
            if rank == 0 and self._checkpoint is not None and not resuming:
                # Whether this iteration is the last one is known after the gather only: any rank may end it.
                due, due_if_last = (self._checkpoint.due(log.iteration, last=last) for last in (False, True))
            if rank == 0 and isinstance(self._checkpoint, HoldsStates):
                hold = self._checkpoint.holds()
        words = collectives.gather(
            np.array([[word, float(due), float(due_if_last), float(hold)]]), (1,) * size
        )
        agreed: Stop | None = None
        if words[0, 0] == RULE_FIRED:
            text = collectives.broadcast_text("" if stop is None else f"{stop.converged:d}{stop.reason}")
            agreed = Stop(text[1:], text[:1] == "1")
        elif np.any(words[:, 0] == INTERRUPTED):
            agreed = Stop("interrupted", False)
        elif np.any(words[:, 0] == LISTENER_ASKED):
            agreed = Stop("callback", False)
        return Decision(agreed, bool(words[0, 1 if agreed is None else 2]), bool(words[0, 3]))
