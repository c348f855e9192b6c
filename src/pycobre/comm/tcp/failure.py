"""Why a collective over tcp did not complete, as data from the star and as a sentence for people."""

from __future__ import annotations

import enum
import errno
import os
from typing import NamedTuple

from pycobre.comm import failure as failure_text
from pycobre.comm.tcp.wire import MAX_TEXT_BYTES, NOBODY, Header, Kind, Operation

__all__ = ["Trouble", "What", "explain", "failure"]


class What(enum.IntEnum):
    """The ways in which a collective fails."""

    HANGUP = 1  # the connection ended; `number` is the errno, 0 for an orderly end
    FAILURE = 2  # a FAILURE frame: `rank` is the one it blames, `data` its text
    SHUTDOWN = 3  # the peer closed its communicator; `number` is how many collectives it made
    DISAGREEMENT = 4  # the peer makes another call; `data` is its header and ours
    MALFORMED = 5  # a frame that cannot be; `data` is its header
    SILENCE = 6  # nothing was heard from the peer for the whole timeout
    INTERRUPTED = 7  # another thread, or a signal handler, aborted
    UNAUTHENTIC = 8  # a tag was wrong: the bytes are not those that the peer sent next


class Trouble(NamedTuple):
    """Why a collective did not complete: what, with which peer, and the details."""

    what: int
    rank: int
    number: int = 0
    data: bytes = b""


def failure(rank: int | None, text: str) -> Trouble:
    """The trouble that `rank` is to blame for, in words that all ranks will raise."""
    return Trouble(What.FAILURE, NOBODY if rank is None else rank, 0, text.encode()[:MAX_TEXT_BYTES])


def explain(
    trouble: Trouble, my_rank: int, addresses: dict[int, str], timeout_s: float
) -> tuple[int | None, str]:
    """The rank at fault, where one is, and a sentence that says what happened and what to do."""
    rank = trouble.rank
    who = failure_text.rank_name(rank, address=addresses.get(rank, ""))
    match trouble.what:
        case What.FAILURE:
            text = trouble.data.decode(errors="replace") or "a rank gave up and did not say why"
            return None if rank == NOBODY else rank, text
        case What.SHUTDOWN:
            return rank, failure_text.left(who, trouble.number)
        case What.DISAGREEMENT:
            theirs, ours = Header.parse(trouble.data), Header.parse(trouble.data[64:])
            return None, _disagreement(ours, theirs, my_rank, rank)
        case What.MALFORMED:
            header = Header.parse(trouble.data)
            place = (header.kind, header.block, header.offset, header.length)
            return rank, failure_text.unexpected_frame(who, *place)
        case What.SILENCE:
            return rank, failure_text.silent(who, timeout_s, "COBRE_TCP_TIMEOUT_SECS")
        case What.UNAUTHENTIC:
            # The star has one connection per worker, so the worker's number names it on every rank.
            return max(rank, my_rank), failure_text.unauthentic(f"rank {my_rank}", who)
        case What.INTERRUPTED:
            return my_rank, f"rank {my_rank} was interrupted"
    if trouble.number in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH):
        return rank, failure_text.unreachable(who, os.strerror(trouble.number))
    ended = "the connection was closed without a shutdown message"
    return rank, failure_text.gone(who, os.strerror(trouble.number) if trouble.number else ended)


def _disagreement(ours: Header, theirs: Header, my_rank: int, their_rank: int) -> str:
    unseen = "fields in the dtype" if ours.call.fields != theirs.call.fields else "counts"
    return failure_text.different_calls(my_rank, _call_text(ours), their_rank, _call_text(theirs), unseen)


def _call_text(header: Header) -> str:
    if header.call.operation == Operation.ALLGATHERV and header.kind in (Kind.CALL, Kind.RESULT):
        return f"{header.call} with {header.offset} of its own"
    return str(header.call)
