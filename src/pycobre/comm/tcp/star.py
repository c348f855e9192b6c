"""The collectives of the star, in Python: what `pycobre._native.tcp` does where it is missing, and over TLS.

All four collectives are one exchange. The result of a collective consists of blocks, and each worker is sent
every block but its own:

    allgatherv                 block r is rank r's contribution
    broadcast                  the only block belongs to the root
    barrier                    there are none
    small allreduce            block r is rank r's contribution; every rank folds them
    large allreduce            the only block is the result, folded window by window by the coordinator

A worker sends its CALL with its contribution and, while that still goes out, takes in what comes down. The
coordinator takes in all contributions at once and forwards what it has of each to whoever lacks it, in any
order of arrival. The end of each worker's result is held back until the calls of all *other* workers are
there and agree: so nobody leaves a collective that not all have entered, and with two ranks nobody waits for
a round trip.
"""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from pycobre.comm.fold import ReduceOp, fold_into
from pycobre.comm.tcp.failure import CommFailure, FailureKind
from pycobre.comm.tcp.stream import Stream, WrongTag
from pycobre.comm.tcp.wire import (
    CALL_BYTES,
    MAX_TEXT_BYTES,
    REDUCE_CODES,
    SMALL_BYTES,
    Call,
    DtypeCode,
    Header,
    Kind,
    Operation,
    folds_at_coordinator,
)

__all__ = [
    "EMPTY",
    "GONE",
    "Star",
    "WorkerStar",
    "as_bytes",
    "connection_failure",
    "control",
    "final_message",
    "wait_for",
]

Array = np.ndarray[Any, Any]

_SPINS = 200
# On a crowded machine a yield lasts somebody else's whole time slice: then sleep at once, for some time.
_CROWDED_S = 0.0005
_CROWDED_WAITS = 100
# A sleep is a slice; if it took much longer, this process was stopped meanwhile.
_STOPPED_S = 0.5
_SLICE_S = 0.1
_SETTLE_S = 0.25
GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_REDUCE_OPS = {code: op for op, code in REDUCE_CODES.items()}
EMPTY = memoryview(b"")


class Star(ABC):
    """What both ends share: the four collectives as blocks, waiting, and frames besides collectives."""

    def __init__(self, rank: int, size: int, streams: Iterable[Stream], timeout_s: float) -> None:
        self._rank = rank
        self._size = size
        self._streams = {stream.rank: stream for stream in streams}
        self._timeout_s = timeout_s
        # Time is what this collective has waited: while the process, and probably the job, is stopped it stands.
        self._heard: dict[int, float] = {}
        self._looked = 0.0
        self._waited = 0.0
        self._idle = 0
        self._crowded = 0
        self._interrupted = False

    def allgatherv(
        self,
        sequence: int,
        code: DtypeCode,
        layout: int,
        send: Array,
        recv: Array,
        counts: tuple[int, ...],
        displs: tuple[int, ...],
    ) -> CommFailure | None:
        """Move every rank's block everywhere."""
        call = _call(Operation.ALLGATHERV, code, sequence, sum(counts), layout=layout)
        out = as_bytes(recv)
        width = code.itemsize
        blocks = [
            out[displ * width : (displ + count) * width] for displ, count in zip(displs, counts, strict=True)
        ]
        mine = as_bytes(send)
        blocks[self._rank][:] = mine
        return self._exchange(call, mine, blocks)

    def allreduce(
        self, sequence: int, code: DtypeCode, send: Array, recv: Array, reduce: int
    ) -> CommFailure | None:
        """Fold every rank's values in rank order."""
        call = _call(Operation.ALLREDUCE, code, sequence, send.size, reduce=reduce)
        op = _REDUCE_OPS[reduce]
        mine = send.reshape(-1)
        result = recv.reshape(-1)
        if folds_at_coordinator(send.nbytes, self._size):
            return self._fold_centrally(call, mine, result, op)
        parts = np.empty((self._size, mine.size), mine.dtype)
        parts[self._rank] = mine
        failure = self._exchange(call, as_bytes(mine), [as_bytes(part) for part in parts])
        if failure is None:
            fold_into(result, parts, op)
        return failure

    def broadcast(self, sequence: int, code: DtypeCode, buf: Array, root: int) -> CommFailure | None:
        """Move the root's block everywhere."""
        call = _call(Operation.BROADCAST, code, sequence, buf.size, root=root)
        view = as_bytes(buf)
        blocks = [view if rank == root else EMPTY for rank in range(self._size)]
        return self._exchange(call, view if self._rank == root else EMPTY, blocks)

    def barrier(self, sequence: int) -> CommFailure | None:
        """Move nothing, but let nobody out before all are in."""
        call = _call(Operation.BARRIER, DtypeCode(0, 0, 0), sequence, 0)
        return self._exchange(call, EMPTY, [EMPTY] * self._size)

    def tell(self, rank: int, frame: bytes, timeout_s: float) -> bool:
        """Send a frame outside any collective; whether it went out."""
        stream = self._streams[rank]
        stream.queue(frame)
        deadline = time.monotonic() + timeout_s
        while stream.flush() or stream.unsent:
            left = deadline - time.monotonic()
            if left <= 0:
                stream.mute = True
                return False
            wait_for([(stream, select.POLLOUT)], left)
        return not stream.mute

    def inspect(self, rank: int) -> CommFailure | None:
        """What a peer that disconnected between collectives sent last; None if it is still connected."""
        return final_message(self._streams[rank])

    def interrupt(self) -> None:
        """Make a collective that waits in another thread give up soon."""
        self._interrupted = True

    @abstractmethod
    def _exchange(self, call: Call, mine: memoryview, blocks: list[memoryview]) -> CommFailure | None:
        """Run one collective whose blocks are known."""

    @abstractmethod
    def _fold_centrally(self, call: Call, mine: Array, result: Array, op: ReduceOp) -> CommFailure | None:
        """Run an allreduce that the coordinator folds."""

    def _begin(self) -> None:
        self._looked = 0.0
        self._waited = 0.0
        self._heard.clear()
        self._idle = 0

    def _pause(
        self, wanted: list[tuple[Stream, int]], blamed: Iterable[Stream]
    ) -> list[tuple[Stream, int]] | CommFailure:
        """Give way a few times, then sleep until something happens; whoever is silent too long is blamed."""
        now = time.monotonic()
        self._idle += 1
        if self._idle < _SPINS and not self._crowded:
            os.sched_yield()
            if time.monotonic() - now > _CROWDED_S:
                self._crowded = _CROWDED_WAITS
            return []
        self._crowded = max(0, self._crowded - 1)
        if self._interrupted:
            return CommFailure(FailureKind.INTERRUPTED, self._rank)
        if self._looked:
            self._waited += min(now - self._looked, _STOPPED_S)
        self._looked = now
        for stream in blamed:
            if self._waited - self._heard.get(stream.rank, 0.0) > self._timeout_s:
                return CommFailure(FailureKind.TIMEOUT, stream.rank)
        return wait_for(wanted, min(_SLICE_S, self._timeout_s / 20))

    def _progressed(self, stream: Stream) -> None:
        self._idle = 0
        self._heard[stream.rank] = self._waited


