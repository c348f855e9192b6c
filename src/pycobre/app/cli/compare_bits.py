"""`pycobre compare A B --bits`: are two runs the same, and where not, by how much?"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pycobre.app.origin import differences
from pycobre.app.results.directory import Results

if TYPE_CHECKING:
    import pyarrow as pa

SAME, DIFFERENT = 0, 1
_NAMED = 20  # columns for the name of a part, of the 80 that a line may have


@dataclass(frozen=True)
class Difference:
    """One row of the comparison; `detail` is empty where both are the same."""

    what: str
    detail: str


def run(first: Results, second: Results) -> int:
    """Print a line per part; 1 when anything but the clocks differs."""
    rows = compare(first, second)
    for row in rows:
        # Paths and hashes stay whole, to be copied.
        detail = textwrap.wrap(
            row.detail or "same", 79 - _NAMED, break_long_words=False, break_on_hyphens=False
        )
        print(f"{row.what:{_NAMED}} " + f"\n{'':{_NAMED + 1}}".join(detail))
    different = [row for row in rows if row.detail]
    print()
    print(
        f"{len(different)} of {len(rows)} parts differ"
        if different
        else "the two runs are the same, bit for bit"
    )
    return DIFFERENT if different else SAME


def compare(first: Results, second: Results) -> list[Difference]:
    """What is the same in two runs and what is not. Times and places never count."""
    a, b = first.metadata, second.metadata
    rows = [
        Difference("input_hash", _hash("input_hash", "inputs", a, b)),
        Difference("config_hash", _hash("config_hash", "config", a, b)),
    ]
    for key in ("iterations", "termination_reason", "policy_digest"):
        if key in a or key in b:  # a simulation alone has no iterations
            rows.append(Difference(key, _plain(a.get(key), b.get(key))))
    tables = (_tables(first), _tables(second))
    for name in sorted({*tables[0], *tables[1]}, key=lambda name: (name != "convergence", name)):
        if name in tables[0] and name in tables[1]:
            rows.append(_table(name, first, second))
        else:
            where = first.directory if name in tables[0] else second.directory
            rows.append(Difference(name, f"only in {where}"))
    return rows


def _tables(results: Results) -> tuple[str, ...]:
    return (*(("convergence",) if results.trained else ()), *results.simulated)


def _hash(key: str, part: str, a: dict[str, Any], b: dict[str, Any]) -> str:
    """Two hashes, and what is behind their difference where both runs have noted it."""
    said = _plain(a.get(key), b.get(key))
    if said and part in a and part in b:
        changes = differences(a[part], b[part])
        said += ": " + "; ".join(
            path if part == "inputs" else f"{path} {one} against {other}" for path, one, other in changes
        )
    return said


def _plain(a: object, b: object) -> str:
    return "" if a == b else f"{_short(a)} against {_short(b)}"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return f"{text[:12]}…" if len(text) > 20 else text


def _table(name: str, first: Results, second: Results) -> Difference:
    """The largest relative difference of a table's numbers, and of which row."""
    a, b = (r.convergence if name == "convergence" else r.simulation(name) for r in (first, second))
    if a.equals(b):
        return Difference(name, "")
    if a.column_names != b.column_names:
        odd = ", ".join(sorted({*a.column_names} ^ {*b.column_names}))
        return Difference(name, f"other columns: {odd or 'in another order'}")
    if a.num_rows != b.num_rows:
        return Difference(name, f"{a.num_rows} rows against {b.num_rows}")
    worst, place = 0.0, "only in what is not a number"
    for column in a.column_names:
        x, y = (table[column].to_numpy().astype(np.float64) for table in (a, b))
        gap = np.abs(x - y) / np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))
        gap = np.where(np.isnan(x) & np.isnan(y), 0.0, np.nan_to_num(gap, nan=np.inf))
        if gap.size and gap.max() > worst:
            row = int(gap.argmax())
            worst, place = float(gap[row]), f"{column} of {_key(a, row)}: {x[row]:.9g} against {y[row]:.9g}"
    return Difference(name, f"differs by up to {worst:.2g} ({place})")


def _key(table: pa.Table, row: int) -> str:
    """What a row is about, by the columns that name it."""
    names = [name for name in table.column_names if name.endswith("_id") or name in ("iteration", "depth")]
    return ", ".join(f"{name.removesuffix('_id')} {table[name][row].as_py()}" for name in names)
