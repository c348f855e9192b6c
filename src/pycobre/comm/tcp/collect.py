"""The coordinator's end of the star, in Python: take in, fold, forward."""

from __future__ import annotations

import select
import time

import numpy as np

from pycobre.comm.fold import ReduceOp, fold_into
from pycobre.comm.tcp.failure import CommFailure, FailureKind
from pycobre.comm.tcp.star import (
    EMPTY,
    GONE,
    Array,
    Star,
    as_bytes,
    connection_failure,
    control,
    final_message,
    wait_for,
)
from pycobre.comm.tcp.stream import Stream
from pycobre.comm.tcp.wire import SMALL_BYTES, Call, Kind

__all__ = ["CoordinatorStar"]

CHUNK_BYTES = 1024 * 1024  # of a block that is still coming in, at least so much is forwarded at once,
MAX_CHUNK_BYTES = 4 * 1024 * 1024  # and at most so much: a failure can only be told after a whole chunk
WINDOW_BYTES = 256 * 1024
_SETTLE_S = 0.25


class CoordinatorStar(Star):
    """A stream to every worker."""

    def _exchange(self, call: Call, mine: memoryview, blocks: list[memoryview]) -> CommFailure | None:
        return self._run(_Collective(call, list(self._streams.values()), blocks))

    def _fold_centrally(self, call: Call, mine: Array, result: Array, op: ReduceOp) -> CommFailure | None:
        blocks = [as_bytes(result)] + [EMPTY] * (self._size - 1)
        fold = _CentralFold(mine, result, op, self._size - 1)
        return self._run(_Collective(call, list(self._streams.values()), blocks, fold))

    def _run(self, collective: _Collective) -> CommFailure | None:
        self._begin()
        say_at = self._timeout_s / 10
        while True:
            progressed, failure = collective.step()
            for stream in progressed:
                self._progressed(stream)
            if failure is None and collective.complete:
                return None
            if failure is None and not progressed:
                waited = self._pause(collective.wanted(), collective.awaited())
                if isinstance(waited, CommFailure):
                    failure = waited
                else:
                    failure = collective.explain(waited)
                    if self._waited > say_at:
                        say_at = self._waited + self._timeout_s / 4
                        collective.keep_waiting()
            if failure is not None:
                self._settle()
                return failure

    def _settle(self) -> None:
        """Finish frames that are half sent, so that the reason can follow them."""
        deadline = time.monotonic() + _SETTLE_S
        while unsent := [stream for stream in self._streams.values() if stream.flush() or stream.unsent]:
            left = deadline - time.monotonic()
            if left <= 0:
                for stream in unsent:
                    stream.mute = True
                return
            wait_for([(stream, select.POLLOUT) for stream in unsent], left)


