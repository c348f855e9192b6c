"""Ask a table of a run: filter, group, aggregate, order, and no more rows than asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.suggest import did_you_mean
from pycobre.app.answers.answer_records import Aggregate, Filter, TableAnswer
from pycobre.app.answers.grouping import FUNCTIONS, Measure, grouped
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.table_scan import Columns, Comparison
from pycobre.app.results.event_log import finite
from pycobre.app.results.schemas import Table
from pycobre.errors import OptionError

__all__ = ["MOST_ROWS", "query_table"]

OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "in")
MOST_ROWS = 5000
_INTEGERS = ("int32", "int64")


def query_table(
    tables: RunTables,
    table: str,
    *,
    columns: Sequence[str] = (),
    where: Sequence[Filter] = (),
    group_by: Sequence[str] = (),
    aggregates: Sequence[Aggregate] = (),
    order_by: str = "",
    descending: bool = False,
    limit: int = 100,
) -> TableAnswer:
    """Rows of a table, or, with `group_by` or `aggregates`, one row per group.

    Aggregates are named `mean(column)`, a quantile `q0.95(column)`, the number of rows `count`; `order_by` names one
    of the answer's columns. In filters names may stand for ids: `hydro_id == "FURNAS"`.
    """
    if not 1 <= limit <= MOST_ROWS:
        raise OptionError(f"limit: expected 1 to {MOST_ROWS}, got {limit}.")
    schema = tables.describe(table)
    comparisons = [_comparison(tables, schema, each) for each in where]
    if group_by or aggregates:
        if columns:
            raise OptionError(
                "columns: expected none with group_by or aggregates, got some. Leave them out: the answer has "
                "the keys and the aggregates."
            )
        names, rows, total, read = _groups(
            tables, schema, comparisons, group_by, aggregates, order_by, descending, limit
        )
    else:
        names, rows, total, read = _rows(tables, schema, comparisons, columns, order_by, descending, limit)
    units = {column.name: column.unit for column in schema.columns}
    return TableAnswer(
        run=tables.run,
        table=table,
        columns=names,
        units={name: _unit(name, units) for name in names},
        names=_names(tables, names, rows),
        rows=rows,
        total=total,
        truncated=total > len(rows),
        rows_read=read,
        sources=[tables.source(table)],
    )


def _names(tables: RunTables, columns: list[str], rows: list[list[Any]]) -> dict[str, dict[str, str]]:
    """The names of the ids that are shown."""
    found = {}
    for place, column in enumerate(columns):
        known = tables.names(column)
        shown = {int(row[place]) for row in rows} if known else ()
        if shown:
            found[column] = {str(key): known[key] for key in sorted(shown) if key in known}
    return found


def _groups(
    tables: RunTables,
    schema: Table,
    where: list[Comparison],
    group_by: Sequence[str],
    aggregates: Sequence[Aggregate],
    order_by: str,
    descending: bool,
    limit: int,
) -> tuple[list[str], list[list[Any]], int, int]:
    for key in group_by:
        if _column(schema, key).dtype not in _INTEGERS:
            raise OptionError(f"group_by {key}: expected a column of ids, got one of amounts.")
    chosen = [_measure(schema, each) for each in aggregates] or [Measure("count")]
    keys, values, read = grouped(tables.open(schema.name), group_by, chosen, where)
    names = [*group_by, *(_label(each) for each in chosen)]
    found: list[NDArray[Any]] = [*keys.values(), *values]
    total = len(found[0])
    order = _order(dict(zip(names, found, strict=True)), order_by, descending, total)[:limit]
    return names, _listed([column[order] for column in found]), total, read


def _rows(
    tables: RunTables,
    schema: Table,
    where: list[Comparison],
    columns: Sequence[str],
    order_by: str,
    descending: bool,
    limit: int,
) -> tuple[list[str], list[list[Any]], int, int]:
    names = [_column(schema, name).name for name in columns] or list(schema.names)
    needed = list(dict.fromkeys([*names, *([_column(schema, order_by).name] if order_by else [])]))

    def best(found: Columns) -> tuple[Columns, int]:
        count = len(found[needed[0]])
        order = _order(found, order_by, descending, count)[:limit]
        return {name: found[name][order] for name in needed}, count

    kept: Columns | None = None
    total = 0
    file = tables.open(schema.name)
    for part, count in file.reduced(needed, where, best):
        total += count
        if kept is None:
            kept = part
        elif order_by or len(kept[needed[0]]) < limit:
            joined = {name: np.concatenate([kept[name], part[name]]) for name in needed}
            order = _order(joined, order_by, descending, len(joined[needed[0]]))[:limit]
            kept = {name: joined[name][order] for name in needed}
    shown = [kept[name] for name in names] if kept is not None else []
    return names, _listed(shown), total, file.rows


def _comparison(tables: RunTables, schema: Table, given: Filter) -> Comparison:
    if given.op not in OPERATORS:
        raise OptionError(f"filter op: expected one of {', '.join(OPERATORS)}, got {given.op!r}.")
    column = _column(schema, given.column).name
    values = given.value if isinstance(given.value, list | tuple) else [given.value]
    if (given.op != "in" and len(values) != 1) or len(values) > MOST_ROWS:
        raise OptionError(f"filter on {column}: expected one value, got {len(values)}. Use the op 'in'.")
    return Comparison(column, given.op, tuple(tables.key(column, each) for each in values))


def _measure(schema: Table, given: Aggregate) -> Measure:
    if given.function not in FUNCTIONS:
        hint = did_you_mean(given.function, FUNCTIONS, f"There are: {', '.join(FUNCTIONS)}.")
        raise OptionError(f"aggregate: there is no function {given.function!r}.{hint}")
    if given.function == "count":
        return Measure("count")
    q = 0.5 if given.q is None else given.q
    if not 0.0 <= q <= 1.0:
        raise OptionError(f"quantile: expected q from 0 to 1, got {q}.")
    return Measure(given.function, _column(schema, given.column).name, q)


def _column(schema: Table, name: str) -> Any:
    for column in schema.columns:
        if column.name == name:
            return column
    hint = did_you_mean(name, schema.names, f"There are: {', '.join(schema.names)}.")
    raise OptionError(f"table {schema.name}: there is no column {name!r}.{hint}")


def _label(measure: Measure) -> str:
    if measure.function == "count":
        return "count"
    return f"{f'q{measure.q:g}' if measure.function == 'quantile' else measure.function}({measure.column})"


def _unit(name: str, units: dict[str, str]) -> str:
    return units.get(name, "") or units.get(name.partition("(")[2].rstrip(")"), "")


def _order(found: Columns, order_by: str, descending: bool, count: int) -> NDArray[np.int64]:
    """Positions in the order asked for; equal ones stay as they are."""
    if not order_by:
        return np.arange(count)
    if order_by not in found:
        hint = did_you_mean(order_by, found, f"There are: {', '.join(found)}.")
        raise OptionError(f"order_by: expected a column of the answer, got {order_by!r}.{hint}")
    values = found[order_by]
    return np.argsort(-values.astype(np.float64) if descending else values, kind="stable")


def _listed(columns: list[NDArray[Any]]) -> list[list[Any]]:
    if not columns:
        return []
    rows: list[list[Any]] = finite([list(row) for row in zip(*(c.tolist() for c in columns), strict=True)])
    return rows