class WorkerStar(Star):
    """A worker's end: one stream, to the coordinator."""

    def __init__(self, rank: int, size: int, stream: Stream, timeout_s: float) -> None:
        super().__init__(rank, size, [stream], timeout_s)
        self._stream = stream

    def _fold_centrally(self, call: Call, mine: Array, result: Array, op: ReduceOp) -> CommFailure | None:
        return self._exchange(call, as_bytes(mine), [as_bytes(result)])

    def _exchange(self, call: Call, mine: memoryview, blocks: list[memoryview]) -> CommFailure | None:
        self._begin()
        stream = self._stream
        own = call.header(
            Kind.CALL, block=self._rank, offset=len(mine) // max(call.itemsize, 1), length=len(mine)
        )
        stream.queue(own, mine)
        lacking = [EMPTY if rank == self._rank else block for rank, block in enumerate(blocks)]
        left = sum(map(len, lacking))
        greedy = left <= SMALL_BYTES
        ended = False
        while True:
            moved = stream.flush()
            try:
                if stream.filling:
                    moved += stream.fill_targets()
                elif not ended:
                    header = stream.next_header(greedy=greedy)
                    if header is not None:
                        moved += 1
                        if header.kind == Kind.WAITING:
                            self._progressed(stream)
                            continue
                        failure = control(stream, header) or self._check(own, header, lacking, left)
                        if failure is not None:
                            return failure
                        stream.targets = _targets(header, lacking)
                        left -= header.length
                        ended = header.kind != Kind.CHUNK
            except (EOFError, OSError) as error:
                return connection_failure(stream, error)
            if ended and not stream.filling and not stream.unsent:
                return None
            if moved:
                self._progressed(stream)
                continue
            events = (0 if ended and not stream.filling else select.POLLIN) | (
                select.POLLOUT if stream.unsent else 0
            )
            waited = self._pause([(stream, events)], [stream])
            if isinstance(waited, CommFailure):
                return waited
            if ended and stream.mute:  # the rest of our contribution can no longer go out
                return CommFailure(FailureKind.DISCONNECTED, stream.rank)

    def _check(self, own: bytes, header: Header, lacking: list[memoryview], left: int) -> CommFailure | None:
        """Whether the frame is one that may come now; nothing is believed that this rank cannot verify."""
        if header.pack()[CALL_BYTES] != own[CALL_BYTES]:
            return CommFailure(FailureKind.MISMATCH, 0, 0, header.pack() + own)
        if header.kind == Kind.RESULT:
            fits = header.length == left
        elif header.length == 0:  # only an end may be empty
            fits = header.kind == Kind.LAST and left == 0
        elif header.kind not in (Kind.CHUNK, Kind.LAST):
            fits = False
        else:
            block = lacking[header.block] if header.block < len(lacking) else EMPTY
            fits = header.offset <= len(block) and header.length <= min(len(block) - header.offset, left)
            fits = fits and (header.kind == Kind.CHUNK or header.length == left)
        return None if fits else CommFailure(FailureKind.UNEXPECTED_FRAME, 0, 0, header.pack())


