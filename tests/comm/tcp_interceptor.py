"""A proxy between a worker and the coordinator that forwards the handshake and attacks one of the frames.

It knows the format and not the token. `Attack` says what it does to which frame of which direction; everything before
goes through unchanged, and so does everything after, so that only the attack itself can be noticed.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tcp_helpers import receive

from pycobre.comm.tcp.handshake import Stage
from pycobre.comm.tcp.mac import TAG_BYTES
from pycobre.comm.tcp.sealed import SEGMENT_BYTES
from pycobre.comm.tcp.wire import HEADER, Header

HELLO_BYTES, PROOF_BYTES, REPLY_BYTES = 52, 32, 16
UP, DOWN = "to the coordinator", "to the worker"

Change = Callable[[list[bytes]], list[bytes]]


@dataclass(frozen=True)
class Attack:
    """`change` gets `count` frames, beginning with number `first` of a direction, and returns what is sent instead.

    With `hang_up` the connection ends after that.
    """

    direction: str
    first: int
    change: Change
    count: int = 1
    hang_up: bool = False


@dataclass
class Interceptor:
    """What a worker connects to instead of the coordinator; `attacked` is set once the attack has been made."""

    listener: socket.socket
    port: int
    attack: Attack | None
    authenticated: bool
    attacked: threading.Event
    forwarded: dict[str, int]

    @property
    def address(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        inside, _ = self.listener.accept()
        outside = socket.create_connection(("127.0.0.1", self.port))
        threads = [
            threading.Thread(target=self._upward, args=(inside, outside)),
            threading.Thread(target=self._downward, args=(outside, inside)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        inside.close()
        outside.close()

    def _upward(self, source: socket.socket, target: socket.socket) -> None:
        with ending(source, target):
            target.sendall(receive(source, HELLO_BYTES))
            target.sendall(receive(source, PROOF_BYTES))
            self._frames(source, target, UP)

    def _downward(self, source: socket.socket, target: socket.socket) -> None:
        with ending(source, target):
            while True:
                reply = receive(source, REPLY_BYTES)
                stage, length = int.from_bytes(reply[10:12], "little"), int.from_bytes(reply[12:16], "little")
                target.sendall(reply + receive(source, length))
                if stage in (Stage.READY, Stage.REFUSED):
                    break
            self._frames(source, target, DOWN)

    def _frames(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        attack = self.attack if self.attack is not None and self.attack.direction == direction else None
        held: list[bytes] = []
        while frame := self._frame(source):
            self.forwarded[direction] += 1
            number = self.forwarded[direction] - 1
            if attack is None or not attack.first <= number < attack.first + attack.count:
                target.sendall(frame)
                continue
            held.append(frame)
            if len(held) == attack.count:
                self.attacked.set()
                target.sendall(b"".join(attack.change(held)))
                if attack.hang_up:
                    for sock in (source, target):
                        sock.shutdown(socket.SHUT_RDWR)
                    return

    def _frame(self, source: socket.socket) -> bytes:
        header = receive(source, HEADER.size)
        if len(header) < HEADER.size:
            return b""
        length = Header.parse(header).length
        tags = 1 + -(-length // SEGMENT_BYTES) if self.authenticated else 0
        return header + receive(source, length + tags * TAG_BYTES)


@contextmanager
def ending(source: socket.socket, target: socket.socket) -> Iterator[None]:
    """Whatever ends one half of a connection ends the other half behind the proxy too."""
    with suppress(OSError):  # a rank that failed may have gone
        yield
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        source.shutdown(socket.SHUT_RD)


@contextmanager
def intercepting(port: int, attack: Attack | None, *, authenticated: bool = True) -> Iterator[Interceptor]:
    """An interceptor of one connection to a coordinator's port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Interceptor(listener, port, attack, authenticated, threading.Event(), {UP: 0, DOWN: 0})
        thread = threading.Thread(target=found.serve)
        thread.start()
        try:
            yield found
        finally:
            thread.join(200)
            assert not thread.is_alive()


def flip(place: float, bit: int = 0) -> Change:
    """One bit of the frame, at this share of its length, is another."""

    def change(frames: list[bytes]) -> list[bytes]:
        frame = bytearray(frames[0])
        frame[min(int(place * len(frame)), len(frame) - 1)] ^= 1 << bit
        return [bytes(frame)]

    return change


def flip_payload(frames: list[bytes]) -> list[bytes]:
    """One bit of the payload is another: of a number, its sign."""
    frame = bytearray(frames[0])
    start = HEADER.size + (TAG_BYTES if len(frame) > HEADER.size + 8 * TAG_BYTES else 0)
    frame[start + 7] ^= 0x80
    return [bytes(frame)]


def flip_plain_payload(frames: list[bytes]) -> list[bytes]:
    """The same where frames have no tags."""
    frame = bytearray(frames[0])
    frame[HEADER.size + 7] ^= 0x80
    return [bytes(frame)]


def drop(frames: list[bytes]) -> list[bytes]:
    return []


def replay(frames: list[bytes]) -> list[bytes]:
    return [*frames, *frames]


def reorder(frames: list[bytes]) -> list[bytes]:
    return frames[::-1]


def replace_by_earlier(frames: list[bytes]) -> list[bytes]:
    """The last of the held frames is an earlier one again."""
    return [*frames[:-1], frames[0]]


def truncate(frames: list[bytes]) -> list[bytes]:
    """The end of the frame is missing, and what follows comes earlier."""
    return [frames[0][:-5]]


def cut_off(frames: list[bytes]) -> list[bytes]:
    """Half of the frame; to be followed by the end of the connection."""
    return [frames[0][: len(frames[0]) // 2]]


def swap_segments(frames: list[bytes]) -> list[bytes]:
    """The first two segments of a long payload, with their tags, change places."""
    start, size = HEADER.size + TAG_BYTES, SEGMENT_BYTES + TAG_BYTES
    frame = frames[0]
    assert len(frame) >= start + 2 * size
    first, second = frame[start : start + size], frame[start + size : start + 2 * size]
    return [frame[:start] + second + first + frame[start + 2 * size :]]


def strip_tags(frames: list[bytes]) -> list[bytes]:
    """The frame as it would be without authentication."""
    frame = frames[0]
    return [frame[: HEADER.size] + frame[HEADER.size + TAG_BYTES : -TAG_BYTES]]


def invent(frames: list[bytes]) -> list[bytes]:
    """A frame of the attacker's own before the real one: the header is right, the tag is a guess."""
    return [frames[0][: HEADER.size] + bytes(TAG_BYTES), *frames]
