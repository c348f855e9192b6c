"""Wraps the prose of Markdown pages at 100 columns: `python docs/wrap.py [--check] [PAGE …]`, by default every page.

Paragraphs and items of lists are filled; headings, tables, fenced blocks and definitions of links stay as they are.
A line is never broken so that the next one begins like an item, a heading or a table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

WIDTH = 100
ROOT = Path(__file__).resolve().parent.parent
_ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+]|\d+[.)]) +(?=\S)")
_KEPT = re.compile(r" {0,3}(#|\||>|<|\[[^\]]+\]: |!\[|---|===|:::|\(\w+\)=$)")
_BEGINS_OTHERWISE = re.compile(r"([-*+#>=|]|\d+[.)]|-{3,}.*|={3,}.*|#{1,6}|\|.*|>.*)$")


def pages() -> list[Path]:
    """Every page that people write."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


def fill(words: list[str], first: str, rest: str) -> Iterator[str]:
    """The words in lines of at most `WIDTH`, the first begun by `first` and the others by `rest`."""
    line, empty = first, True
    for word in words:
        too_long = len(line) + (not empty) + len(word) > WIDTH
        if too_long and not empty and not _BEGINS_OTHERWISE.match(word):
            yield line
            line, empty = rest, True
        line += word if empty else f" {word}"
        empty = False
    yield line


def wrap(text: str) -> str:
    """The page with its prose filled."""
    done: list[str] = []
    block: list[str] = []
    first = rest = ""
    fence = ""

    def flush() -> None:
        nonlocal block
        if block:
            # Two spaces at the end of a line would be a forced break; no page uses them.
            done.extend(fill(" ".join(block).split(), first, rest))
        block = []

    for line in text.splitlines():
        opened = re.match(r" *(`{3,}|~{3,})", line)
        if fence:
            done.append(line)
            if opened and line.strip() == fence:
                fence = ""
            continue
        item = _ITEM.match(line)
        if opened:
            flush()
            fence = opened[1]
            done.append(line)
        elif not line.strip() or (_KEPT.match(line) and not block) or re.match(r" {0,3}[#|]", line):
            flush()
            done.append(line)
        elif item:
            flush()
            first, rest = item[0], " " * len(item[0])
            block = [line[len(item[0]) :]]
        elif block:
            block.append(line.strip())
        else:
            first = rest = " " * (len(line) - len(line.lstrip()))
            block = [line.strip()]
    flush()
    return "\n".join(done) + "\n"


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    chosen = [Path(word) for word in arguments if word != "--check"] or pages()
    changed = [
        page for page in chosen if wrap(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")
    ]
    for page in changed:
        print(page)
        if not check:
            page.write_text(wrap(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
