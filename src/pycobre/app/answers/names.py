"""Plants, buses and stages as people name them: by name or by id."""

from __future__ import annotations

from collections.abc import Iterable

from pycobre._util.suggest import did_you_mean
from pycobre.errors import OptionError

__all__ = ["named", "stage_id"]


def named(what: str, entities: Iterable[tuple[int, str]], wanted: str | int) -> tuple[int, str]:
    """Id and name of the one entity that is meant: by its name, without regard to case, or by its id."""
    known = list(entities)
    text = str(wanted).strip()
    exact = [each for each in known if each[1] == text]
    found = exact or [each for each in known if each[1].casefold() == text.casefold()]
    if not found and text.lstrip("#").isdigit():
        found = [each for each in known if each[0] == int(text.lstrip("#"))]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(number) for number, _ in found)
        raise OptionError(f"{what} {text!r}: expected one, got {len(found)} of that name. Use an id: {ids}.")
    names = [name for _, name in known]
    hint = did_you_mean(text, names, f"There are: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}.")
    raise OptionError(f"{what} {text!r}: expected one of {len(known)}, got another.{hint}")


def stage_id(stages: Iterable[tuple[int, str]], wanted: str | int) -> int:
    """A stage by its id, or by its label (`2026-03`, as far as it is written)."""
    known = list(stages)
    text = str(wanted).strip()
    if text.lstrip("-").isdigit() and int(text) in {number for number, _ in known}:
        return int(text)
    found = [number for number, label in known if text and label.startswith(text)]
    if len(found) == 1:
        return found[0]
    first, last = (known[0], known[-1]) if known else ((0, ""), (0, ""))
    raise OptionError(
        f"stage {text!r}: expected an id from {first[0]} to {last[0]} or a label such as {first[1]!r}, got "
        f"{'a label of several stages' if found else 'neither'}. Labels run from {first[1]!r} to {last[1]!r}."
    )
