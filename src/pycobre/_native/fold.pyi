"""Contributions that lie one after another, folded in rank order, with the bits of `comm.fold.fold_into`."""

from typing import Any, TypeAlias

Buffer: TypeAlias = Any  # what has the buffer protocol; collections.abc.Buffer is of Python 3.12

def fold_rows(out: Buffer, rows: Buffer, op: int, /) -> bool:
    """Fold `rows` into `out`, which may be the first of them; False for types without a native kernel.

    `op` is 1 for sums, 2 for minima, 3 for maxima.
    """
