"""`pycobre compare A B`: are two runs the same, and where not, by how much?"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pycobre.results import Results, open_results

SAME, DIFFERENT = 0, 1


@dataclass(frozen=True)
class Difference:
    """One row of the comparison; `detail` is empty where both are the same."""

    what: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", type=Path, help="result directory")
    parser.add_argument("second", metavar="B", type=Path, help="another one")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per part; 1 when anything but the clocks differs."""
    rows = compare(open_results(arguments.first), open_results(arguments.second))
    for row in rows:
        print(f"{row.what:28} {row.detail or 'same'}")
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
    rows = [
        Difference(key, _plain(first.metadata.get(key), second.metadata.get(key)))
        for key in ("input_hash", "config_hash", "iterations", "termination_reason", "policy_digest")
    ]
    rows.append(_table("convergence", first, second))
    for name in sorted({*first.simulated, *second.simulated}):
        if name in first.simulated and name in second.simulated:
            rows.append(_table(name, first, second))
        else:
            where = first.directory if name in first.simulated else second.directory
            rows.append(Difference(name, f"only in {where}"))
    return rows


def _plain(a: object, b: object) -> str:
    return "" if a == b else f"{_short(a)} against {_short(b)}"


def _short(value: object) -> str:
    text = str(value)
    return f"{text[:12]}…" if len(text) > 20 else text


def _table(name: str, first: Results, second: Results) -> Difference:
    """The largest relative difference of a table's numbers, and where it is."""
    a, b = (r.convergence if name == "convergence" else r.simulation(name) for r in (first, second))
    if a.equals(b):
        return Difference(name, "")
    if a.schema != b.schema or a.num_rows != b.num_rows:
        return Difference(name, f"{a.num_rows} rows against {b.num_rows}")
    worst, place = 0.0, ""
    for column in a.column_names:
        x, y = (table[column].to_numpy().astype(np.float64) for table in (a, b))
        gap = np.abs(x - y) / np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))
        gap = np.where(np.isnan(x) & np.isnan(y), 0.0, np.nan_to_num(gap, nan=np.inf))
        if gap.size and gap.max() > worst:
            row = int(gap.argmax())
            worst, place = float(gap[row]), f"{column}, row {row}: {x[row]:.9g} against {y[row]:.9g}"
    return Difference(name, f"differs by up to {worst:.2g} ({place})")
