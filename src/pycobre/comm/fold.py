"""The one definition of a reduction: a left fold over the ranks' contributions, in rank order.

Floating sums depend on the order of their terms, so the order is part of the contract: whatever a backend
does to move the bytes, and whether it folds here or in C, the result has the bits of `fold_into`.

    SUM   acc = acc + x             integers wrap around; no floating-point warnings
    MIN   acc = x unless acc < x    so of equal values (0.0 and -0.0) the last wins
    MAX   acc = x unless acc > x

and for MIN and MAX a NaN, once in `acc`, stays. This is what numpy.minimum and numpy.maximum compute for
float32 and float64 on x86; written out because their treatment of signed zeros differs between CPUs and
dtypes, and the result must not. Only the payload of a NaN is left unspecified.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import numpy as np


class ReduceOp(enum.Enum):
    """How `allreduce` combines the ranks' values, element by element, in rank order."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


#: How other processes and the native code name an operator.
REDUCE_CODES = {ReduceOp.SUM: 1, ReduceOp.MIN: 2, ReduceOp.MAX: 3}
REDUCE_NAMES = {code: op.value for op, code in REDUCE_CODES.items()}


def fold_into(out: np.ndarray[Any, Any], parts: Iterable[np.ndarray[Any, Any]], op: ReduceOp) -> None:
    """Fold `parts`, given in rank order, into `out`, which is overwritten.

    Requires: at least one part; all of `out`'s size and dtype (shapes may differ); `out` C-contiguous. The
        first part may be `out` itself, as for a backend that received rank 0's values there.
    """
    flat = out.reshape(-1)
    remaining = iter(parts)
    first = next(remaining).reshape(-1)
    if first is not flat:
        flat[...] = first
    if op is ReduceOp.SUM:
        with np.errstate(all="ignore"):
            for part in remaining:
                np.add(flat, part.reshape(-1), out=flat)
    elif flat.dtype.kind != "f":
        choose = np.minimum if op is ReduceOp.MIN else np.maximum
        for part in remaining:
            choose(flat, part.reshape(-1), out=flat)
    else:
        better = np.less if op is ReduceOp.MIN else np.greater
        with np.errstate(invalid="ignore"):
            for part in remaining:
                values = part.reshape(-1)
                keep = better(flat, values)
                keep |= np.isnan(flat)
                np.copyto(flat, values, where=~keep)
