"""The Parquet files of a case: read into the model's tables, every problem collected."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.suggest import nearest
from pycobre.hydro.model.case import SECTIONS
from pycobre.hydro.model.findings import Finding, Layer, Severity
from pycobre.hydro.model.table import Table

__all__ = ["PARQUET_SECTIONS", "dump_parquet", "read_parquet"]

PARQUET_SECTIONS: dict[str, type[Table]] = {
    name: each.table for name, each in SECTIONS.items() if each.table is not None
}
"""The tables of a case by section."""

_IGNORED = {"ar_coefficients": {"residual_std_ratio"}}  # derived from the coefficients instead


def read_parquet(content: bytes, section: str) -> tuple[Table | None, list[Finding]]:
    """Read the content of one Parquet file into its table, or None and why not; warnings may come with a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    cls, file = PARQUET_SECTIONS[section], SECTIONS[section].file
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as source:
            codecs = _codecs(source.metadata)
            # Threads of Arrow's pool that are still starting when a short command ends abort the process.
            data = source.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        return None, [
            Finding(
                kind="malformed_parquet",
                layer=Layer.PARSE,
                file=file,
                rule="expected a readable Parquet file",
                value=str(error).splitlines()[0] if str(error) else type(error).__name__,
                suggestion="Write it again, for example with pyarrow and compression='zstd'.",
            )
        ]
    findings: list[Finding] = []
    if "SNAPPY" in codecs:
        findings.append(
            Finding(
                kind="snappy_codec",
                layer=Layer.PARSE,
                file=file,
                rule="expected zstd or no compression",
                value="snappy",
                severity=Severity.WARNING,
                suggestion="pycobre reads it, Cobre does not: write it with compression='zstd'.",
            )
        )
    names = {f.name for f in fields(cls)}
    columns: dict[str, Any] = {}
    for f in fields(cls):
        if f.name not in data.column_names:
            if not f.metadata["optional"]:
                near = nearest(f.name, set(data.column_names) - names)
                findings.append(
                    _problem(
                        "missing_column",
                        file,
                        f.name,
                        "the column is required",
                        suggestion=f"Is {near!r} meant to be it?" if near else "",
                    )
                )
            continue
        values, problems = _column(data.column(f.name), f, file)
        findings += problems
        columns[f.name] = values
    for name in sorted(set(data.column_names) - names - _IGNORED.get(section, set())):
        near = nearest(name, names - set(data.column_names), cutoff=0.8)
        # What looks like a column that is not there is one misspelt; other columns are the author's own.
        findings.append(
            Finding(
                kind="unknown_column",
                layer=Layer.SCHEMA,
                file=file,
                where=name,
                rule="the column has no meaning here and is not read",
                severity=Severity.ERROR if near else Severity.WARNING,
                suggestion=f"Did you mean {near!r}?" if near else "",
            )
        )
    if any(f.severity is Severity.ERROR for f in findings):
        return None, findings
    return cls(**columns), findings


def dump_parquet(table: Table) -> bytes:
    """The content of a Parquet file that `read_parquet` reads back to the same table; equal tables, equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "int32": pa.int32(),
        "uint32": pa.uint32(),
        "float64": pa.float64(),
        "datetime64[D]": pa.date32(),
    }
    columns: dict[str, Any] = {}
    for f in fields(table):
        values = getattr(table, f.name)
        empty = np.isnan(values) if f.metadata["dtype"] == "float64" else values == f.metadata["null"]
        if f.metadata["optional"] and np.all(empty):
            continue
        mask = empty if f.metadata["optional"] else None
        stored = f.metadata.get("stored", f.metadata["dtype"])
        columns[f.name] = pa.array(values, type=types[stored], mask=mask)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


def _column(column: Any, f: Field[Any], file: str) -> tuple[NDArray[Any] | None, list[Finding]]:
    import pyarrow as pa

    dtype, kind = f.metadata["dtype"], column.type
    integer = pa.types.is_integer(kind)
    fits = {
        "int32": integer,
        "float64": integer or pa.types.is_floating(kind),
        "datetime64[D]": pa.types.is_date(kind) or pa.types.is_timestamp(kind),
    }[dtype]
    if not fits:
        return None, [_problem("wrong_type", file, f.name, f"expected {_WORDS[dtype]}", value=str(kind))]
    problems: list[Finding] = []
    if column.null_count == 0 and dtype != "datetime64[D]" and kind != pa.uint64():
        # Arrow's own conversions load its library of functions, which takes longer than reading a small case.
        values, nulls = column.to_numpy(), np.zeros(len(column), bool)
        return _checked(values.astype("int64" if dtype == "int32" else dtype), nulls, f, file, problems)
    import pyarrow.compute as pc

    nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
    if nulls.any() and not f.metadata["optional"]:
        problems.append(
            _problem("null", file, _row(f.name, nulls), "expected a value in every row", value="null")
        )
    if dtype == "datetime64[D]":
        days = column.cast(pa.timestamp("s")).to_numpy(zero_copy_only=False).astype("datetime64[D]")
        return days, problems
    if dtype == "int32":
        values = pc.fill_null(column.cast(pa.int64()), f.metadata["null"]).to_numpy(zero_copy_only=False)
    else:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return _checked(values, nulls, f, file, problems)


def _checked(
    values: NDArray[Any], nulls: NDArray[np.bool_], f: Field[Any], file: str, problems: list[Finding]
) -> tuple[NDArray[Any], list[Finding]]:
    """The values, and the problems with those that are no numbers of their column."""
    if f.metadata["dtype"] == "int32":
        outside = (np.abs(values) > 2**31 - 1) & ~nulls
        if outside.any():
            problems.append(
                _problem(
                    "out_of_range",
                    file,
                    _row(f.name, outside),
                    "expected a 32-bit integer",
                    value=str(values[outside][0]),
                )
            )
        return values, problems
    bad = ~np.isfinite(values) & ~nulls
    if bad.any():
        problems.append(
            _problem(
                "not_finite", file, _row(f.name, bad), "expected a finite number", value=str(values[bad][0])
            )
        )
    return values, problems


_WORDS = {"int32": "integers", "float64": "numbers", "datetime64[D]": "dates"}


def _row(name: str, mask: NDArray[np.bool_]) -> str:
    return f"{name}, row {int(np.flatnonzero(mask)[0])}"


def _problem(kind: str, file: str, where: str, rule: str, value: str = "", suggestion: str = "") -> Finding:
    return Finding(
        kind=kind,
        layer=Layer.SCHEMA,
        file=file,
        where=where,
        rule=rule,
        value=value,
        suggestion=suggestion,
    )


def _codecs(metadata: Any) -> set[str]:
    return {
        metadata.row_group(g).column(c).compression
        for g in range(metadata.num_row_groups)
        for c in range(metadata.num_columns)
    }
