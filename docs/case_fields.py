"""Writes `reference/case-fields.md`, every key and column of a case, from the classes that read them.

python docs/case_fields.py
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pycobre.hydro.files.json_files import JSON_FILES
from pycobre.hydro.files.json_types import section_types
from pycobre.hydro.files.parquet_files import PARQUET_SECTIONS
from pycobre.hydro.model.case import SECTIONS
from pycobre.hydro.model.table import Table

PAGE = Path(__file__).parent / "reference" / "case-fields.md"
HEAD = """# Every key and column of a case

The [case format](case-format.md) says what the files are for and what the numbers mean; this page
lists what can be in them. A key without a default is required. A column marked * is part of the key
of its table: no two rows have the same. Optional columns may be absent or hold nulls.
"""
WORDS = {int: "integer", float: "number", str: "text", bool: "true or false", date: "date (`YYYY-MM-DD`)"}
TABLE_WORDS = {"int32": "integer", "float64": "number", "datetime64[D]": "date"}


def page() -> str:
    return "\n".join([HEAD, *_json_files(), *_tables()]) + "\n"


def _json_files() -> Iterator[str]:
    seen: set[type] = set()
    for file in JSON_FILES:
        types = section_types(file)
        yield f"\n## `{file}`\n"
        if "" not in types:  # otherwise the first record below is the file's root
            yield "| key | what |\n|---|---|"
            for key, hint in types.items():
                yield f"| `{key}` | {_said(hint)} |"
        for hint in types.values():
            for kind in _records(hint):
                if kind not in seen:
                    yield from _record(kind)
                seen.add(kind)


def _record(kind: type) -> Iterator[str]:
    yield f"\n### {kind.__name__}\n"
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        yield fill(" ".join(kind.__doc__.split()), 100) + "\n"
    yield "| key | what | default |\n|---|---|---|"
    hints = get_type_hints(kind, include_extras=True)
    for f in fields(kind):
        hint = hints[f.name]
        # A word that tells alternatives apart is the class's own in Python, and must be said in a file.
        tag = get_origin(hint) is Literal and len(get_args(hint)) == 1
        yield f"| `{f.name.removesuffix('_')}` | {_said(hint)} | {'' if tag else _default(f)} |"


def _tables() -> Iterator[str]:
    for section, cls in PARQUET_SECTIONS.items():
        yield f"\n## `{SECTIONS[section].file}`\n"
        if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):
            yield fill(" ".join(cls.__doc__.split()), 100) + "\n"
        yield "| column | what | |\n|---|---|---|"
        for f in fields(cls):
            mark = " *" if f.name in cls.KEY else ""
            kept = "optional" if f.metadata["optional"] else ""
            yield f"| `{f.name}`{mark} | {TABLE_WORDS[f.metadata['dtype']]} | {kept} |"


def _records(hint: Any) -> Iterator[type]:
    """Record types, each after the one that has it."""
    if isinstance(hint, type) and is_dataclass(hint) and not issubclass(hint, Table):
        yield hint
        for inner in get_type_hints(hint, include_extras=True).values():
            yield from _records(inner)
    else:
        for argument in get_args(hint):
            yield from _records(argument)


def _said(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in WORDS:
        return WORDS[hint]
    if origin is Annotated:
        return _said(arguments[0])
    if origin is Literal:
        return " or ".join(f'`"{word}"`' for word in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_said(a) for a in arguments if a is not type(None))
    if origin is tuple:
        inner = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return "list of " + ", ".join(dict.fromkeys(_said(a) for a in inner))
    if origin is dict:
        return f"object of {_said(arguments[1])} by name"
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


def _default(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return "its defaults"
    if f.default is MISSING:
        return ""
    if f.default is None or f.default == ():
        return "none"
    return f"`{str(f.default).lower()}`" if isinstance(f.default, bool) else f"`{f.default}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
