"""Colours, for a dark and a light terminal.

The hues are those of Okabe and Ito, which people with any of the common kinds of colour blindness tell apart, in a
lightness that is read on the background. No colour is the only sign of anything: `NO_COLOR` shows the same.
"""

from __future__ import annotations

from textual.theme import Theme

__all__ = ["COLOURS", "DARK", "LIGHT", "ROLES"]

#: The colours of roles, by theme.
COLOURS: dict[str, dict[str, str]] = {
    "dark": {
        "bound": "#56b4e9",
        "mean": "#e69f00",
        "band": "#8a6a1f",
        "solve": "#56b4e9",
        "communicate": "#e69f00",
        "wait": "#f0e442",
        "other": "#8b98a5",
        "third": "#cc79a7",
        "fourth": "#f2f5f8",
        "good": "#2bc4a0",
        "warn": "#e69f00",
        "bad": "#ff7b4f",
        "outer": "#2f5f7d",
        "axis": "#7d8b99",
        "quiet": "#9aa7b4",
        "title": "#f2f5f8",
        "text": "#d5dde5",
    },
    "light": {
        "bound": "#0067a5",
        "mean": "#b35a00",
        "band": "#d9a55c",
        "solve": "#0067a5",
        "communicate": "#c98500",
        "wait": "#7a6a00",
        "other": "#78838e",
        "third": "#a03a78",
        "fourth": "#111820",
        "good": "#00785a",
        "warn": "#a34f00",
        "bad": "#c02d00",
        "outer": "#8fbfdf",
        "axis": "#6a7683",
        "quiet": "#56626e",
        "title": "#0f1720",
        "text": "#22303c",
    },
}
ROLES = tuple(COLOURS["dark"])


def _theme(name: str, *, dark: bool, background: str, surface: str, panel: str) -> Theme:
    colours = COLOURS[name]
    return Theme(
        name=f"pycobre-{name}",
        primary=colours["bound"],
        secondary=colours["mean"],
        accent=colours["mean"],
        warning=colours["warn"],
        error=colours["bad"],
        success=colours["good"],
        foreground=colours["text"],
        background=background,
        surface=surface,
        panel=panel,
        dark=dark,
        variables={f"role-{role}": colour for role, colour in colours.items()},
    )


DARK = _theme("dark", dark=True, background="#10161c", surface="#151d25", panel="#1d2833")
LIGHT = _theme("light", dark=False, background="#fbfcfd", surface="#f2f5f8", panel="#e4eaf0")
