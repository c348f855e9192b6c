"""A run's tables for planners: names, dates, buses and units; by block or stage, totals, quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pycobre._util.frozen import frozen
from pycobre._util.suggest import did_you_mean
from pycobre.app.results.balance import BALANCE, energy_balance
from pycobre.app.results.files import read_table
from pycobre.app.results.labels import Labels, labelled
from pycobre.app.results.schemas import PROBLEM_TABLES, SIMULATION_TABLES, TABLES, Column, Table
from pycobre.app.results.summaries import Columns, by_stage, over_scenarios, totals
from pycobre.errors import OptionError, OutputError

if TYPE_CHECKING:
    import pyarrow as pa

    from pycobre.app.results.directory import Results

__all__ = [
    "LIBRARIES",
    "Shape",
    "described_table",
    "frame_names",
    "frame_table",
    "in_library",
    "labelled_pieces",
    "parse_quantiles",
]

LIBRARIES = ("pandas", "polars", "arrow")
_TABLES = {table.name: table for table in (*TABLES, BALANCE)}
_OF_SIMULATION = {table.name for table in (*SIMULATION_TABLES, *PROBLEM_TABLES, BALANCE)}
_TIMES = ("scenario_id", "stage_id", "node_id", "block_id")


@frozen()
class Shape:
    """What the rows of a frame are."""

    per: Literal["block", "stage"] = "block"
    total: Literal["", "system", "bus"] = ""
    quantiles: tuple[float, ...] | None = None  #: None: every scenario; empty: the mean alone

    def __post_init__(self) -> None:
        if self.per not in ("block", "stage"):
            raise OptionError(f"per: expected 'block' or 'stage', got {self.per!r}.")
        if self.total not in ("", "system", "bus"):
            raise OptionError(f"total: expected 'system' or 'bus', got {self.total!r}.")
        for q in self.quantiles or ():
            if isinstance(q, bool) or not isinstance(q, int | float) or not 0.0 <= q <= 1.0:
                raise OptionError(f"quantiles: expected numbers from 0 to 1, got {q!r}.")

    def fitting(self, name: str) -> Shape:
        """What of it a table can have, where a shape is meant for many tables."""
        if name not in _OF_SIMULATION:
            return Shape()
        names = _TABLES[name].names
        lost = (
            "hours" not in names or "constraint_id" in names or (self.total == "bus" and "line_id" in names)
        )
        return replace(self, total="") if lost else self

    @property
    def plain(self) -> bool:
        return self.per == "block" and not self.total and self.quantiles is None


def frame_names(results: Results) -> tuple[str, ...]:
    """The tables that a run has, the energy balance among them where it can be made."""
    there = [table.name for table in TABLES if (results.directory / table.path).is_file()]
    return (*there, "balance") if "buses" in there else tuple(there)


def frame_table(results: Results, name: str, shape: Shape) -> pa.Table:
    """One table as an Arrow table; its fields carry `unit` and `meaning`."""
    table = described_table(results, name)
    if not shape.plain and name not in _OF_SIMULATION:
        raise OptionError(
            f"table {name!r}: expected no per, total or quantiles, which are for simulated tables, got some."
        )
    labels = Labels.of(results.directory, results.metadata)
    columns = _balance(results, labels) if name == "balance" else _columns(results, name)
    described: Mapping[str, Column] = {column.name: column for column in table.columns}
    texts: dict[str, list[str]] = {}
    if shape.per == "stage":
        columns = by_stage(columns, described)
    if shape.total:
        columns, described = _total(table, columns, described, shape.total, labels)
    if shape.quantiles is not None and name != "scenarios":
        columns, words = over_scenarios(columns, described, shape.quantiles, _probability(results))
        texts["statistic"] = words
    groups = columns.pop("group", None)
    if groups is not None:
        names = _groups(table, labels)
        texts["bus"] = [names[code] for code in groups.tolist()]
    return labelled(table, columns, labels, texts)


def described_table(results: Results, name: str) -> Table:
    """The schema of a table that a run has."""
    there = frame_names(results)
    if name not in there:
        hint = did_you_mean(name, there, f"There are: {', '.join(there) or 'none: the run has not ended'}.")
        raise OutputError(f"{results.directory}: expected one of the run's tables, got {name!r}.{hint}")
    return _TABLES[name]


def labelled_pieces(results: Results, name: str) -> Iterator[pa.Table]:
    """The rows of a table as they are, with names, piece by piece in the order of the file."""
    import pyarrow.parquet as parquet

    table = described_table(results, name)
    results.check_simulated()
    labels = Labels.of(results.directory, results.metadata)
    with parquet.ParquetFile(results.directory / table.path) as file:
        for group in range(max(file.num_row_groups, 1)):
            piece = (
                file.read_row_group(group, use_threads=False)
                if file.num_row_groups
                else file.read(use_threads=False)
            )
            columns = {column: piece[column].to_numpy() for column in piece.column_names}
            yield labelled(table, columns, labels, {})


def in_library(found: pa.Table, library: str) -> Any:
    """The table as a data frame of one of `LIBRARIES`."""
    if library == "arrow":
        return found
    if library not in LIBRARIES:
        raise OptionError(f"library: expected one of {', '.join(LIBRARIES)}, got {library!r}.")
    try:
        if library == "polars":
            import polars

            return polars.from_arrow(found)
        import pandas  # noqa: F401
    except ImportError as cause:
        raise OptionError(
            f"library {library}: expected an installed package, got none. "
            f"Type `pip install 'pycobre[frames]'`, or ask for library='arrow'."
        ) from cause
    frame: Any = found.to_pandas(date_as_object=False)
    frame.attrs["units"] = {field.name: field.metadata[b"unit"].decode() for field in found.schema}
    return frame


def _columns(results: Results, name: str) -> Columns:
    table = _TABLES[name]
    # A simulation of another policy than the trained one is refused there.
    arrow = results.simulation(name) if name in results.simulated else read_table(results.directory, table)
    return {column: arrow[column].to_numpy() for column in arrow.column_names}


def _balance(results: Results, labels: Labels) -> Columns:
    found = results.simulated
    return energy_balance(lambda name: _columns(results, name) if name in found else None, labels)


def _total(
    table: Table, columns: Columns, described: Mapping[str, Column], total: str, labels: Labels
) -> tuple[Columns, Mapping[str, Column]]:
    ids = _owner(table)
    kept = [name for name in _TIMES if name in columns]
    if total == "system":
        return totals(columns, described, kept, (ids,)), described
    if "bus_id" in columns:
        return totals(columns, described, [*kept, "bus_id"], (ids,)), described
    names = _groups(table, labels)
    code = {name: number for number, name in enumerate(names)}
    of_plant = labels.bus_of(ids)
    plants = columns[ids].tolist()
    missing = sorted({plant for plant in plants if plant not in of_plant})
    if missing:
        raise OptionError(
            f"total 'bus' of {table.name}: expected every {ids} on a bus, got {missing[0]} on none. "
            "Ask for total='system'."
        )
    grouped = {**columns, "group": np.array([code[of_plant[plant]] for plant in plants], np.int32)}
    return totals(grouped, described, [*kept, "group"], (ids,)), described


def _groups(table: Table, labels: Labels) -> list[str]:
    """The buses, and combinations of buses, that a table's plants belong to, in the order of the plants."""
    return list(dict.fromkeys(labels.bus_of(_owner(table)).values()))


def _owner(table: Table) -> str:
    """The column of ids that a table's rows are about."""
    owners = [c.name for c in table.columns if c.dtype == "int32" and c.name not in _TIMES]
    if not owners or "hours" not in table.names:
        raise OptionError(f"total of {table.name}: expected a table of plants, buses or lines, got another.")
    return owners[0]


def _probability(results: Results) -> dict[int, float] | None:
    """Of every scenario, where all paths were simulated; None: they are equally likely."""
    if "scenarios" not in results.simulated:
        return None
    found = _columns(results, "scenarios")
    return dict(zip(found["scenario_id"].tolist(), found["probability"].tolist(), strict=True))


def parse_quantiles(texts: Sequence[str]) -> tuple[float, ...]:
    """Quantiles as they are typed."""
    try:
        return tuple(float(text) for text in texts)
    except ValueError:
        raise OptionError(f"quantiles: expected numbers from 0 to 1, got {', '.join(texts)!r}.") from None
