"""From the native channel's account of a failure to the exception that says it in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycobre.errors import CollectiveFailed

if TYPE_CHECKING:
    from pycobre._native.shm import Call, Failure

# The numbers are those of the native module's headers.
BARRIER, ALLGATHERV, ALLREDUCE, BROADCAST, START, REGION, FENCE = range(1, 8)
_OPERATIONS = {
    BARRIER: "barrier",
    ALLGATHERV: "allgatherv",
    ALLREDUCE: "allreduce",
    BROADCAST: "broadcast",
    START: "the start",
    REGION: "create_shared_region",
    FENCE: "fence",
}
_REDUCTIONS = {1: "sum", 2: "min", 3: "max"}
_DEAD, _LEFT, _STALLED, _ABORTED, _INTERRUPTED, _MISMATCH, _UNREADABLE = range(1, 8)
_TYPE_CLASSES = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}

# The collectives of a view that `split_local` returned are numbered from here on, in steps of this.
VIEW_SEQUENCES = 1 << 48


def collective_failed(operation: str, failure: Failure, rank: int, timeout_s: float) -> CollectiveFailed:
    """The exception rank `rank` raises in `operation` for a failure that its channel reported."""
    kind, culprit, author, pid, reason, mine, theirs = failure
    who = f"rank {culprit} (process {pid})"
    named: int | None = culprit
    if kind == _DEAD:
        message = f"{who} ended without closing its communicator. Look for its error or the signal it got."
    elif kind == _LEFT:
        message = f"{who} closed its communicator while others still wait for it in a collective."
    elif kind == _STALLED and culprit == rank:
        message = f"rank {author} gave up waiting for this rank, {who}."
    elif kind == _STALLED:
        message = (
            f"{who} lives but did not come within {timeout_s:g} s. It is stopped, overloaded or waiting for "
            "something else; COBRE_SHM_TIMEOUT_SECS sets the patience."
        )
    elif kind == _ABORTED:
        message = f"rank {culprit} aborted: {reason}"
    elif kind == _INTERRUPTED:
        message = f"{who} left a collective because a signal handler raised while it waited."
    elif kind == _UNREADABLE:
        message = f"the memory of {who} can no longer be read. Its permissions changed during the run."
    else:
        assert kind == _MISMATCH, kind
        assert mine is not None
        assert theirs is not None
        message = _describe_mismatch(rank, culprit, mine, theirs)
        named = None
    return CollectiveFailed(operation, 0, message, rank=named)


def _describe_mismatch(rank: int, peer: int, mine: Call, theirs: Call) -> str:
    own, other = _describe_call(mine), _describe_call(theirs)
    if own == other:  # what differs is not in the words
        other += " with other counts" if mine[0] == ALLGATHERV else " with another dtype"
    return (
        f"the ranks do not call the same collective: rank {rank} called {own}, rank {peer} called {other}. "
        "All ranks must make the same calls in the same order."
    )


def _describe_call(call: Call) -> str:
    op, reduce, root, tag, sequence, count = call
    view, number = divmod(sequence, VIEW_SEQUENCES)
    name = _OPERATIONS.get(op, f"operation {op}")
    details = []
    if op in (ALLGATHERV, ALLREDUCE, BROADCAST, REGION):
        details.append(f"{count} of {_dtype_name(tag)}")
    if op == ALLREDUCE:
        details.append(_REDUCTIONS.get(reduce, "?"))
    if op == BROADCAST:
        details.append(f"root {root}")
    where = f"collective {number}" + (f" of local view {view}" if view else "")
    return f"{name}({', '.join(details)}) as {where}"


def _dtype_name(tag: int) -> str:
    if tag >> 31:
        return f"structured dtype #{tag & 0x7FFFFFFF:08x}"
    letter, itemsize = chr(tag >> 8), tag & 0xFF
    return "bool" if letter == "b" else f"{_TYPE_CLASSES[letter]}{itemsize * 8}"
