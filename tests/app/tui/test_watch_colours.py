"""Colours that carry a meaning are told apart, also by colour-blind people, and read on their background."""

from __future__ import annotations

from itertools import combinations

import pytest

pytest.importorskip("textual", reason='watching needs the extra: pip install "pycobre[tui]"')

from pycobre.app.tui.widgets.theme import COLOURS, DARK, LIGHT

#: How a person without one kind of cone sees linear colours (Machado, Oliveira and Fernandes, 2009).
SEEN = {
    "everybody": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanope": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranope": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanope": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
#: Drawn in one picture.
TOGETHER = (
    ("bound", "mean"),
    ("solve", "communicate", "wait", "other"),
    ("bound", "mean", "third", "fourth"),
)


def linear(colour: str) -> tuple[float, ...]:
    values = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)


def lab(rgb: tuple[float, ...]) -> tuple[float, float, float]:
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    xyz = (sum(a * b for a, b in zip(row, rgb, strict=True)) / w for row, w in zip(rows, white, strict=True))
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen_by(matrix: tuple[tuple[float, ...], ...], colour: str) -> tuple[float, float, float]:
    rgb = linear(colour)
    return lab(tuple(min(1.0, max(0.0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in matrix))


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_what_is_drawn_together_is_told_apart(theme: str, who: str) -> None:
    for group in TOGETHER:
        for one, other in combinations(group, 2):
            first, second = (seen_by(SEEN[who], COLOURS[theme][role]) for role in (one, other))
            distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5
            assert distance > 12, (theme, who, one, other, round(distance, 1))


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_text_is_read_on_its_background(theme) -> None:  # type: ignore[no-untyped-def]
    def luminance(colour: str) -> float:
        return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))

    colours = COLOURS["dark" if theme.dark else "light"]
    for ground in (theme.background, theme.panel):
        for role in ("text", "title", "quiet", "bound", "mean", "warn", "bad", "good"):
            low, high = sorted((luminance(colours[role]), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) > 3.5, (role, ground)
