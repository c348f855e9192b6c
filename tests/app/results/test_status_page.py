"""The reference page of a run in progress, and the schemas beside it, say what the code says."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from pycobre.app.results.event_log import event_schema
from pycobre.app.results.status import RunStatus, status_schema

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def test_the_schemas_are_the_ones_of_the_code() -> None:
    for name, schema in (("status", status_schema()), ("events", event_schema())):
        written = json.loads((REFERENCE / f"{name}.schema.json").read_text())
        assert written == schema, "run `python docs/run_schemas.py`"


def test_the_page_lists_every_field_of_the_status() -> None:
    page = (REFERENCE / "run-status.md").read_text()
    section = page.partition("## status.json")[2].partition("## events.jsonl")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [each.name for each in fields(RunStatus)]
