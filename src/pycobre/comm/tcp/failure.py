"""Why a collective over tcp did not complete, as data from an engine and as a sentence."""

from __future__ import annotations

import enum
import errno
import os
from typing import NamedTuple

from pycobre.comm import failure as failure_text
from pycobre.comm.tcp.wire import MAX_TEXT_BYTES, NOBODY, Header, Kind, Operation

__all__ = ["CommFailure", "FailureKind", "explain", "reported"]


class FailureKind(enum.IntEnum):
    """The ways in which a collective fails."""

    DISCONNECTED = 1  # the connection ended; `number` is the errno, 0 for an orderly end
    REPORTED = 2  # a FAILURE frame: `rank` is the one it blames, `data` its text
    SHUTDOWN = 3  # the peer closed its communicator; `number` is how many collectives it made
    MISMATCH = 4  # the peer makes another call; `data` is its header and ours
    UNEXPECTED_FRAME = 5  # a frame that cannot be; `data` is its header
    TIMEOUT = 6  # nothing was heard from the peer for the whole timeout
    INTERRUPTED = 7  # another thread, or a signal handler, aborted
    UNAUTHENTIC = 8  # a tag was wrong: the bytes are not those that the peer sent next


class CommFailure(NamedTuple):
    """Why a collective did not complete: what, with which peer, and the details."""

    kind: int
    rank: int
    number: int = 0
    data: bytes = b""


def reported(rank: int | None, text: str) -> CommFailure:
    """A failure attributed to `rank`, with the text that all ranks will raise."""
    return CommFailure(
        FailureKind.REPORTED, NOBODY if rank is None else rank, 0, text.encode()[:MAX_TEXT_BYTES]
    )


def explain(
    failure: CommFailure, my_rank: int, addresses: dict[int, str], timeout_s: float
) -> tuple[int | None, str]:
    """The rank at fault, where one is, and a sentence that says what happened and what to do."""
    rank = failure.rank
    who = failure_text.rank_name(rank, address=addresses.get(rank, ""))
    match failure.kind:
        case FailureKind.REPORTED:
            text = failure.data.decode(errors="replace") or "a rank gave up and did not say why"
            return None if rank == NOBODY else rank, text
        case FailureKind.SHUTDOWN:
            return rank, failure_text.left(who, failure.number)
        case FailureKind.MISMATCH:
            theirs, ours = Header.parse(failure.data), Header.parse(failure.data[64:])
            return None, _disagreement(ours, theirs, my_rank, rank)
        case FailureKind.UNEXPECTED_FRAME:
            header = Header.parse(failure.data)
            place = (header.kind, header.block, header.offset, header.length)
            return rank, failure_text.unexpected_frame(who, *place)
        case FailureKind.TIMEOUT:
            return rank, failure_text.silent(who, timeout_s, "COBRE_TCP_TIMEOUT_SECS")
        case FailureKind.UNAUTHENTIC:
            # The star has one connection per worker, so the worker's number names it on every rank.
            return max(rank, my_rank), failure_text.unauthentic(f"rank {my_rank}", who)
        case FailureKind.INTERRUPTED:
            return my_rank, f"rank {my_rank} was interrupted"
    if failure.number in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH):
        return rank, failure_text.unreachable(who, os.strerror(failure.number))
    ended = "the connection was closed without a shutdown message"
    return rank, failure_text.gone(who, os.strerror(failure.number) if failure.number else ended)


def _disagreement(ours: Header, theirs: Header, my_rank: int, their_rank: int) -> str:
    unseen = "fields in the dtype" if ours.call.fields != theirs.call.fields else "counts"
    return failure_text.different_calls(my_rank, _call_text(ours), their_rank, _call_text(theirs), unseen)


def _call_text(header: Header) -> str:
    if header.call.operation == Operation.ALLGATHERV and header.kind in (Kind.CALL, Kind.RESULT):
        return f"{header.call} with {header.offset} of its own"
    return str(header.call)
