from collections.abc import Callable
from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]
_Failure = tuple[int, int, int, bytes]

def tags(key: bytes, messages: tuple[bytes, ...], /) -> list[bytes]: ...

class Star:
    def __init__(
        self,
        rank: int,
        size: int,
        descriptors: tuple[int, ...],
        keys: tuple[tuple[bytes, bytes] | None, ...],
        timeout_s: float,
        fold: Callable[[int, int, int, memoryview, list[memoryview]], None],
    ) -> None: ...
    def allgatherv(
        self,
        sequence: int,
        code: tuple[int, int, int],
        layout: int,
        send: _Array,
        recv: _Array,
        counts: tuple[int, ...],
        displs: tuple[int, ...],
        /,
    ) -> _Failure | None: ...
    def allreduce(
        self, sequence: int, code: tuple[int, int, int], send: _Array, recv: _Array, reduce: int, /
    ) -> _Failure | None: ...
    def broadcast(
        self, sequence: int, code: tuple[int, int, int], buf: _Array, root: int, /
    ) -> _Failure | None: ...
    def barrier(self, sequence: int, /) -> _Failure | None: ...
    def tell(self, rank: int, frame: bytes, timeout_s: float, /) -> bool: ...
    def inspect(self, rank: int, /) -> _Failure | None: ...
    def interrupt(self, /) -> None: ...
