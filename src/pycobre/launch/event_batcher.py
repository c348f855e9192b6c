"""Batches the events of stages before a worker sends them to the parent process.

Every message wakes the parent, which has no core of its own, so a rank is suspended for it; stages may take less
time than that. An event of a stage therefore waits for the next event if a batch has just been sent. The order of
events is kept.
"""

from __future__ import annotations

import json
import time

from pycobre.events import Event, IterationFinished, StageFinished, event_from_dict
from pycobre.launch.channel import Channel, Kind

__all__ = ["EventBatcher", "decode_batch"]

INTERVAL_S = 0.05
"""Events of stages are sent at most so often; the other kinds at once."""


class EventBatcher:
    """A listener that sends events to the parent; with `ask`, the end of an iteration waits for its answer."""

    def __init__(self, channel: Channel, *, ask: bool) -> None:
        self._channel = channel
        self._ask = ask
        # Encoded as they come: one that cannot be is its own error, and spoils no batch.
        self._held: list[str] = []
        self._sent = 0.0

    def __call__(self, event: Event) -> bool:
        self._held.append(json.dumps(event.to_dict()))
        if isinstance(event, StageFinished) and time.monotonic() - self._sent < INTERVAL_S:
            return False
        if self._ask and isinstance(event, IterationFinished):
            return self._channel.ask(self._batch()) == b"stop"
        self.flush()
        return False

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            self._channel.send(Kind.EVENT, self._batch())

    def _batch(self) -> bytes:
        batch = f"[{','.join(self._held)}]".encode()
        self._held.clear()
        self._sent = time.monotonic()
        return batch


def decode_batch(batch: bytes) -> list[Event]:
    """The events of a batch, in their order."""
    return [event_from_dict(document) for document in json.loads(batch)]
