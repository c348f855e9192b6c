"""Interleaved rounds: every candidate sees the same machine, and ratios within one run are what counts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Spread", "interleaved", "seconds"]

T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """Repetitions of one measurement."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.least:.3g}–{self.most:.3g})"


def interleaved(candidates: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Call every candidate once per round; every other round goes backwards, so that drift favours nobody."""
    found: dict[str, list[T]] = {name: [] for name in candidates}
    for number in range(rounds):
        names: Sequence[str] = list(candidates)
        for name in names if number % 2 == 0 else list(reversed(names)):
            found[name].append(candidates[name]())
    return found


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
