"""The known name that was probably meant, for the last sentence of an error."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name most like `name`, or None where none is like it; the same for the same set of names."""
    import difflib  # needed by errors only

    return next(iter(difflib.get_close_matches(name, sorted(known), 1, cutoff)), None)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A sentence that names it, or `otherwise`, with the space that parts it from the sentence before."""
    found = nearest(name, known)
    sentence = f"Did you mean {found!r}?" if found is not None else otherwise
    return f" {sentence}" if sentence else ""
