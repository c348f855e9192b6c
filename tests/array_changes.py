"""Changes that make an ordinary array one that the native fast paths must look at twice."""

from __future__ import annotations

from typing import Any

import numpy as np

CHANGES = ("frozen", "strided", "subclass", "list", "square")


class Subclass(np.ndarray[Any, Any]):
    """Not the very class."""


def changed(array: Any, change: str) -> Any:
    """The array after a change; a square is made of four elements only, and any other word changes nothing."""
    if change == "frozen":
        array.flags.writeable = False
    elif change == "strided":
        array = array[::2]
    elif change == "subclass":
        array = array.view(Subclass)
    elif change == "list":
        array = array.tolist()
    elif change == "square" and array.size == 4:
        array = array.reshape(2, 2)
    return array
