"""Events on their way from a worker to the parent: those of single stages in lots.

Every message wakes the parent, which has no core of its own, so a rank is put aside for it; stages may take less time
than that. An event of a stage therefore waits for the next event where a lot has just been sent. Lots keep the order.
"""

from __future__ import annotations

import json
import time

from pycobre.events import Event, IterationFinished, StageFinished, event_from_dict
from pycobre.launch.channel import Channel, Kind

__all__ = ["Outbox", "opened"]

INTERVAL_S = 0.05
"""Events of stages are sent at most so often; the other kinds at once."""


class Outbox:
    """A listener that sends what it hears; with `ask`, the end of an iteration waits for the parent's word."""

    def __init__(self, channel: Channel, *, ask: bool) -> None:
        self._channel = channel
        self._ask = ask
        # Encoded as they come: one that cannot be is its own error, and spoils no lot.
        self._held: list[str] = []
        self._sent = 0.0

    def __call__(self, event: Event) -> bool:
        self._held.append(json.dumps(event.to_dict()))
        if isinstance(event, StageFinished) and time.monotonic() - self._sent < INTERVAL_S:
            return False
        if self._ask and isinstance(event, IterationFinished):
            return self._channel.ask(self._lot()) == b"stop"
        self.flush()
        return False

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            self._channel.send(Kind.EVENT, self._lot())

    def _lot(self) -> bytes:
        lot = f"[{','.join(self._held)}]".encode()
        self._held.clear()
        self._sent = time.monotonic()
        return lot


def opened(lot: bytes) -> list[Event]:
    """The events of a lot, in their order."""
    return [event_from_dict(document) for document in json.loads(lot)]
