"""From the docstrings of the source, which are plain prose, to what Sphinx reads.

In the source a docstring is text with `code` in backticks, indented blocks that are to be kept as they are,
and for collectives the paragraphs Requires, Ensures, On error and Cost. Here single backticks become literals,
indented blocks become literal blocks, the contract's paragraphs become fields, and whatever else would mean
something in reStructuredText is escaped.
"""

from __future__ import annotations

import re
from typing import Any

FIELD = re.compile(r"(Requires|Ensures|On error|Cost): ")
PACKAGE = re.compile(r"pycobre(\.\w+)?")


def to_rst(lines: list[str]) -> list[str]:
    """One docstring, already dedented."""
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).rstrip()):
        rows = paragraph.split("\n")
        if not paragraph.strip():
            continue
        if all(row.startswith("    ") for row in rows if row):
            out += ["::", "", *rows, ""]
        else:
            out += [*_prose(rows), ""]
    return out


def _prose(rows: list[str]) -> list[str]:
    """A paragraph; a contract field or a list item starts a new one, indented rows below it are a table."""
    items: list[str] = []
    table: list[str] = []
    continued = False
    for row in rows:
        field = FIELD.match(row)
        if field:
            items.append(f":{field[1]}: {row[field.end() :]}")
            continued = True
        elif re.match(r"[-*] ", row):
            items.append(row)
            continued = True
        elif row.startswith("    ") and not continued:
            table.append(row)
        elif items and (continued or not items[-1].startswith((":", "-", "*"))):
            items[-1] += f" {row.strip()}"
        else:
            items.append(row.strip())
    out: list[str] = []
    for item in items:
        mark = re.match(r":(Requires|Ensures|On error|Cost): |[-*] ", item)
        start = mark.end() if mark else 0
        out += [item[:start] + _inline(item[start:]), *([""] if item.startswith(("-", "*")) else [])]
    return [*out, "", "::", "", *table] if table else out


def _inline(text: str) -> str:
    """Keep `code` as a literal and let nothing else be markup."""
    pieces = re.split(r"(`+[^`]+`+)", text)
    for index, piece in enumerate(pieces):
        if index % 2:
            pieces[index] = rf"\ ``{piece.strip('`')}``\ "
        else:
            pieces[index] = re.sub(r"([\\*|_`])", r"\\\1", piece)
    return "".join(pieces).strip()


def setup_docstrings(app: Any) -> None:
    """Convert every docstring; leave out modules' own, whose pages have their prose, and foreign members."""

    def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        lines[:] = [] if what == "module" else to_rst(lines)

    def skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
        if what != "module":
            return None
        here = app.env.current_document.autodoc_module if hasattr(app.env, "current_document") else None
        module = getattr(obj, "__module__", None)
        if here is None or module is None:
            return None
        home, package = PACKAGE.match(module), PACKAGE.match(here)
        return True if package is not None and (home is None or home[0] != package[0]) else None

    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-skip-member", skip)
