"""The Parquet files of a case: read into the model's tables, every problem collected."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.suggest import nearest
from pycobre.hydro.files.parquet_footer import Footer, largest_decoded, read_footer
from pycobre.hydro.model.case import SECTIONS
from pycobre.hydro.model.findings import Finding, Layer, Severity
from pycobre.hydro.model.table import Table

__all__ = ["PARQUET_SECTIONS", "dump_parquet", "read_parquet"]

PARQUET_SECTIONS: dict[str, type[Table]] = {
    name: each.table for name, each in SECTIONS.items() if each.table is not None
}
"""The tables of a case by section."""

LARGEST_ID = 2**31 - 1
FIRST_DAY, LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
_IGNORED = {"ar_coefficients": {"residual_std_ratio"}}  # derived from the coefficients instead


def read_parquet(content: bytes, section: str) -> tuple[Table | None, list[Finding]]:
    """Read the content of one Parquet file into its table, or None and why not; warnings may come with a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    cls, file = PARQUET_SECTIONS[section], SECTIONS[section].file
    try:
        footer = read_footer(content)
        if footer.decoded > largest_decoded(len(content)):
            return None, [_too_large(file, footer, len(content))]
        with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as source:
            # Threads of Arrow's pool that are still starting when a short command ends abort the process.
            data = source.read(use_threads=False)
        present = data.column_names
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
    if len(set(present)) < len(present):
        twice = sorted(name for name in set(present) if present.count(name) > 1)
        return None, [_problem("duplicate_column", file, twice[0], "a column is there once")]
    findings: list[Finding] = []
    if "SNAPPY" in footer.codecs:
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
        if f.name not in present:
            if not f.metadata["optional"]:
                near = nearest(f.name, set(present) - names)
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
    for name in sorted(set(present) - names - _IGNORED.get(section, set())):
        near = nearest(name, names - set(present), cutoff=0.8)
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
        if f.metadata["optional"] and np.all(empty) and not f.metadata.get("always"):
            continue
        mask = empty if f.metadata["optional"] else None
        stored = f.metadata.get("stored", f.metadata["dtype"])
        columns[f.name] = pa.array(values, type=types[stored], mask=mask)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd", store_schema=False, write_page_checksum=True)
    return bytes(sink.getvalue())


def _column(column: Any, f: Field[Any], file: str) -> tuple[NDArray[Any] | None, list[Finding]]:
    """One column as an array, nulls replaced, and what is wrong; numbers are judged before they are converted."""
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
    nulls = np.zeros(len(column), bool)
    if column.null_count:
        # Arrow's own functions are a library that takes longer to load than reading a small case.
        import pyarrow.compute as pc

        nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
        if dtype != "datetime64[D]":
            column = pc.fill_null(column, 0)
        if not f.metadata["optional"]:
            problems.append(
                _problem("null", file, _row(f.name, nulls), "expected a value in every row", value="null")
            )
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if dtype == "datetime64[D]":
        return _days(values, nulls, f, file, problems)
    if dtype == "int32":
        outside = (values > LARGEST_ID) | (values < -LARGEST_ID)
        if outside.any():
            rule = "expected a 32-bit integer"
            problems.append(
                _problem("out_of_range", file, _row(f.name, outside), rule, value=str(values[outside][0]))
            )
            return None, problems
        return np.where(nulls, f.metadata["null"], values.astype(np.int64)), problems
    numbers = values.astype(np.float64)
    bad = ~np.isfinite(numbers) & ~nulls
    if bad.any():
        problems.append(
            _problem(
                "not_finite", file, _row(f.name, bad), "expected a finite number", value=str(numbers[bad][0])
            )
        )
    numbers[nulls] = np.nan
    return numbers, problems


def _days(
    values: NDArray[Any], nulls: NDArray[np.bool_], f: Field[Any], file: str, problems: list[Finding]
) -> tuple[NDArray[Any], list[Finding]]:
    """Days, whatever the unit of the file; those that no calendar has are findings."""
    days = values.astype("datetime64[D]")
    outside = ((days < FIRST_DAY) | (days > LAST_DAY)) & ~nulls
    if outside.any():
        rule = "expected a date of the years 1 to 9999"
        problems.append(
            _problem("out_of_range", file, _row(f.name, outside), rule, value=str(days[outside][0]))
        )
    return days, problems


def _too_large(file: str, footer: Footer, size: int) -> Finding:
    return Finding(
        kind="table_too_large",
        layer=Layer.PARSE,
        file=file,
        rule=f"expected a table of at most {largest_decoded(size):,} bytes in memory for a file of {size:,}",
        value=f"{footer.rows:,} rows, {footer.decoded:,} bytes",
        suggestion="Leave out rows that repeat others.",
    )


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
