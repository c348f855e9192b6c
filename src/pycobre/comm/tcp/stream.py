"""One connection to a peer, non-blocking: frames in through a small buffer, frames out from a queue."""

from __future__ import annotations

import socket
from collections import deque

from pycobre.comm.tcp.wire import HEADER, Header

__all__ = ["Stream"]

_BUFFER_BYTES = 64 * 1024


class Stream:
    """Reads and writes frames on a connected socket without ever blocking.

    Small frames are read through a buffer, many bytes at a time; large payloads go straight from the socket
    to where they belong, and out of the arrays they are in. A broken connection shows when reading
    (`EOFError` or `OSError`); a failed write only makes the stream mute, because what the peer said before
    it went, which may be the reason, is still to be read.
    """

    def __init__(self, sock: socket.socket, rank: int) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.rank = rank
        self.mute = False
        self.targets: list[memoryview] = []
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = 0
        self._end = 0
        self._queue: deque[memoryview] = deque()

    @property
    def unsent(self) -> bool:
        """Whether something is queued that has not gone out."""
        return bool(self._queue)

    def next_header(self, *, greedy: bool) -> Header | None:
        """The header of the next frame once all of it has arrived, else None.

        `greedy` reads ahead into the buffer; without it not a byte of the payload is read, so that a large
        one need not be copied out of the buffer.
        """
        missing = HEADER.size - (self._end - self._start)
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
        header = Header.parse(self._buffer[self._start : self._end])
        self._start += HEADER.size
        return header

    def fill_targets(self) -> int:
        """Move what has arrived of the payload into `targets`; returns the number of bytes moved."""
        moved = 0
        while self.targets:
            target = self.targets[0]
            buffered = min(self._end - self._start, len(target))
            if buffered:
                target[:buffered] = self._buffer[self._start : self._start + buffered]
                self._start += buffered
                got = buffered
            else:
                got = self._receive(target)
            moved += got
            if got == len(target):
                self.targets.pop(0)
                continue
            self.targets[0] = target[got:]
            if not buffered:
                break
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
            return self.sock.sendmsg([parts[0], parts[1]] if len(parts) > 1 else [parts[0]])
        except BlockingIOError:
            return 0
