"""Amounts, shares, durations and counts as people read them, the same wherever they are shown."""

from __future__ import annotations

__all__ = ["age", "amount", "counted", "duration", "percent"]


def age(seconds: float) -> str:
    """How long ago, in its largest unit; a dash where it is not known."""
    if seconds != seconds:
        return "–"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def amount(value: float) -> str:
    """A cost in at most 15 characters: cents while they matter, then whole units, then powers of ten."""
    return f"{value:,.2f}" if abs(value) < 1e6 else f"{value:,.0f}" if abs(value) < 1e11 else f"{value:.6e}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number of things in words."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def duration(seconds: float) -> str:
    """Seconds as people write them."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours}:{minutes:02d}:{rest:02d}"
        if hours
        else f"{minutes}:{rest:02d} min"
        if minutes
        else f"{rest} s"
    )


def percent(share: float) -> str:
    """A gap in at most 8 characters: hundredths while they matter, then tenths, then whole percents, then nothing."""
    digits = next((digits for limit, digits in ((1.0, 2), (10.0, 1), (100.0, 0)) if abs(share) < limit), None)
    return "–" if digits is None else f"{100 * share:.{digits}f} %"
