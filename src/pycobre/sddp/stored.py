"""Policies and checkpoints as they are read: nothing is believed because its checksum is right.

A checksum says that a file is as it was written, not by whom. So every value is read with what is expected of it,
its dtype, shape, finiteness and range, and anything else is a `PolicyError` that names the entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pycobre.errors import PolicyError
from pycobre.sddp.cuts import Cuts

__all__ = ["CUT_PARTS", "StoredData", "cut_arrays"]

CUT_PARTS = ("intercept", "slope", "iteration", "trajectory", "depth", "active")


class StoredData:
    """The content of a file, taken entry by entry; `finish` refuses arrays that were not expected."""

    def __init__(self, kind: str, meta: object, arrays: Mapping[str, NDArray[Any]], where: str) -> None:
        self._kind, self._where = kind, where
        self._meta: Mapping[str, Any] = meta if isinstance(meta, dict) else {}
        self._arrays = dict(arrays)

    def refuse(self, name: str, expected: str, got: object) -> PolicyError:
        """The error about one entry."""
        return PolicyError(
            f"{self._where}: {name} of the {self._kind}: expected {expected}, got {got}. Use an earlier copy."
        )

    def array(
        self,
        name: str,
        dtype: DTypeLike,
        shape: tuple[int | None, ...],
        *,
        least: float | None = None,
        most: float | None = None,
        open_below: bool = False,
    ) -> NDArray[Any]:
        """An array of this dtype and shape (None: any extent), finite and in this range.

        With `open_below` −inf is allowed too.
        """
        label, wanted = f"array {name!r}", np.dtype(dtype)
        size = "[" + ", ".join("any" if extent is None else str(extent) for extent in shape) + "]"
        found = self._arrays.pop(name, None)
        if found is None:
            raise self.refuse(label, f"{wanted} {size}", "no such array")
        fits = len(shape) == found.ndim and all(
            extent in (None, got) for extent, got in zip(shape, found.shape, strict=True)
        )
        if found.dtype != wanted or not fits:
            raise self.refuse(label, f"{wanted} {size}", f"{found.dtype} {list(found.shape)}")
        if wanted.kind == "f":
            wrong = ~np.isfinite(found)
            if open_below:
                wrong &= found != -np.inf
            if wrong.any():
                raise self.refuse(label, "finite numbers", f"{found[wrong].flat[0]} among them")
        if least is not None and (found < least).any():
            raise self.refuse(label, f"numbers from {least}", f"{found.min()} among them")
        if most is not None and (found > most).any():
            raise self.refuse(label, f"numbers up to {most}", f"{found.max()} among them")
        return found

    def text(self, name: str) -> str:
        value = self._meta.get(name)
        if not isinstance(value, str):
            raise self.refuse(f"{name!r}", "a text", _short(value))
        return value

    def whole(self, name: str) -> int:
        """A count: a whole number from 0 on."""
        value = self._meta.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
            raise self.refuse(f"{name!r}", "a count", _short(value))
        return value

    def bound(self, name: str) -> float:
        """A finite number, or −inf where nothing is known."""
        value = self._meta.get(name)
        if not isinstance(value, float) or not (math.isfinite(value) or value == -math.inf):
            raise self.refuse(f"{name!r}", "a finite number or -Infinity", _short(value))
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """Texts, no two of them equal."""
        value = self._meta.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(f"{name!r}", "a list of texts", _short(value))
        if len(set(value)) < len(value):
            raise self.refuse(f"{name!r}", "different texts", "one of them twice")
        return tuple(value)

    def texts_by_name(self, name: str) -> dict[str, str]:
        value = self._meta.get(name)
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self.refuse(f"{name!r}", "texts by name", _short(value))
        return dict(value)

    def nodes(self, name: str) -> list[int]:
        """Node numbers in rising order."""
        value = self._meta.get(name)
        if not isinstance(value, list) or any(type(item) is not int or item < 0 for item in value):
            raise self.refuse(f"{name!r}", "a list of node numbers", _short(value))
        if any(after <= before for before, after in pairwise(value)):
            raise self.refuse(f"{name!r}", "rising node numbers", _short(value))
        return value

    def cuts(self, node: int, states: int | None, iterations: int) -> Cuts:
        """The cuts of one node; `states` None takes the width of its slopes."""
        prefix = f"cuts/{node:06d}/"
        intercept = self.array(f"{prefix}intercept", np.float64, (None,))
        count = len(intercept)
        return Cuts(
            intercept,
            self.array(f"{prefix}slope", np.float64, (count, states)),
            self.array(f"{prefix}iteration", np.int32, (count,), least=0, most=iterations),
            self.array(f"{prefix}trajectory", np.int32, (count,), least=0),
            self.array(f"{prefix}depth", np.int32, (count,), least=0),
            self.array(f"{prefix}active", np.uint8, (count,), most=1),
        )

    def finish(self) -> None:
        """Refuse what is left over."""
        if self._arrays:
            name = sorted(self._arrays)[0]
            raise self.refuse(f"array {name!r}", "no such array", "one")


def cut_arrays(node: int, cuts: Cuts) -> dict[str, NDArray[Any]]:
    """The named arrays that `StoredData.cuts` reads."""
    return {f"cuts/{node:06d}/{part}": getattr(cuts, part) for part in CUT_PARTS}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
