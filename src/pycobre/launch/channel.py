"""Framed messages between a launcher and the ranks it started, over an inherited socket pair.

A message is one byte of kind, an unsigned 64-bit length, and that many bytes. Both ends belong to one run of
one user on one machine, so there is no handshake; a torn message means that the other side died.
"""

from __future__ import annotations

import os
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum

__all__ = ["CHANNEL_FD_VARIABLE", "PAYLOAD_FD_VARIABLE", "Channel", "Kind", "MessageBuffer", "frame"]

CHANNEL_FD_VARIABLE = "COBRE_LAUNCH_FD"
PAYLOAD_FD_VARIABLE = "COBRE_PAYLOAD_FD"
_HEADER = struct.Struct("<BQ")


class Kind(IntEnum):
    """What a message says.

    EVENT, QUESTION, RESULT, ERROR and SAVED go up to the launcher, GO, STOP, ANSWER and PEER_LOST go down to a
    rank. A QUESTION is an event whose sender waits for the ANSWER before it goes on; GO says that the payload is
    there. PEER_LOST says that the run cannot go on; the rank saves what it can and says SAVED.
    """

    EVENT = 1
    RESULT = 2
    ERROR = 3
    STOP = 4
    QUESTION = 5
    ANSWER = 6
    GO = 7
    PEER_LOST = 8
    SAVED = 9


def frame(kind: Kind, payload: bytes) -> bytes:
    """Return `payload` as one message."""
    return _HEADER.pack(kind, len(payload)) + payload


class MessageBuffer:
    """Divides a stream of received bytes into messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Add received bytes and yield every message they complete: its kind, unchecked, and its payload."""
        self._data += data
        while len(self._data) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._data)
            end = _HEADER.size + length
            if len(self._data) < end:
                return
            payload = bytes(self._data[_HEADER.size : end])
            del self._data[:end]
            yield kind, payload


class Channel:
    """The rank's end: sends messages up and watches for a stop request or the launcher's death.

    `on_stop` runs in a background thread when the launcher asks to stop; `on_peer_lost` when another rank has
    failed, and must not raise; `on_orphaned` when the launcher is gone, so that no rank outlives the run it belongs
    to.
    """

    def __init__(
        self,
        sock: socket.socket,
        on_stop: Callable[[], None],
        on_orphaned: Callable[[], None],
        on_peer_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._socket = sock
        self._on_peer_lost = on_peer_lost
        self._lock = threading.Lock()
        self._on_stop = on_stop
        self._on_orphaned = on_orphaned
        self._closing = False
        self._go = threading.Event()
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._watcher = threading.Thread(target=self._watch, name="pycobre-launcher-watch", daemon=True)
        self._watcher.start()

    @classmethod
    def inherited(
        cls,
        on_stop: Callable[[], None],
        on_orphaned: Callable[[], None],
        on_peer_lost: Callable[[], None] = lambda: None,
    ) -> Channel | None:
        """The channel this process was started with, or None when nobody launched it."""
        value = os.environ.pop(CHANNEL_FD_VARIABLE, None)
        if value is None:
            return None
        return cls(socket.socket(fileno=int(value)), on_stop, on_orphaned, on_peer_lost)

    def send(self, kind: Kind, payload: bytes) -> None:
        """Send one message; threads may share the channel."""
        with self._lock:
            self._socket.sendall(frame(kind, payload))

    def wait_for_payload(self) -> None:
        """Return when the launcher has given the payload; one that dies before ends this process instead."""
        self._go.wait()

    def ask(self, payload: bytes) -> bytes:
        """Send a question and wait for its answer; a launcher that dies ends this process instead."""
        self.send(Kind.QUESTION, payload)
        return self._answers.get()

    def close(self) -> None:
        """Tell the launcher that nothing more comes, and stop watching."""
        self._closing = True
        with suppress(OSError):  # the launcher may have hung up first: then there is nobody left to tell
            self._socket.shutdown(socket.SHUT_RDWR)
        self._watcher.join()
        self._socket.close()

    def _watch(self) -> None:
        buffer = MessageBuffer()
        while True:
            try:
                data = self._socket.recv(4096)
            except OSError:
                data = b""
            if not data:
                if not self._closing:
                    self._on_orphaned()
                return
            for kind, payload in buffer.feed(data):
                if kind == Kind.STOP:
                    self._on_stop()
                elif kind == Kind.GO:
                    self._go.set()
                elif kind == Kind.PEER_LOST:
                    self._on_peer_lost()
                    with suppress(OSError):  # the launcher has not waited for it
                        self.send(Kind.SAVED, b"")
                elif kind == Kind.ANSWER:
                    self._answers.put(payload)
