"""The list of checks, how they are run, and the words they share."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache, partial
from typing import Protocol, cast

from pycobre.hydro.model.case import SECTIONS, Case
from pycobre.hydro.model.findings import Finding, Layer, Severity
from pycobre.hydro.model.horizon import SeasonDefinitions, Stage
from pycobre.hydro.model.seasons import with_seasons
from pycobre.hydro.model.table import I32

__all__ = [
    "Findings",
    "check",
    "check_of",
    "check_reference",
    "duplicate_ids",
    "error",
    "run_checks",
    "warning",
]

Findings = Iterator[Finding]
Check = Callable[..., Findings]


class HasId(Protocol):
    """An entity of a list."""

    @property
    def id(self) -> int: ...


class StageTable(Protocol):
    """A table whose rows belong to stages."""

    @property
    def stage_id(self) -> I32: ...


_CHECKS: list[tuple[Check, tuple[str, ...]]] = []  # with the sections that each needs
_NULLABLE = ("season_definitions", "correlation", "fpha_plane_reduction")


def check(function: Check) -> Check:
    """Register a check. Its parameters are the names of the sections it needs."""
    check_of(function, *inspect.signature(function).parameters)
    return function


def check_of(function: Check, *needs: str) -> None:
    """Register a check made in a loop, which takes its sections as keywords."""
    _CHECKS.append((function, needs))


def run_checks(sections: Mapping[str, object]) -> list[Finding]:
    """Run every check whose sections could all be read. Absent optional sections have their defaults."""
    have: dict[str, object] = {name: make() for name, make in _defaults().items()} | dict(sections)
    defined = cast("SeasonDefinitions | None", have.get("season_definitions"))
    for name in ("stages", "pre_study_stages"):
        if have.get(name) is not None:
            have[name] = with_seasons(cast("tuple[Stage, ...]", have[name]), defined)
    found: list[Finding] = []
    for function, needs in _CHECKS:
        unreadable = [n for n in needs if n not in have or (have[n] is None and n not in _NULLABLE)]
        if not unreadable:
            found.extend(function(**{name: have[name] for name in needs}))
    return found


def error(layer: Layer, kind: str, section: str, rule: str, **more: object) -> Finding:
    """An error about a section; `where`, `entity`, `value` and `suggestion` as keywords."""
    return _finding(layer, kind, section, rule, Severity.ERROR, more)


def warning(layer: Layer, kind: str, section: str, rule: str, **more: object) -> Finding:
    """A warning about a section; keywords as for `error`."""
    return _finding(layer, kind, section, rule, Severity.WARNING, more)


def check_reference(
    section: str, entity: str, field: str, value: int | None, known: set[int], what: str
) -> Findings:
    """An error if a reference leads nowhere; None refers to nothing.

    Where there is no bus or no stage at all, that is said once and not for every reference.
    """
    if value is not None and value not in known and (known or what not in ("bus", "stage")):
        yield error(
            Layer.REFERENCES,
            "dangling_reference",
            section,
            f"{field} is the id of a {what}",
            entity=entity,
            value=value,
        )


def duplicate_ids(section: str, what: str, ids: Iterable[Hashable], field: str = "id") -> Findings:
    """An error for every id that is there more than once."""
    for value, times in Counter(ids).items():
        if times > 1:
            yield error(
                Layer.REFERENCES,
                "duplicate_id",
                section,
                f"every {field} is used once",
                entity=f"{what} {value}",
                value=f"{times} times",
            )


def _finding(
    layer: Layer, kind: str, section: str, rule: str, severity: Severity, more: dict[str, object]
) -> Finding:
    text = {name: str(value) for name, value in more.items()}
    return Finding(kind=kind, layer=layer, file=SECTIONS[section].file, rule=rule, severity=severity, **text)


def _same(value: object) -> object:
    return value


@cache
def _defaults() -> dict[str, Callable[[], object]]:
    defaults: dict[str, Callable[[], object]] = {}
    for f in fields(Case):
        if f.default_factory is not MISSING:
            defaults[f.name] = f.default_factory
        elif f.default is not MISSING:
            defaults[f.name] = partial(_same, f.default)
    return defaults