class _CentralFold:
    """A large allreduce, window by window, so that no more than a window per worker is held."""

    def __init__(self, mine: Array, result: Array, op: ReduceOp, workers: int) -> None:
        self._mine = mine
        self._result = result
        self._op = op
        self._step = max(1, WINDOW_BYTES // mine.itemsize)
        self._staged = np.empty((workers, min(self._step, mine.size)), mine.dtype)
        self._start = 0

    @property
    def _count(self) -> int:
        return min(self._step, self._mine.size - self._start)

    def target(self, worker: int) -> memoryview:
        """Where this window of a worker's contribution goes; empty after the last window."""
        return as_bytes(self._staged[worker, : self._count])

    def fold(self) -> int:
        """Fold this window, go to the next, and return how many bytes of the result are there."""
        window = slice(self._start, self._start + self._count)
        parts = [self._mine[window], *self._staged[:, : self._count]]
        fold_into(self._result[window], parts, self._op)
        self._start = window.stop
        return self._start * self._mine.itemsize


class _Leg:
    """One worker's share in a collective: what has come from it and gone to it."""

    def __init__(self, stream: Stream, blocks: list[memoryview]) -> None:
        self.stream = stream
        self.entered = False
        self.missing = 0  # bytes of its contribution
        self.sent = [0] * len(blocks)
        self.owed = sum(len(block) for rank, block in enumerate(blocks) if rank != stream.rank)
        self.ended = False  # the frame that ends the collective is queued
        self.whole = False  # that frame has gone: whether it is still there is no business of this collective

    @property
    def taken(self) -> bool:
        return self.entered and not self.missing

    @property
    def done(self) -> bool:
        """Whether this worker has given and got everything."""
        return self.taken and (self.whole or (self.ended and not self.stream.unsent))

    @property
    def expects_input(self) -> bool:
        """Whether the next thing must come from this worker; when folding, one ahead of the others waits."""
        return not self.entered or self.stream.filling


class _Collective:
    """One collective under way."""

    def __init__(
        self, call: Call, streams: list[Stream], blocks: list[memoryview], fold: _CentralFold | None = None
    ) -> None:
        self._call = call
        self._blocks = blocks
        self._fold = fold
        self._small = fold is None and sum(map(len, blocks)) <= SMALL_BYTES
        self._ready = [len(blocks[0]) if fold is None else 0] + [0] * (len(blocks) - 1)
        self._legs = [_Leg(stream, blocks) for stream in streams]
        self._absent = len(streams)

    @property
    def complete(self) -> bool:
        """Whether everything has come in and gone out."""
        return all(leg.done and not leg.stream.unsent for leg in self._legs)

    def step(self) -> tuple[list[Stream], CommFailure | None]:
        """Do what can be done without waiting; which streams moved, and what went wrong."""
        progressed: list[Stream] = []
        for leg in self._legs:
            if not leg.taken:
                try:
                    moved, failure = self._take(leg)
                except (EOFError, OSError) as error:
                    moved, failure = True, connection_failure(leg.stream, error)
                if failure is not None:
                    return progressed, failure
                if moved:
                    progressed.append(leg.stream)
        self._advance_fold()
        for leg in self._legs:
            if not leg.ended and not leg.stream.unsent:
                self._forward(leg)
            if leg.stream.flush():
                progressed.append(leg.stream)
            if leg.stream.mute and leg.taken and not leg.whole:
                return progressed, final_message(leg.stream) or CommFailure(
                    FailureKind.DISCONNECTED, leg.stream.rank
                )
        return progressed, None

    def wanted(self) -> list[tuple[Stream, int]]:
        """What to wait for. Of a worker that has all it needs not even its end: it may close and go."""
        return [
            (
                leg.stream,
                (select.POLLIN if leg.expects_input else 0) | (select.POLLOUT if leg.stream.unsent else 0),
            )
            for leg in self._legs
            if not leg.done
        ]

    def awaited(self) -> list[Stream]:
        """The workers without whom there is no going on."""
        return [leg.stream for leg in self._legs if leg.expects_input or leg.stream.unsent]

    def explain(self, ready: list[tuple[Stream, int]]) -> CommFailure | None:
        """The failure with a worker that has given its contribution, has no result, and is gone."""
        for stream, events in ready:
            leg = next(leg for leg in self._legs if leg.stream is stream)
            if events & GONE and not leg.expects_input:
                failure = (
                    final_message(stream) if leg.taken else CommFailure(FailureKind.DISCONNECTED, stream.rank)
                )
                if failure is not None:
                    return failure
        return None

    def keep_waiting(self) -> None:
        """Tell those who have entered that the coordinator is here and waits for others.

        One that has its result may be in the next collective, and would blame this rank for the silence. One whose
        bytes are awaited is not told: it is what the coordinator waits for, and what is sent to it would count as
        its activity, so that it could stop in the middle of its contribution and never be blamed.
        """
        for leg in self._legs:
            if not leg.expects_input and not leg.stream.unsent:
                leg.whole = leg.ended
                leg.stream.queue(self._call.header(Kind.WAITING))

    def _take(self, leg: _Leg) -> tuple[bool, CommFailure | None]:
        stream = leg.stream
        if not leg.entered:
            header = stream.next_header(greedy=self._small)
            if header is None:
                return False, None
            expected = self._contribution(stream.rank)
            failure = control(stream, header)
            if failure is None and header.kind != Kind.CALL:
                failure = CommFailure(FailureKind.UNEXPECTED_FRAME, stream.rank, 0, header.pack())
            if failure is None and (header.call != self._call or header.length != expected):
                failure = CommFailure(
                    FailureKind.MISMATCH, stream.rank, 0, header.pack() + self._header(Kind.CALL)
                )
            if failure is not None:
                return True, failure
            leg.entered = True
            leg.missing = expected
            self._absent -= 1
            self._aim(leg)
            return True, None
        before = stream.counted
        moved = stream.fill_targets()
        leg.missing -= stream.counted - before
        if self._fold is None:
            self._ready[stream.rank] += stream.counted - before
        return moved > 0, None

    def _header(self, kind: Kind, length: int = 0) -> bytes:
        own = len(self._blocks[0]) // max(self._call.itemsize, 1)
        return self._call.header(kind, offset=own, length=length)

    def _contribution(self, rank: int) -> int:
        """How many bytes a worker sends with its call."""
        return len(self._blocks[0]) if self._fold is not None else len(self._blocks[rank])

    def _aim(self, leg: _Leg) -> None:
        rank = leg.stream.rank
        target = self._blocks[rank] if self._fold is None else self._fold.target(rank - 1)
        leg.stream.targets = [target] if len(target) else []

    def _advance_fold(self) -> None:
        if self._fold is None or self._absent or any(leg.stream.filling for leg in self._legs):
            return
        if self._ready[0] < len(self._blocks[0]):
            self._ready[0] = self._fold.fold()
            for leg in self._legs:
                self._aim(leg)

    def _forward(self, leg: _Leg) -> None:
        """Queue the next frame for a worker, if there is one that may go."""
        rank = leg.stream.rank
        others_entered = self._absent == (0 if leg.entered else 1)
        if self._small:
            blocks = [block for other, block in enumerate(self._blocks) if other != rank]
            ready = all(
                self._ready[other] == len(block) for other, block in enumerate(self._blocks) if other != rank
            )
            if others_entered and ready:
                leg.stream.queue(self._header(Kind.RESULT, leg.owed), b"".join(blocks))
                leg.ended = True
            return
        for other, block in enumerate(self._blocks):
            start, there = leg.sent[other], self._ready[other]
            length = min(there - start, MAX_CHUNK_BYTES)
            if other == rank or not length or (length < CHUNK_BYTES and there < len(block)):
                continue
            leg.ended = length == leg.owed
            if leg.ended and not others_entered:
                leg.ended = False
                return
            kind = Kind.LAST if leg.ended else Kind.CHUNK
            header = self._call.header(kind, block=other, offset=start, length=length)
            leg.stream.queue(header, block[start : start + length])
            leg.sent[other] += length
            leg.owed -= length
            return
        if not leg.owed and others_entered:
            leg.stream.queue(self._call.header(Kind.LAST))
            leg.ended = True
