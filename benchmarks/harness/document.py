"""What a benchmark hands over: tables, figures with their targets, and curves, as data that survives JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Curve", "Document", "Figure", "Picture", "Table", "show"]

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """Rows under headings; numbers stay numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Figure:
    """One number; `at_most` or `at_least` is its target, where it has one."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least


@dataclass(frozen=True)
class Curve:
    """One line of a picture."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Picture:
    """Curves over one pair of axes."""

    name: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Document:
    """The findings of one benchmark. `skipped` says why there are none."""

    name: str
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""
    data: dict[str, Any] = field(default_factory=dict)  #: raw measurements, for whoever wants to look again

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Document:
        """Undo `write`."""
        found = json.loads(path.read_text(encoding="utf-8"))
        return Document(
            name=found["name"],
            tables=tuple(
                Table(t["title"], tuple(t["columns"]), tuple(tuple(row) for row in t["rows"]))
                for t in found["tables"]
            ),
            figures=tuple(Figure(**figure) for figure in found["figures"]),
            pictures=tuple(
                Picture(
                    **{
                        **picture,
                        "curves": tuple(
                            Curve(c["name"], tuple(c["x"]), tuple(c["y"])) for c in picture["curves"]
                        ),
                    }
                )
                for picture in found["pictures"]
            ),
            notes=tuple(found["notes"]),
            skipped=found["skipped"],
            data=found["data"],
        )


def show(document: Document) -> str:
    """The findings for people, as Markdown."""
    if document.skipped:
        return f"skipped: {document.skipped}"
    parts = [_table(table) for table in document.tables]
    if document.figures:
        parts.append("\n".join(_figure(figure) for figure in document.figures))
    if document.notes:
        parts.append("\n".join(f"- {note}" for note in document.notes))
    return "\n\n".join(parts)


def _table(table: Table) -> str:
    lines = [f"**{table.title}**", "", f"| {' | '.join(table.columns)} |", "|---" * len(table.columns) + "|"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table.rows]
    return "\n".join(lines)


def _figure(figure: Figure) -> str:
    target = ""
    if figure.met is not None:
        sign, limit = ("≤", figure.at_most) if figure.at_most is not None else ("≥", figure.at_least)
        target = f" (target {sign} {_cell(limit)}: {'met' if figure.met else 'MISSED'})"
    return f"- {figure.name}: {_cell(figure.value)}{' ' + figure.unit if figure.unit else ''}{target}"


def _cell(value: Cell) -> str:
    """Four digits are more than a measurement is worth; integers are counted, not measured."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
