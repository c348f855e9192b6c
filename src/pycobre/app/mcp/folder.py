"""The one directory that a server looks into: every path from outside is resolved here, and nowhere else.

Paths are relative, and lead below the root after all links in them are followed. What is read is a directory tree of
regular files: a link that leads outside, a pipe, a socket or a device anywhere in it refuses the whole of it. Whoever
may write below the root can exchange a file between this look and the reading; they are the ones who own the studies.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pycobre.errors import OptionError

__all__ = ["Folder"]

MOST_ENTRIES = 20_000
LONGEST = 1024
#: Of a result directory: whole runs of their own, checked when they are asked for.
_APART = {"previous", "checkpoints"}


class Folder:
    """A root, and the paths below it."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.realpath(root))
        if not self.root.is_dir():
            raise OptionError(
                f"--root {os.fspath(root)}: expected a directory, got none. Name the one with the cases."
            )

    def below(self, text: str, what: str) -> Path:
        """Where a relative path leads, whether there is something or not."""
        shown = text if len(text) <= 80 else f"{text[:80]}…"
        wrong = ""
        if not text or len(text) > LONGEST or not text.isprintable():
            wrong = "an empty or unreadable one"
        elif os.path.isabs(text) or text.startswith("~") or "\\" in text:
            wrong = "an absolute one"
        elif ".." in Path(text).parts:
            wrong = "one with '..'"
        if wrong:
            raise OptionError(
                f"{what} {shown!r}: expected a path below the root, got {wrong}. `list_cases` names them."
            )
        try:
            path = Path(os.path.realpath(self.root / text))
        except OSError as cause:  # a name too long, a circle of links
            raise OptionError(
                f"{what} {shown!r}: expected a path, got one that cannot be followed."
            ) from cause
        if not self.holds(path):
            raise OptionError(
                f"{what} {shown!r}: expected a path below the root, got a link that leads outside. Copy its target."
            )
        return path

    def directory(self, text: str, what: str, *, apart: frozenset[str] = frozenset()) -> Path:
        """A directory below the root, with nothing in it that leads outside; `apart` are names not looked into."""
        path = self.below(text, what)
        if not path.is_dir():
            raise OptionError(
                f"{what} {text!r}: expected a directory, got none. `list_cases` names the cases."
            )
        self.check_tree(path, f"{what} {text!r}", apart)
        return path

    def free(self, text: str, what: str) -> Path:
        """A path below the root at which there is nothing yet."""
        path = self.below(text, what)
        if path == self.root or path.exists():
            raise OptionError(
                f"{what} {text!r}: expected a name that is free, got one in use. Choose another."
            )
        return path

    def check_tree(self, path: Path, what: str, apart: frozenset[str] = frozenset()) -> None:
        """Refuse a directory that holds what is no regular file, or a link that leads outside."""
        for fault, entry in self._faults(path, _APART | apart, deep=True):
            name = entry.relative_to(path).as_posix() if entry.is_relative_to(path) else entry.name
            raise OptionError(
                f"{what}: expected regular files below the root, got {fault}: {name}. Remove it."
            )

    def sound(self, path: Path) -> bool:
        """Whether what stands directly in a directory, and in the runs that it keeps, stays below the root."""
        if any(self._faults(path, _APART, deep=False)):
            return False
        kept = path / "previous"
        if kept.is_symlink():
            return False
        if not kept.is_dir():
            return True
        runs = [Path(each.path) for each in os.scandir(kept) if each.is_dir(follow_symlinks=False)]
        links = any(each.is_symlink() for each in os.scandir(kept))
        return not links and not any(fault for run in runs for fault in self._faults(run, _APART, deep=False))

    def holds(self, path: Path) -> bool:
        """Whether a resolved path is the root or below it."""
        return path == self.root or path.is_relative_to(self.root)

    def name(self, path: Path) -> str:
        """A path as clients know it."""
        return path.relative_to(self.root).as_posix()

    def _faults(
        self, path: Path, apart: frozenset[str] | set[str], *, deep: bool
    ) -> Iterator[tuple[str, Path]]:
        waiting, seen = [path], 0
        while waiting:
            try:
                entries = sorted(os.scandir(waiting.pop()), key=lambda each: each.name)
            except OSError:
                continue  # one that may not be read is refused by who reads it
            for entry in entries:
                seen += 1
                if seen > MOST_ENTRIES:
                    yield f"more than {MOST_ENTRIES:,} files", Path(entry.path)
                    return
                found = Path(entry.path)
                if entry.is_symlink():
                    target = Path(os.path.realpath(found))
                    if not self.holds(target):
                        yield "a link that leads outside", found
                    elif target.is_dir():
                        yield "a link to a directory", found
                    elif target.exists() and not target.is_file():
                        yield "a link to a pipe, socket or device", found
                elif entry.is_dir(follow_symlinks=False):
                    if deep and entry.name not in apart:
                        waiting.append(found)
                elif not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    yield "a pipe, socket or device", found
