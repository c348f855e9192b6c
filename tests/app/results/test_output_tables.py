"""The reference page of the tables says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from pycobre.app.results.schemas import TABLES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "output-tables.md"


def test_the_page_lists_every_table_and_column() -> None:
    sections = re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.split("\n", 1)[0] for section in sections] == [table.name for table in TABLES]
    for table, section in zip(TABLES, sections, strict=True):
        assert f"`{table.path}` — {table.meaning}" in " ".join(section.split())
        listed = [line for line in section.splitlines() if line.startswith("| `")]
        meanings = {c.name: c.meaning.replace("|", "\\|") for c in table.columns}
        assert listed == [
            f"| `{c.name}` | {c.dtype} | {c.unit} | {meanings[c.name]} |" for c in table.columns
        ]
