"""Horizontal bars: how much is done, and where the time of each rank went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.reading.numbers import number, whole

__all__ = ["PARTS", "progress_bar", "rank_legend", "rank_rows", "slowest"]

#: What a rank's seconds are spent on: the field, its word, how it is drawn (also without colours), its role.
PARTS = (
    ("solve_s", "solving", "█", "solve"),
    ("communicate_s", "communicating", "▓", "communicate"),
    ("wait_s", "waiting", "▒", "wait"),
    ("other_s", "other", "░", "other"),
)
WIDE = 100
_EIGHTHS = " ▏▎▍▌▋▊▉"


def progress_bar(share: float, width: int, role: str = "bound") -> Row:
    """A bar of `width` letters, to an eighth of a letter."""
    eighths = round(max(0.0, min(1.0, share)) * 8 * width)
    full, rest = divmod(eighths, 8)
    part = _EIGHTHS[rest] if rest else ""
    empty = width - full - len(part)
    return [("█" * full + part, role), ("─" * empty, "axis")]


def rank_legend(width: int) -> Row:
    """What the pieces of a bar mean, and above the figures on the right what they are."""
    row: Row = []
    for _, word, mark, role in PARTS:
        row += [(f"{mark} ", role), (f"{word}  ", "quiet")]
    used = sum(len(text) for text, _ in row)
    heads = " solving  comm. waiting           LPs     memory" if width >= WIDE else " solv comm. wait"
    return [*row, (f"{heads:>{width - used}}", "quiet")] if width - used >= len(heads) else row


def rank_rows(ranks: Sequence[Mapping[str, Any]], memory: Sequence[Any] | None, width: int) -> list[Row]:
    """A bar and its figures for every rank, all on one scale."""
    totals = [sum(_seconds(rank)) for rank in ranks]
    longest = max(totals, default=0.0)
    slow = slowest(ranks)
    digits = len(str(max(len(ranks) - 1, 0)))
    wide = width >= WIDE
    figures = 50 if wide else 19
    room = max(8, width - digits - 7 - figures)
    rows: list[Row] = []
    for place, (rank, total) in enumerate(zip(ranks, totals, strict=True)):
        seconds = _seconds(rank)
        row: Row = [(f"rank {place:>{digits}} ", "title" if place == slow else "quiet")]
        drawn, used = 0, 0.0
        for spent, (_, _, mark, role) in zip(seconds, PARTS, strict=True):
            used += spent
            until = round(room * used / longest) if longest else 0
            row.append((mark * (until - drawn), role))
            drawn = until
        row.append((" " * (room - drawn) + " ", ""))
        shares = [100 * spent / total if total else 0.0 for spent in seconds]
        if wide:
            said = "".join(f"{share:>6.1f} %" for share in shares[:3])
            lps = whole(rank.get("lp_solves"))
            held = number(memory[place]) if memory is not None and place < len(memory) else number(None)
            said += f"{f'{lps:,} LPs' if lps is not None else '':>14}"
            said += f"{f'{held / 2**20:,.0f} MiB' if held == held else '':>11}"
        else:
            said = "".join(f"{share:4.0f} %" for share in shares[:3])
        row.append((said, "quiet"))
        rows.append(row)
    return rows


def slowest(ranks: Sequence[Mapping[str, Any]]) -> int | None:
    """The rank that the others wait for: the one that waits least. None of one rank, or of unmeasured ones."""
    waits = [number(rank.get("wait_s")) for rank in ranks]
    if len(waits) < 2 or any(wait != wait for wait in waits) or max(waits) <= min(waits):
        return None
    return waits.index(min(waits))


def _seconds(rank: Mapping[str, Any]) -> list[float]:
    found = (number(rank.get(name)) for name, _, _, _ in PARTS)
    return [value if value == value and value > 0 else 0.0 for value in found]
