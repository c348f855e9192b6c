"""From the native channel's account of a failure to the exception that says it in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycobre.comm import failure as failure_text
from pycobre.comm.fold import REDUCE_NAMES
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
_DEAD, _LEFT, _STALLED, _ABORTED, _INTERRUPTED, _MISMATCH, _UNREADABLE = range(1, 8)
_TYPE_CLASSES = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}

# The collectives of a view that `split_local` returned are numbered from here on, in steps of this.
VIEW_SEQUENCES = 1 << 48


def collective_failed(operation: str, failure: Failure, rank: int, timeout_s: float) -> CollectiveFailed:
    """The exception rank `rank` raises in `operation` for a failure that its channel reported."""
    kind, culprit, author, pid, reason, mine, theirs = failure
    who = failure_text.rank_name(culprit, process=pid)
    named: int | None = culprit
    if kind == _DEAD:
        message = failure_text.gone(who)
    elif kind == _LEFT:
        message = failure_text.left(who, waiting="others wait for it in a collective")
    elif kind == _STALLED and culprit == rank:
        message = failure_text.given_up(who, author)
    elif kind == _STALLED:
        message = failure_text.silent(who, timeout_s, "COBRE_SHM_TIMEOUT_SECS")
    elif kind == _ABORTED:
        message = failure_text.aborted(culprit, reason)
    elif kind == _INTERRUPTED:
        message = failure_text.broke_off(who, "a collective", "a signal handler raised while it waited")
    elif kind == _UNREADABLE:
        message = failure_text.memory_unreadable(who)
    else:
        assert kind == _MISMATCH, kind
        assert mine is not None
        assert theirs is not None
        unseen = "counts" if mine[0] == ALLGATHERV else "dtypes"
        message = failure_text.different_calls(rank, _call_text(mine), culprit, _call_text(theirs), unseen)
        named = None
    return CollectiveFailed(operation, 0, message, rank=named)


def _call_text(call: Call) -> str:
    op, reduce, root, tag, sequence, count = call
    view, number = divmod(sequence, VIEW_SEQUENCES)
    name = _OPERATIONS.get(op, f"operation {op}")
    details = []
    if op in (ALLGATHERV, ALLREDUCE, BROADCAST, REGION):
        details.append(f"{count} of {_dtype_name(tag)}")
    if op == ALLREDUCE:
        details.append(REDUCE_NAMES.get(reduce, "?"))
    if op == BROADCAST:
        details.append(f"root {root}")
    return failure_text.call_text(name, number, *details, view=view)


def _dtype_name(tag: int) -> str:
    if tag >> 31:
        return f"structured dtype #{tag & 0x7FFFFFFF:08x}"
    letter, itemsize = chr(tag >> 8), tag & 0xFF
    return "bool" if letter == "b" else f"{_TYPE_CLASSES[letter]}{itemsize * 8}"
