"""Fold what MPI gathered: the ranks' contributions, one after another in one buffer.

Natively where the module was built and knows the dtype, else by `fold.fold_into`; the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from pycobre.comm.api import Buffer
from pycobre.comm.fold import ReduceOp, fold_into

_native: Callable[[Buffer, Buffer, int], bool] | None
try:
    from pycobre._native import fold as _fold_module
except ImportError:
    _native = None
else:
    _native = _fold_module.fold_rows

_SUM, _MIN = ReduceOp.SUM, ReduceOp.MIN


def fold_gathered(out: Buffer, gathered: Buffer, ranks: int, op: ReduceOp) -> None:
    """Fold the `ranks` rows of the contiguous `gathered` into `out`, which may be the first of them."""
    if _native is None or not _native(out, gathered, 1 if op is _SUM else 2 if op is _MIN else 3):
        fold_into(out, gathered.reshape(ranks, -1), op)
