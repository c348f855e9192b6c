"""Random damage to the files of a case, as a strategy: one or two small changes anywhere."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from rich_case import Files, parquet_of, table_of

_WORDS = (
    *(
        "x",
        "",
        "2024-13-01",
        "2024-02-30",
        "2027-01-01",
        "fpha",
        "linearized_head",
        "cyclic",
        "chronological",
    ),
    *(
        "truncation",
        "none",
        "truncation_with_penalty",
        "historical_residuals",
        "lhs",
        "qmc_sobol",
        "selective",
    ),
    *(
        "out_of_sample",
        "external",
        "historical",
        "computed",
        "seasonal",
        "enumerated",
        "export",
        "load",
        "ncs",
    ),
    *("level1", "per_stage", "hydro_storage(0)", "hydro_outflow(1, 2) <= 30", "bus_deficit(0) - 1e400"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 99, 10**12, -(2**31), 1e9, 1e300, -5.5, 0.5, 1e-12),
    *([], {}, [1, 2], {"a": 1}, {"cvar": {"alpha": 0.5, "lambda": 0.5}}, {"scheme": "out_of_sample"}),
    *_WORDS,
)


@st.composite
def damaged(draw: st.DrawFn, cases: tuple[Callable[[], Mapping[str, bytes]], ...]) -> Files:
    """The files of one of the cases with one or two changes; now and then none of them matters."""
    changed = dict(draw(st.sampled_from(cases))())
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        name = draw(st.sampled_from(sorted(changed)))
        if draw(st.integers(0, 29)) == 0:
            del changed[name]
        elif draw(st.integers(0, 29)) == 0:
            at = draw(st.integers(0, len(changed[name])))
            changed[name] = changed[name][:at] + draw(st.binary(max_size=3)) + changed[name][at + 1 :]
        elif name.endswith(".json"):
            changed[name] = _json(draw, changed[name])
        else:
            changed[name] = _table(draw, changed[name])
    return changed


def _json(draw: st.DrawFn, content: bytes) -> bytes:
    try:
        data = json.loads(content)
    except ValueError:  # damaged already
        return content
    places = list(_places(data))
    if not places:
        return content
    holder, key = draw(st.sampled_from(places))
    old = holder[key]
    action = draw(st.sampled_from(("set", "set", "set", "set", "remove", "again", "rename")))
    if action == "set" and type(old) in (int, float) and draw(st.booleans()):
        holder[key] = draw(st.sampled_from((-old, 2 * old, old + 1, old - 1, 0, float(old), 1000 * old)))
    elif action == "set":
        holder[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    elif action == "remove":
        del holder[key]
    elif isinstance(holder, list):
        holder.append(copy.deepcopy(old))
    else:
        holder[f"{key}s"] = old if action == "again" else holder.pop(key)
    return json.dumps(data).encode()


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) in a JSON document; of long lists, the first few elements."""
    keys = list(data) if isinstance(data, dict) else range(min(len(data), 6))
    for key in keys:
        yield data, key
        if isinstance(data[key], dict | list):
            yield from _places(data[key])


def _table(draw: st.DrawFn, content: bytes) -> bytes:
    try:
        table = table_of(content)
    except (pa.ArrowException, OSError):  # damaged already
        return content
    if not table.num_rows or not table.num_columns:
        return content
    row = draw(st.integers(0, table.num_rows - 1))
    column = draw(st.integers(0, table.num_columns - 1))
    name = table.column_names[column]
    match draw(
        st.sampled_from(("cell", "cell", "cell", "remove", "again", "drop", "rename", "retype", "empty"))
    ):
        case "cell":
            values = table[name].to_pylist()
            kind = table[name].type
            values[row] = draw(st.sampled_from(_cells(values[row])))
            table = table.set_column(column, name, pa.array(values, type=kind))
        case "remove":
            table = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
        case "again":
            table = pa.concat_tables([table, table.slice(row, 1)])
        case "drop":
            table = table.remove_column(column)
        case "rename":
            table = table.rename_columns([f"{n}s" if n == name else n for n in table.column_names])
        case "retype":
            table = table.set_column(column, name, table[name].cast(pa.string()))
        case "empty":
            table = table.slice(0, 0)
    return parquet_of(table)


def _cells(old: Any) -> tuple[Any, ...]:
    if isinstance(old, date):
        return (None, date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31))
    if isinstance(old, int):
        return (None, -1, 0, 1, 2, 5, 99, -3, 2**31 - 1, -(2**31))
    if isinstance(old, str):
        return (None, "", "x")
    return (None, -1.0, 0.0, 1e9, float("nan"), float("inf"), 1e300, 0.5, -old if old else 1.0)
