"""What questions about cases are answered with. Plain values only, so that they travel as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pycobre._util.frozen import frozen

__all__ = [
    "CaseDescription",
    "CaseDifferences",
    "CaseEdit",
    "CaseEntry",
    "CaseList",
    "Change",
    "Difference",
    "Entity",
    "FindingRecord",
    "SchemaText",
    "Source",
    "Validation",
]


@frozen()
class Source:
    """Where a number comes from: a case or a run, the file or table in it, and the digest that pins its content."""

    kind: str  #: case or run
    name: str  #: path of the case, or id of the run
    what: str  #: file, table or part
    digest: str | None = None  #: SHA-256, of the file or of the policy


@frozen()
class CaseEntry:
    """A case directory."""

    case: str  #: path below the directory that was searched
    modified: str  #: UTC, newest of its files
    runs: bool  #: whether there are results in its directory `output`


@frozen()
class CaseList:
    cases: list[CaseEntry]
    total: int
    truncated: bool


@frozen()
class Entity:
    """A plant, bus, line, source, contract or station, with its most important figures."""

    kind: str
    id: int
    name: str
    figures: dict[str, Any]


@frozen()
class CaseDescription:
    """What a case is about."""

    case: str
    name: str
    begins: str
    ends: str
    stages: int
    blocks: int  #: of the first stage
    openings: int  #: of the first stage
    counts: dict[str, int]
    totals: dict[str, float]  #: capacities (MW), storage (hm³), mean load (MW)
    settings: dict[str, Any]  #: by dotted path
    entities: list[Entity]
    entities_total: int
    truncated: bool
    sources: list[Source]


@frozen()
class FindingRecord:
    kind: str
    severity: str
    file: str
    where: str
    entity: str
    value: str
    rule: str
    suggestion: str


@frozen()
class Validation:
    case: str
    valid: bool
    errors: int
    warnings: int
    findings: list[FindingRecord]
    truncated: bool
    sources: list[Source]


@frozen()
class Difference:
    """One thing that two cases do not share. Of a table's column, all rows of one entity together."""

    category: str  #: load, storage, cost, limit, outage, inflow, horizon, setting, system or other
    section: str  #: of the case: `thermals`, `load_stats`, …
    entity: str  #: name and id; "" for a setting
    field: str
    before: str
    after: str
    rows: int  #: how many rows of a table; 1 elsewhere
    mean_before: float | None = None  #: over the rows that differ, where they hold numbers
    mean_after: float | None = None
    largest_change: float | None = None
    when: str = ""  #: the stages, or dates, of the rows


@frozen()
class CaseDifferences:
    """What changed from one case to another."""

    equal: bool
    sentences: list[str]
    differences: list[Difference]
    total: int
    truncated: bool
    sources: list[Source]


@dataclass(frozen=True)
class Change:
    """One edit of a case: `path` leads to a value, which is replaced by `value` or multiplied by `factor`."""

    path: str
    value: Any = None
    factor: float | None = None


@frozen()
class CaseEdit:
    """What an edit does, before (`written` false) or after it was written."""

    case: str
    target: str
    written: bool
    confirm: str  #: what to give as `confirm` to write exactly this
    changes: CaseDifferences
    warnings: list[FindingRecord]
    sources: list[Source] = field(default_factory=list)


@frozen()
class SchemaText:
    """A JSON Schema."""

    name: str
    json_schema: dict[str, Any]
    available: list[str]
