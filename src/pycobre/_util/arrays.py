"""The array types that signatures name most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["F64", "I32", "I64", "U8", "U64"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
