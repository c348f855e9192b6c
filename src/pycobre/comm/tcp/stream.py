"""One connection to a peer, non-blocking: frames in through a small buffer, frames out from a queue."""

from __future__ import annotations

import socket
from collections import deque
from itertools import islice

from pycobre.comm.tcp.wire import HEADER, Header

__all__ = ["Stream", "WrongTag"]

_BUFFER_BYTES = 64 * 1024
_PARTS = 8  # pieces of memory that one system call is given: a whole small frame, also with tags


class WrongTag(ConnectionError):
    """What arrived is not what the peer sent next; never leaves this package."""


class Stream:
    """Reads and writes frames on a connected socket without ever blocking.

    Small frames are read through a buffer, many bytes at a time; large payloads go straight from the socket
    to where they belong, and out of the arrays they are in. A broken connection shows when reading
    (`EOFError` or `OSError`); a failed write only makes the stream mute, because what the peer sent before
    it disconnected, which may be the reason, is still to be read.
    """

    sealed = False
    header_bytes = HEADER.size

    def __init__(self, sock: socket.socket, rank: int) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.rank = rank
        self.mute = False
        self.targets: list[memoryview] = []
        self.counted = 0  # bytes of payloads that may be used
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = 0
        self._end = 0
        self._queue: deque[memoryview] = deque()

    @property
    def filling(self) -> bool:
        """Whether bytes of a payload are still to come."""
        return bool(self.targets)

    @property
    def unsent(self) -> bool:
        """Whether something is queued that has not gone out."""
        return bool(self._queue)

    def next_header(self, *, greedy: bool) -> Header | None:
        """The header of the next frame once all of it has arrived, else None.

        `greedy` reads ahead into the buffer; without it not a byte of the payload is read, so that a large
        one need not be copied out of the buffer.
        """
        missing = self.header_bytes - (self._end - self._start)
        if missing > 0:
            if self._start == self._end:
                self._start = self._end = 0
            elif self._start:
                self._buffer[: self._end - self._start] = bytes(self._buffer[self._start : self._end])
                self._start, self._end = 0, self._end - self._start
            limit = _BUFFER_BYTES if greedy else self._end + missing
            got = self._receive(self._buffer[self._end : limit])
            self._end += got
            if got < missing:
                return None
        data = self._buffer[self._start : self._start + self.header_bytes]
        self._check_header(data)
        self._start += self.header_bytes
        return Header.parse(data)

    def fill_targets(self) -> int:
        """Move what has arrived of the payload into `targets`; returns the number of bytes moved."""
        moved = 0
        while self.targets:
            wanted = len(self.targets[0])
            got = self._fill(self.targets, wanted)
            moved += got
            if got < wanted:
                break
        self.counted += moved
        return moved

    def queue(self, *parts: bytes | memoryview) -> None:
        """Append to what is to be sent; the memory must stay as it is until it has gone."""
        if not self.mute:
            self._queue.extend(memoryview(part) for part in parts if len(part))

    def flush(self) -> int:
        """Send what the connection takes now; returns the number of bytes."""
        sent = 0
        while self._queue:
            try:
                step = self._send(self._queue)
            except OSError:
                self.mute = True
                self._queue.clear()
                break
            if not step:
                break
            sent += step
            while step and step >= len(self._queue[0]):
                step -= len(self._queue.popleft())
            if step:
                self._queue[0] = self._queue[0][step:]
        return sent

    def close(self) -> None:
        """Close the socket."""
        self._queue.clear()
        self.sock.close()

    def _check_header(self, data: memoryview) -> None:
        """Where frames carry tags: raise unless that of the header is right."""

    def _fill(self, targets: list[memoryview], limit: int) -> int:
        """Move up to `limit` bytes into the first target, from what was read ahead or else from the socket."""
        target = targets[0][:limit]
        buffered = min(self._end - self._start, len(target))
        if buffered:
            target[:buffered] = self._buffer[self._start : self._start + buffered]
            self._start += buffered
            got = buffered
        else:
            got = self._receive(target)
        if got == len(targets[0]):
            targets.pop(0)
        elif got:
            targets[0] = targets[0][got:]
        return got

    def _receive(self, view: memoryview) -> int:
        try:
            got = self.sock.recv_into(view)
        except BlockingIOError:
            return 0
        if not got:
            raise EOFError
        return got

    def _send(self, parts: deque[memoryview]) -> int:
        try:
            return self.sock.sendmsg(list(islice(parts, _PARTS)))
        except BlockingIOError:
            return 0
