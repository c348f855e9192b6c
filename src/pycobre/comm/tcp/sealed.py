"""Frames with tags: what goes over a connection whose two ends agreed to authenticate frames.

    header, 64 bytes                      as `wire` draws it
    tag of the header, 16 bytes
    segment of the payload                256 KiB, or the rest                   ┐ for each segment;
    tag of the segment, 16 bytes                                                 ┘ none if the payload is empty

Tags are numbered through the whole connection in each direction (`mac`). A header is looked at only after its tag was
found right, and bytes of the payload count as received only after that of their segment was: they are in the result
array before, but nothing is folded, forwarded or returned that was not verified. A wrong tag raises `WrongTag`.
"""

from __future__ import annotations

import socket
from collections import deque

from pycobre.comm.tcp.mac import TAG_BYTES, Mac, SessionKeys
from pycobre.comm.tcp.stream import Stream, WrongTag
from pycobre.comm.tcp.wire import HEADER, Header

__all__ = ["SEGMENT_BYTES", "SealedStream", "sealed"]

SEGMENT_BYTES = 256 * 1024


class SealedStream(Stream):
    """A stream whose frames carry tags."""

    sealed = True
    header_bytes = HEADER.size + TAG_BYTES

    def __init__(self, sock: socket.socket, rank: int, keys: SessionKeys) -> None:
        super().__init__(sock, rank)
        self._mac_in = Mac(keys.receive)
        self._mac_out = Mac(keys.send)
        self._unsealed: deque[memoryview] = deque()  # payload that has no tag yet
        self._payload_left = 0
        self._segment = 0  # bytes of the segment under way that have been received
        self._stretch: memoryview | None = (
            None  # where those of one target begin that have not been added to the tag
        )
        self._stretch_bytes = 0
        self._tag = bytearray(TAG_BYTES)
        self._tag_targets: list[memoryview] = []  # where the tag goes, once the segment is complete

    @property
    def filling(self) -> bool:
        """Whether bytes of a payload, or the tag that makes them count, are still to come."""
        return bool(self.targets or self._tag_targets)

    @property
    def unsent(self) -> bool:
        """Whether something is queued that has not gone out."""
        return bool(self._queue or self._unsealed)

    def next_header(self, *, greedy: bool) -> Header | None:
        """The header of the next frame once it has arrived with its tag and the tag is right, else None."""
        header = super().next_header(greedy=greedy)
        if header is not None:
            self._payload_left = header.length
        return header

    def fill_targets(self) -> int:
        """Move what has arrived into `targets`, count what is verified; returns the number of bytes moved."""
        moved = 0
        while self.filling:
            if self._tag_targets:
                got = self._fill(self._tag_targets, TAG_BYTES)
                if not self._tag_targets:
                    self._verify_segment()
            else:
                target = self.targets[0]
                got = self._fill(self.targets, SEGMENT_BYTES - self._segment)
                self._segment += got
                self._payload_left -= got
                complete = self._segment == SEGMENT_BYTES or not self._payload_left
                self._take_in(target, got, done=complete or got == len(target))
                if complete:
                    self._tag_targets = [memoryview(self._tag)]
            if not got:
                break
            moved += got
        return moved

    def queue(self, *parts: bytes | memoryview) -> None:
        """Append a frame to what is to be sent; its payload must stay as it is until it has gone."""
        if self.mute:
            return
        first = memoryview(parts[0])
        while self._unsealed:  # a frame before this one: tags are numbered in the order of sending
            self._seal_segment()
        self._mac_out.add(first[: HEADER.size])
        self._queue.append(memoryview(bytes(first[: HEADER.size]) + self._mac_out.tag()))
        payload = (first[HEADER.size :], *(memoryview(part) for part in parts[1:]))
        self._unsealed.extend(part for part in payload if len(part))
        if self._unsealed:
            self._seal_segment()

    def flush(self) -> int:
        """Send what the connection takes now; returns the number of bytes."""
        sent = super().flush()
        while self._unsealed and not self._queue and not self.mute:
            self._seal_segment()
            sent += super().flush()
        if self.mute:
            self._unsealed.clear()
        return sent

    def _check_header(self, data: memoryview) -> None:
        self._mac_in.add(data[: HEADER.size])
        if not self._mac_in.verify(data[HEADER.size :]):
            raise WrongTag

    def _take_in(self, target: memoryview, got: int, *, done: bool) -> None:
        """Note `got` more bytes at the start of `target`; long stretches are quicker to add than many short ones."""
        if self._stretch is None:
            self._stretch = target
        self._stretch_bytes += got
        if done:
            self._mac_in.add(self._stretch[: self._stretch_bytes])
            self._stretch, self._stretch_bytes = None, 0

    def _verify_segment(self) -> None:
        if not self._mac_in.verify(self._tag):
            raise WrongTag
        self.counted += self._segment
        self._segment = 0

    def _seal_segment(self) -> None:
        """Queue the next segment of the payload and its tag."""
        left = SEGMENT_BYTES
        while left and self._unsealed:
            part = self._unsealed.popleft()
            if len(part) > left:
                self._unsealed.appendleft(part[left:])
                part = part[:left]
            self._mac_out.add(part)
            self._queue.append(part)
            left -= len(part)
        self._queue.append(memoryview(self._mac_out.tag()))


def sealed(mac: Mac, frame: bytes) -> bytes:
    """The bytes of one whole frame with its tags: what a peer sends, for tests and for reading the format."""
    mac.add(frame[: HEADER.size])
    parts = [frame[: HEADER.size], mac.tag()]
    for start in range(HEADER.size, len(frame), SEGMENT_BYTES):
        segment = frame[start : start + SEGMENT_BYTES]
        mac.add(segment)
        parts += [segment, mac.tag()]
    return b"".join(parts)