def control(stream: Stream, header: Header) -> CommFailure | None:
    """The failure that a FAILURE or SHUTDOWN frame is; None for a frame of a collective."""
    if header.kind == Kind.SHUTDOWN:
        return CommFailure(FailureKind.SHUTDOWN, stream.rank, header.call.sequence)
    if header.kind != Kind.FAILURE:
        return None
    if header.length > MAX_TEXT_BYTES:
        return CommFailure(FailureKind.UNEXPECTED_FRAME, stream.rank, 0, header.pack())
    text = bytearray(header.length)
    if text:
        stream.targets = [memoryview(text)]
    deadline = time.monotonic() + _SETTLE_S
    # Whom the frame blames is known already: a reason that breaks off is still one, unless it had to be verified.
    try:
        while stream.filling and time.monotonic() < deadline:
            if not stream.fill_targets():
                wait_for([(stream, select.POLLIN)], deadline - time.monotonic())
    except WrongTag as error:
        return connection_failure(stream, error)
    except (EOFError, OSError):
        pass
    missing = len(text) if stream.sealed and stream.filling else sum(map(len, stream.targets))
    stream.targets = []
    return CommFailure(FailureKind.REPORTED, header.block, 0, bytes(text[: len(text) - missing]))


def final_message(stream: Stream) -> CommFailure | None:
    """What a peer that disconnected between frames sent last; None if it is still connected.

    It may have entered a collective before it gave up: that call is passed over.
    """
    passed_over = memoryview(bytearray(1 << 16))
    try:
        while (header := stream.next_header(greedy=True)) is not None:
            failure = control(stream, header)
            if failure is not None:
                return failure
            left = header.length
            while left or stream.filling:
                stream.targets = [passed_over[: min(left, len(passed_over))]] if left else []
                wanted = sum(map(len, stream.targets))
                moved = stream.fill_targets()
                rest = sum(map(len, stream.targets))
                if not moved:  # it has disconnected, so all it ever sent is here
                    return CommFailure(FailureKind.DISCONNECTED, stream.rank)
                left -= wanted - rest
    except (EOFError, OSError) as error:
        return connection_failure(stream, error)
    return None


def connection_failure(stream: Stream, error: EOFError | OSError) -> CommFailure:
    """The failure that the end of a connection, or a wrong tag on it, is."""
    if isinstance(error, WrongTag):
        return CommFailure(FailureKind.UNAUTHENTIC, stream.rank)
    return CommFailure(
        FailureKind.DISCONNECTED, stream.rank, (error.errno or 0) if isinstance(error, OSError) else 0
    )


def wait_for(wanted: Iterable[tuple[Stream, int]], timeout_s: float) -> list[tuple[Stream, int]]:
    """Sleep until one of the streams is ready for its events, or is gone."""
    poller = select.poll()
    streams = {}
    for stream, events in wanted:
        streams[stream.sock.fileno()] = stream
        poller.register(stream.sock, events | GONE)
    return [(streams[fd], events) for fd, events in poller.poll(max(0.0, timeout_s) * 1000)]


def as_bytes(array: Array) -> memoryview:
    """The memory of a contiguous array of any dtype."""
    view: memoryview = array.reshape(-1).view(np.uint8).data
    return view


def _targets(header: Header, lacking: list[memoryview]) -> list[memoryview]:
    """Where the payload of a checked frame goes."""
    if header.kind == Kind.RESULT:
        return [block for block in lacking if len(block)]
    return [lacking[header.block][header.offset : header.offset + header.length]] if header.length else []


def _call(
    operation: Operation,
    code: DtypeCode,
    sequence: int,
    elements: int,
    *,
    reduce: int = 0,
    root: int = 0,
    layout: int = 0,
) -> Call:
    return Call(operation, code.letter, reduce, code.itemsize, root, code.fields, sequence, elements, layout)
