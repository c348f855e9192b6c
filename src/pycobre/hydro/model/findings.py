"""What a check says about a case: one sentence with its place, its rule and what to do."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from pycobre._util.error_record import carried_by_errors
from pycobre._util.frozen import frozen

__all__ = ["Finding", "Layer", "Severity"]


class Layer(IntEnum):
    """The order in which a case is looked at; a later layer sees only what the earlier ones let through."""

    FILES = 1
    PARSE = 2
    SCHEMA = 3
    REFERENCES = 4
    COVERAGE = 5
    PHYSICAL = 6
    SUPPORT = 7


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@carried_by_errors
@frozen(kw_only=True)
class Finding:
    """One thing that is wrong (error) or doubtful (warning).

    `kind` is a stable short name for programs, `where` the path inside the file (`buses[0].name`, a column, a
    row), `entity` what it is about (`hydro 3`), `value` what was found, `rule` what was expected.
    """

    kind: str
    layer: Layer
    file: str
    rule: str
    where: str = ""
    entity: str = ""
    value: str = ""
    suggestion: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.where, self.entity) if part)
        got = f", got {self.value}" if self.value else ""
        hint = f" {self.suggestion}" if self.suggestion else ""
        return f"{self.severity} [{self.kind}] {place}: {self.rule}{got}.{hint}"

    @property
    def sort_key(self) -> tuple[int, str, str, str, str]:
        return (int(self.layer), self.file, self.where, self.entity, self.kind)
