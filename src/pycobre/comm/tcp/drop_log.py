"""What is logged of connections that rank 0 drops: a line each, or a count where there are too many.

Anybody who reaches the port can make rank 0 drop connections as fast as the network carries them. So at most
`MAX_LINES` lines are written per `WINDOW_S`; the rest of a window is counted and reported in one line at its end.
"""

from __future__ import annotations

import logging
import time

__all__ = ["DropLog"]

log = logging.getLogger("pycobre.comm.tcp.backend")

MAX_LINES = 20
WINDOW_S = 60.0


class DropLog:
    """Writes the lines of one acceptor, in its thread."""

    def __init__(self) -> None:
        self._window_ends = 0.0
        self._lines = 0
        self._suppressed = 0
        self._last = ""

    def dropped(self, address: str, reason: str) -> None:
        """Report one dropped connection."""
        now = time.monotonic()
        if now >= self._window_ends:
            self.report()
            self._window_ends = now + WINDOW_S
            self._lines = 0
        if self._lines < MAX_LINES:
            self._lines += 1
            log.warning("tcp: dropped a connection from %s: %s", address, reason)
            return
        self._suppressed += 1
        self._last = f"{address}: {reason}"

    @property
    def due(self) -> float | None:
        """When `report` has something to say, on the monotonic clock; None while nothing is counted."""
        return self._window_ends if self._suppressed else None

    def report(self) -> None:
        """Write the count of connections that got no line of their own."""
        if self._suppressed:
            log.warning(
                "tcp: dropped %d more connections in %g s, the last one from %s",
                self._suppressed,
                WINDOW_S,
                self._last,
            )
        self._suppressed = 0
