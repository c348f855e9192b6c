"""Telling the listener, without letting it break the step in which it is told."""

from __future__ import annotations

import time
from typing import Any

from pycobre.events import Event, Listener
from pycobre.sddp.error_agreement import Meeting

__all__ = ["Reporter"]


class Reporter:
    """Emits events on one rank. An error of the listener is raised on all ranks at their next meeting."""

    def __init__(self, meeting: Meeting, listener: Listener | None) -> None:
        self._meeting = meeting
        self._listener = listener
        self._begin = time.perf_counter()
        self.stop_requested = False

    @property
    def listening(self) -> bool:
        return self._listener is not None

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begin

    def emit(self, kind: type[Event], **fields: Any) -> None:
        """Build the event and hand it over; a true answer asks the run to stop."""
        if self._listener is None:
            return
        with self._meeting.attempt():
            event = kind(worker_id=self._meeting.comm.rank, time_s=self.elapsed_s, **fields)
            if self._listener(event):
                self.stop_requested = True
