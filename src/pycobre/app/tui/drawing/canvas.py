"""Lines, points and areas in dots: a letter of braille has two by four of them.

A letter has one colour: that of the line that was drawn last through it, and of an area where there is no line.
"""

from __future__ import annotations

import math

__all__ = ["Canvas", "Row"]

Row = list[tuple[str, str]]
"""A row of text: pieces and the role of each."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_EMPTY = 0x2800


class Canvas:
    """`width` × `height` letters. Dots are counted from the left and from the top."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(0, width), max(0, height)
        self.dots_x, self.dots_y = 2 * self.width, 4 * self.height
        self._lines = _Layer(self.width, self.height)
        self._areas = _Layer(self.width, self.height)
        self._letters: dict[tuple[int, int], tuple[str, str]] = {}

    def dot(self, x: int, y: int, role: str) -> None:
        """One dot of a line; nothing where it lies outside."""
        if 0 <= x < self.dots_x and 0 <= y < self.dots_y:
            self._lines.set(x, y, role)

    def area(self, x: int, top: float, bottom: float, role: str) -> None:
        """A column of an area: every second dot."""
        first, last = max(0, math.ceil(top)), min(self.dots_y - 1, math.floor(bottom))
        for y in range(first, last + 1):
            if (x + y) % 2 == 0 and 0 <= x < self.dots_x:
                self._areas.set(x, y, role)

    def line(self, x0: int, y0: float, x1: int, y1: float, role: str) -> None:
        """A line from left to right; one that leaves the picture is cut off."""
        count = max(1, x1 - x0)
        before = y0
        for step in range(count + 1):
            y = y0 + (y1 - y0) * step / count
            low, high = sorted((before, y))
            first, last = max(0, round(low)), min(self.dots_y - 1, round(high))
            if step:  # the part between two columns belongs to the later one
                for each in range(first + (1 if last > first and y > before else 0), last + 1):
                    self.dot(x0 + step, each, role)
            elif 0 <= round(y) < self.dots_y:
                self.dot(x0, round(y), role)
            before = y

    def letter(self, x: int, y: float, letter: str, role: str) -> None:
        """A letter instead of dots."""
        row = round(y) >> 2 if math.isfinite(y) else -1
        if 0 <= x < self.dots_x and 0 <= row < self.height:
            self._letters[row, x >> 1] = (letter, role)

    def rows(self) -> list[Row]:
        """The letters, pieces of one role together."""
        found = []
        for y in range(self.height):
            row: Row = []
            text, role = "", ""
            for x in range(self.width):
                layer = self._lines if self._lines.bits[y][x] else self._areas
                letter, now = chr(_EMPTY + layer.bits[y][x]) if layer.bits[y][x] else " ", layer.roles[y][x]
                letter, now = self._letters.get((y, x), (letter, now))
                if now != role and text:
                    row.append((text, role))
                    text = ""
                role = now
                text += letter
            if text:
                row.append((text, role))
            found.append(row)
        return found


class _Layer:
    """The dots of lines, or of areas, by letter."""

    def __init__(self, width: int, height: int) -> None:
        self.bits = [[0] * width for _ in range(height)]
        self.roles = [[""] * width for _ in range(height)]

    def set(self, x: int, y: int, role: str) -> None:
        self.bits[y >> 2][x >> 1] |= _DOTS[y & 3][x & 1]
        self.roles[y >> 2][x >> 1] = role
