"""Why a collective over tcp did not complete, as data from the star and as a sentence for people."""

from __future__ import annotations

import enum
import errno
import os
from typing import NamedTuple

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
    who = f"rank {rank}" + (f" ({addresses[rank]})" if rank in addresses else "")
    match trouble.what:
        case What.FAILURE:
            text = trouble.data.decode(errors="replace") or "a rank gave up and did not say why"
            return None if rank == NOBODY else rank, text
        case What.SHUTDOWN:
            made = f"{trouble.number} collective{'' if trouble.number == 1 else 's'}"
            return rank, f"{who} closed its communicator after {made}. Every rank must make the same ones."
        case What.DISAGREEMENT:
            theirs, ours = Header.parse(trouble.data), Header.parse(trouble.data[64:])
            return None, _disagreement(ours, theirs, my_rank, rank)
        case What.MALFORMED:
            header = Header.parse(trouble.data)
            return rank, (
                f"{who} sent a frame that has no place here (kind {header.kind}, block {header.block}, "
                f"offset {header.offset}, length {header.length}). Do all ranks run the same pycobre?"
            )
        case What.SILENCE:
            return rank, (
                f"nothing was heard from {who} for {timeout_s:g} s: it is stopped, stuck or still computing. "
                "If it is only slow, raise COBRE_TCP_TIMEOUT_SECS."
            )
        case What.INTERRUPTED:
            return my_rank, f"rank {my_rank} was interrupted"
    if trouble.number in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH):
        return rank, f"the host of {who} no longer answers ({os.strerror(trouble.number)})"
    how = os.strerror(trouble.number) if trouble.number else "the connection ended without a word"
    return rank, f"{who} is gone: {how}. The end of that rank's own output may say why."


def _disagreement(ours: Header, theirs: Header, my_rank: int, their_rank: int) -> str:
    mine, other = _call_text(ours), _call_text(theirs)
    text = (
        f"the ranks do not make the same call: rank {my_rank} calls {mine}, rank {their_rank} calls {other}"
    )
    if mine == other:
        fields = ours.call.fields != theirs.call.fields
        text += f", with other {'fields in the dtype' if fields else 'counts'}"
    return text + ". Every rank must make the same collectives in the same order."


def _call_text(header: Header) -> str:
    if header.call.operation == Operation.ALLGATHERV and header.kind in (Kind.CALL, Kind.RESULT):
        return f"{header.call} with {header.offset} of its own"
    return str(header.call)
