"""Files of sections, as MPS and SMPS have them: a word in the first column begins one, other lines are its data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.formats.text_files import read_text

__all__ = ["Line", "lines_of"]


@frozen(eq=False)
class Line:
    """One line of data: its words, and the words of the section's own line."""

    file: str
    number: int
    section: tuple[str, ...]
    words: tuple[str, ...]
    heading: bool  #: whether this is the section's own line

    def fail(self, expected: str) -> NoReturn:
        """Say what should stand here."""
        text = " ".join(self.words)
        raise ProblemError(f"{self.file}: line {self.number}: expected {expected}, got {text[:80]!r}.")

    def number_at(self, position: int) -> float:
        """The word at a position as a finite number; `1e30` and more is infinite."""
        try:
            value = float(self.words[position].replace("D", "E").replace("d", "e"))
        except (IndexError, ValueError):
            self.fail(
                "a number" if position >= len(self.words) else f"a number, not {self.words[position]!r}"
            )
        if math.isnan(value):
            self.fail("a number")
        return math.copysign(math.inf, value) if abs(value) >= 1e30 else value


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file up to ENDATA, without comments (`*`) and empty ones."""
    section: tuple[str, ...] = ()
    for number, text in enumerate(read_text(path).splitlines(), start=1):
        if text.startswith("*") or not text.strip():
            continue
        words = tuple(text.split())
        heading = not text[0].isspace()
        if heading:
            section = tuple(word.upper() for word in words)
            if section[0] == "ENDATA":
                return
        elif not section:
            raise ProblemError(
                f"{path}: line {number}: expected a section, such as ROWS, got data before it."
            )
        yield Line(str(path), number, section, words, heading)
    raise ProblemError(f"{path}: expected ENDATA at the end, got none: the file is truncated. Get it again.")
