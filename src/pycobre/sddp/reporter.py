"""Events to the listener, whose errors are deferred to the next collective."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pycobre.events import Event, Listener
from pycobre.sddp.error_agreement import CheckedCollectives

__all__ = ["Reporter"]


class Reporter:
    """Emits events on one rank. An error of the listener is raised on all ranks at their next collective."""

    def __init__(self, collectives: CheckedCollectives, listener: Listener | None) -> None:
        self._collectives = collectives
        self._listener = listener
        self._wants: Callable[[type[Event]], bool] | None = getattr(listener, "wants", None)
        self._begin = time.perf_counter()
        self.stop_requested = False

    def listens_to(self, kind: type[Event]) -> bool:
        """Whether events of this kind are wanted now."""
        if self._wants is not None:
            return self._wants(kind)
        return self._listener is not None and not kind.on_request

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begin

    def emit(self, kind: type[Event], **fields: Any) -> None:
        """Build the event and hand it over; a true answer asks the run to stop."""
        if self._listener is None or not self.listens_to(kind):
            return
        with self._collectives.deferred_errors():
            event = kind(worker_id=self._collectives.comm.rank, time_s=self.elapsed_s, **fields)
            if self._listener(event):
                self.stop_requested = True
