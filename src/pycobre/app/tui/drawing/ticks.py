"""Places and labels of an axis: round numbers, as few letters as tell them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["labels", "linear_ticks", "logarithmic_ticks", "short"]

_LETTERS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round numbers between the limits."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most < 1:
        return []
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    for step in (power, 2 * power, 2.5 * power, 5 * power, 10 * power, 20 * power):
        first = math.ceil(low / step - 1e-9)
        last = math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [0.0 if each == 0 else each * step for each in range(first, last + 1)]
    return []


def logarithmic_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten between the limits; two and five times them where there is room."""
    if not 0 < low < high < math.inf or most < 1:
        return []
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1,)):
        found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        found = [each for each in found if low * (1 - 1e-9) <= each <= high * (1 + 1e-9)]
        if len(found) <= most:
            return found
    every = -(-len(found) // most)
    return found[::every]


def labels(ticks: Sequence[float], percent: bool = False) -> list[str]:
    """One label for each, in one unit (k, M, G, T) and with as many decimals as tell them apart."""
    if not ticks:
        return []
    scale, letter = (0.01, " %") if percent else _unit(max(abs(tick) for tick in ticks))
    values = [tick / scale for tick in ticks]
    for digits in range(13):
        said = [f"{value:,.{digits}f}" for value in values]
        exact = all(
            abs(float(t.replace(",", "")) - v) <= 1e-6 * abs(v) for t, v in zip(said, values, strict=True)
        )
        if len(set(said)) == len(said) and exact:
            break
    return [f"{text}{letter}" if text.strip("-0.") or percent else "0" for text in said]


def short(value: float) -> str:
    """A number in at most eight letters."""
    if not math.isfinite(value):
        return "–"
    scale, letter = _unit(abs(float(f"{value:.3g}")))  # 999.9 million is 1.00 G
    shown = value / scale
    size = abs(shown)
    digits = 0 if size >= 100 or value == 0 else 1 if size >= 10 else 2 if size >= 0.1 or letter else 4
    if 0 < size < 0.001:
        return f"{value:.1e}"
    return f"{shown:,.{digits}f}{letter}"


def _unit(size: float) -> tuple[float, str]:
    if size < 1e4:
        return 1.0, ""
    return (
        next((scale, letter) for scale, letter in _LETTERS if size >= scale) if size < 1e16 else (1e12, "T")
    )
