"""What can go wrong between ranks: each kind of failure in one sentence, the same on every backend.

`who` names a rank as its backend knows it (`rank_name`): with its process on one machine, with its address over a
network. docs/guides/why-did-my-run-stop.md quotes these sentences and says what to do.
"""

from __future__ import annotations

__all__ = [
    "MONITOR_REPORT",
    "aborted",
    "broke_off",
    "call_text",
    "closed_in_collective",
    "did_not_end",
    "different_calls",
    "given_up",
    "gone",
    "left",
    "memory_unreadable",
    "outlived_the_job",
    "progress",
    "rank_name",
    "silent",
    "stopped",
    "unauthentic",
    "unexpected_frame",
    "unreachable",
]

_SAME_CALLS = "All ranks must make the same collectives in the same order."
_WITHOUT_CLOSING = "its process ended without closing its communicator"

#: What the MPI failure monitor, a program of its own, prints about the first rank that died.
MONITOR_REPORT = "pycobre: rank {rank} (process {process} on {host}) died, and the job with it"


def rank_name(rank: int, *, process: int | None = None, host: str = "", address: str = "") -> str:
    """A rank with what helps to find it."""
    if process is not None:
        return f"rank {rank} (process {process}{f' on {host}' if host else ''})"
    return f"rank {rank} ({address})" if address else f"rank {rank}"


def gone(who: str, how: str = _WITHOUT_CLOSING) -> str:
    """The process of a rank ended, or the connection to it broke."""
    return f"{who} is gone: {how}. Look at the end of its output, or for the signal it got."


def unreachable(who: str, why: str) -> str:
    """The host of a rank does not answer."""
    return f"the host of {who} no longer answers ({why})"


def left(who: str, made: int | None = None, waiting: str = "") -> str:
    """A rank closed its communicator, after `made` collectives, while others need it."""
    after = "" if made is None else f" after {made} collective{'' if made == 1 else 's'}"
    return f"{who} closed its communicator{after}{f', but {waiting}' if waiting else ''}. {_SAME_CALLS}"


def closed_in_collective(who: str) -> str:
    """A rank closed its communicator while a collective of its own was going on."""
    return f"{who} closed its communicator in the middle of a collective"


def silent(who: str, timeout_s: float, variable: str) -> str:
    """A rank lives but did not come to a collective."""
    return (
        f"{who} did not respond for {timeout_s:g} s: it is stopped, stuck or still computing. "
        f"If it is only slow, raise {variable}."
    )


def stopped(who: str, timeout_s: float) -> str:
    """A signal stopped the process of a rank."""
    return f"{who} has been stopped for {timeout_s:g} s"


def given_up(who: str, by: int) -> str:
    """Another rank reported this one as silent."""
    return f"rank {by} gave up waiting for this rank, {who}."


def did_not_end(who: str, timeout_s: float) -> str:
    """A rank lives on after the others have ended."""
    return f"{who} did not end within {timeout_s:g} s after the others: it is stopped or stuck."


def outlived_the_job(rank: int, ended_by: int, code: int, grace_s: float) -> str:
    """A launcher did not end a rank when another one ended the job."""
    return f"rank {ended_by} ended the job with code {code}, but rank {rank} still lives {grace_s:g} s later"


def aborted(rank: int, reason: str) -> str:
    """A rank called `abort`, or left its `with` block by an exception."""
    return f"rank {rank} aborted: {reason}"


def broke_off(who: str, operation: str, why: str) -> str:
    """A collective was left by an exception, of a signal handler for instance."""
    return f"{who} broke off {operation}: {why}"


def memory_unreadable(who: str) -> str:
    """The system no longer lets this process read the memory of another."""
    return f"the memory of {who} can no longer be read. Its permissions changed during the run."


def unexpected_frame(who: str, kind: int, block: int, offset: int, length: int) -> str:
    """A frame that no rank of this version sends at this point."""
    return (
        f"protocol error: unexpected frame of {who} (kind {kind}, block {block}, offset {offset}, length {length}). "
        "Check that all ranks run the same version of pycobre."
    )


def unauthentic(who: str, peer: str) -> str:
    """What arrived on a connection is not what its other end sent."""
    return (
        f"message authentication failed on the connection of {who} to {peer}: expected the next message of this "
        "run, got bytes that were changed, repeated, reordered or left out on the way. Check what is between these "
        "hosts (proxies, address translation), or use TLS (COBRE_TCP_TLS_CERT)."
    )


def call_text(operation: str, sequence: int, *details: str, view: int = 0) -> str:
    """A collective as a rank called it: `allreduce(4 of float64, sum) as collective 7`."""
    where = f"collective {sequence}" + (f" of local view {view}" if view else "")
    return f"{operation}({', '.join(details)}) as {where}"


def different_calls(rank: int, call: str, peer: int, peer_call: str, unseen: str = "counts") -> str:
    """Two ranks called different collectives; `unseen` is what differs where the texts do not."""
    difference = f", with other {unseen}" if call == peer_call else ""
    return (
        f"the ranks do not make the same call: rank {rank} calls {call}, rank {peer} calls {peer_call}{difference}. "
        f"{_SAME_CALLS}"
    )


def progress(rank: int, operation: str, sequence: int) -> str:
    """How far this rank had come when another one failed."""
    where = f"{operation}, collective {sequence}" if sequence else "no collective yet"
    return f"rank {rank} had come to {where}"
