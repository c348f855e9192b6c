"""Numbers of a size that can be computed with: not so large that sums lose the others or memory ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass

import numpy as np

from pycobre.hydro.checks.registry import Findings, check_of, error
from pycobre.hydro.model.case import SECTIONS
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.table import Table

LARGEST = 1e15
LARGEST_ID = 2**31 - 1

#: Limits for which a huge number is a way to say that there is none.
_LIMITS = frozenset(
    {
        *("max_mw", "max_generation_mw", "max_turbined_m3s", "max_storage_hm3", "max_outflow_m3s"),
        *("max_spillage_m3s", "max_diversion_m3s", "max_flow_m3s", "max_m3s", "depth_mw"),
        *("direct_mw", "reverse_mw", "bound_lower", "bound_upper"),
    }
)
#: Their limits are part of products or rewards.
_ALWAYS = ("non_controllable_sources", "energy_contracts", "contract_bounds", "source_bounds")


def _finding(section: str, where: str, value: float, limits: frozenset[str]) -> Findings:
    name = where.rpartition(".")[2].partition(",")[0].partition("[")[0]
    if isinstance(value, int) and (name == "id" or name.endswith("_id")):
        if not -LARGEST_ID <= value <= LARGEST_ID:
            rule = "an id has at most 32 bits"
            yield error(Layer.SCHEMA, "out_of_range", section, rule, where=where, value=value)
    elif abs(value) > LARGEST and name not in limits:
        yield error(
            Layer.PHYSICAL,
            "too_large",
            section,
            f"no number is beyond {LARGEST:g}",
            where=where,
            value=f"{value:g}" if isinstance(value, float) else value,
        )


def _any_large(value: object) -> bool:
    """Whether a section holds a number that is worth a closer look; nearly always none does."""
    if isinstance(value, float | int):
        return not -LARGEST_ID <= value <= LARGEST_ID
    if isinstance(value, str) or value is None:
        return False
    if isinstance(value, tuple):
        return any(_any_large(item) for item in value)
    inside = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return any(_any_large(item) for item in inside.values())


def _numbers(value: object, where: str) -> Iterator[tuple[str, int | float]]:
    """Every number of a section, with its path."""
    if isinstance(value, float | int):
        yield where, value
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{where}[{i}]")
    else:
        for name, item in (value if isinstance(value, dict) else getattr(value, "__dict__", {})).items():
            yield from _numbers(item, f"{where}.{name}" if where else name)


def _large(section: str, content: object) -> Findings:
    limits = frozenset() if section in _ALWAYS else _LIMITS
    if isinstance(content, Table):
        for name, column in vars(content).items():
            if column.dtype.kind == "f":
                for row in np.flatnonzero(np.abs(column) > LARGEST).tolist():
                    yield from _finding(section, f"{name}, row {row}", float(column[row]), limits)
        return
    root = "" if is_dataclass(content) else section
    for where, value in _numbers(content, root) if _any_large(content) else ():
        yield from _finding(section, where, value, limits)


def _register(section: str) -> None:
    def magnitudes(**sections: object) -> Findings:
        yield from _large(section, sections[section])

    check_of(magnitudes, section)


for _section in SECTIONS:
    _register(_section)
