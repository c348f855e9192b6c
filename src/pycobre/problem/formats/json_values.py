"""JSON that is asked for what it should be: every answer is checked, every error says where in the file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pycobre._util.frozen import frozen
from pycobre._util.suggest import did_you_mean
from pycobre.errors import ProblemError
from pycobre.problem.formats.text_files import read_text

__all__ = ["Json", "read_json"]

SHOWN = 60
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}


@frozen(eq=False)
class Json:
    """A value of a JSON file and its place there."""

    value: Any
    file: str
    place: str = ""

    def fail(self, expected: str) -> NoReturn:
        """Say what should stand here."""
        text = json.dumps(self.value, default=str)
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
        raise ProblemError(f"{self.file}{self._where()}: expected {expected}, got {shown}.")

    def has(self, key: str) -> bool:
        """Whether the object has a value there; null is none."""
        return self._of(dict).get(key) is not None

    def key(self, key: str) -> Json:
        """The value at a key that must be there."""
        found = self._of(dict)
        if key not in found:
            hint = did_you_mean(key, list(found), "")
            raise ProblemError(f"{self.file}{self._where()}: expected a key {key!r}, got none.{hint}")
        return self._inside(found[key], f".{key}" if self.place else key)

    def items(self) -> Iterator[tuple[str, Json]]:
        """The keys of an object and their values, in the order of the file."""
        for key, value in self._of(dict).items():
            yield key, self._inside(value, f"[{key!r}]")

    def list(self) -> list[Json]:
        """The values of a list."""
        return [self._inside(value, f"[{i}]") for i, value in enumerate(self._of(list))]

    def text(self) -> str:
        """A text."""
        found: str = self._of(str)
        return found

    def flag(self) -> bool:
        """True or false."""
        found: bool = self._of(bool)
        return found

    def choice(self, names: Sequence[str]) -> str:
        """A text that is one of `names`."""
        found = self.text()
        if found not in names:
            self.fail(" or ".join(repr(name) for name in names))
        return found

    def number(self) -> float:
        """A finite number."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail("a number")
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            self.fail("a finite number")
        return found

    def count(self) -> int:
        """A whole number of at least 0."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail("a whole number of at least 0")
        return int(value)

    def _of(self, kind: type) -> Any:
        if not isinstance(self.value, kind):
            self.fail(_NAMES[kind])
        return self.value

    def _inside(self, value: Any, step: str) -> Json:
        return Json(value, self.file, self.place + step)

    def _where(self) -> str:
        return f": {self.place}" if self.place else ""


def read_json(path: Path) -> Json:
    """The root of a file; a key that stands twice, or a number that is none, is an error."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise ProblemError(f"{path}: key {twice!r}: expected once, got it twice in one object.")
        return found

    def refuse(name: str) -> NoReturn:
        raise ProblemError(f"{path}: expected numbers, got {name}, which JSON does not have.")

    text = read_text(path)
    try:
        return Json(json.loads(text, object_pairs_hook=once, parse_constant=refuse), str(path))
    except RecursionError as cause:
        raise ProblemError(f"{path}: expected JSON, got objects within objects without end.") from cause
    except ValueError as cause:
        raise ProblemError(f"{path}: expected JSON, got {cause}. Get the file again.") from cause
