"""Ranks of one machine that talk through a mapped segment. See shm.c and the headers beside it."""

from collections.abc import Sequence
from typing import Any, TypeAlias, final

Buffer: TypeAlias = Any  # what has the buffer protocol; collections.abc.Buffer is of Python 3.12

VERSION: int
MAX_RANKS: int
HEADER_BYTES: int

# op, reduce, root, dtype tag, sequence, count
Call = tuple[int, int, int, int, int, int]
# kind, rank at fault, rank that noticed, pid of the rank at fault, abort's reason, own call, the other's call
Failure = tuple[int, int, int, int, str, Call | None, Call | None]
# state, pid, start time, pid namespace, set of cpus
Peer = tuple[int, int, int, int, bytes]

def segment_bytes(size: int, capacity: int, /) -> int: ...
def format_segment(
    memory: Buffer, size: int, capacity: int, start_time: int, pid_namespace: int, /
) -> None: ...
def read_header(data: bytes, /) -> tuple[int, int, int, int, int, int] | None:
    """Version, size, bytes, creator's pid, start time and pid namespace; None for what is no segment."""

def dtype_tag(array: Buffer, /) -> int: ...

@final
class Channel:
    """One rank's end. Collectives return None, or a description of what went wrong."""

    def __init__(
        self,
        memory: Buffer,
        rank: int,
        size: int,
        timeout_s: float,
        reduce_ops: tuple[object, object, object],
        start_time: int,
        pid_namespace: int,
        cpus: bytes,
    ) -> None: ...
    def peers(self) -> tuple[Peer, ...]: ...
    def watch(self, rank: int, pidfd: int, /) -> None: ...
    def check(self) -> Failure | None: ...
    def can_read(self, rank: int, /) -> bool: ...
    def start(self, spin: bool, direct: bool, /) -> None: ...
    def barrier(self, sequence: int, op: int, /) -> Failure | None: ...
    def allgatherv(
        self, sequence: int, send: Buffer, recv: Buffer, counts: tuple[int, ...], displs: tuple[int, ...], /
    ) -> Failure | None: ...
    def allreduce(self, sequence: int, send: Buffer, recv: Buffer, op: object, /) -> Failure | None:
        """NotImplemented, before anything moved, for a dtype without a kernel."""

    def broadcast(self, sequence: int, buf: Buffer, root: int, /) -> Failure | None: ...
    def exchange(
        self, sequence: int, op: int, reduce: int, dtype_tag: int, count: int, send: Buffer, recv: Buffer, /
    ) -> Failure | None: ...
    def abort(self, reason: str, /) -> None: ...
    def close(self) -> None: ...

class FastPathCollectives:
    """The public collectives of a backend over a channel; calls that do not fit go to the next class's.

    A subclass has `_fail(operation, failure)`, which makes the exception, keeps it as `_refusal` and raises it.
    """

    _refusal: Any
    _channel: Channel
    _sequence: int
    def allgatherv(self, send: Any, recv: Any, counts: Sequence[int], displs: Sequence[int]) -> None: ...
    def allreduce(self, send: Any, recv: Any, op: Any) -> None: ...
    def broadcast(self, buf: Any, root: int = 0) -> None: ...
    def barrier(self) -> None: ...
