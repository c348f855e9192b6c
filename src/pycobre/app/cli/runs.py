"""`pycobre runs [DIR]`: the runs in a result directory, the current one and those before it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pycobre.app.results.directory import Results, list_runs, remove_earlier_runs
from pycobre.app.results.layout import RECORD, default_output
from pycobre.app.wording import amount
from pycobre.errors import OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", type=Path, default=Path(), help="result or case directory (.)"
    )
    parser.add_argument("--format", choices=("human", "json"), default="human", help="output format")
    parser.add_argument(
        "--keep", type=int, metavar="N", help="first remove all but the newest N of the earlier runs"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one line per run, the oldest first."""
    root: Path = arguments.directory
    if not (root / RECORD).exists() and default_output(root).is_dir():
        root = default_output(root)
    if arguments.keep is not None:
        if arguments.keep < 0:
            raise OptionError(f"--keep: expected at least 0, got {arguments.keep}.")
        removed = remove_earlier_runs(root, arguments.keep)
        if removed and arguments.format == "human":
            print(f"removed: {', '.join(removed)}")
    rows = [_row(name, found) for name, found in list_runs(root)]
    if arguments.format == "json":
        print(json.dumps(rows, indent=2))
    elif not rows:
        print(f"{root}: no runs\nnext: pycobre run CASE --output {root}")
    else:
        print(_table(rows))
    return 0


def _row(name: str, found: Results) -> dict[str, Any]:
    metadata, record, status = found.metadata, found.record, found.status
    running = status is not None and status.state in ("running", "lost", "failed")
    seen = status if running else None
    return {
        "id": name,
        "state": status.state if status is not None else "finished" if metadata else "unknown",
        "case": metadata.get("case") or (record.case if record is not None else ""),
        "iterations": metadata.get("iterations") if seen is None else seen.iteration,
        "lower_bound": metadata.get("lower_bound") if seen is None else seen.lower_bound,
        "scenarios": metadata.get("simulation", {}).get("scenarios"),
        "policy_digest": metadata.get("policy_digest"),
        "directory": str(found.directory),
    }


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [("run", "state", "iterations", "bound", "scenarios", "policy")]
    for row in rows:
        bound = row["lower_bound"]
        cells.append(
            (
                row["id"],
                row["state"],
                "" if row["iterations"] is None else str(row["iterations"]),
                "" if bound is None else amount(bound),
                "" if row["scenarios"] is None else str(row["scenarios"]),
                (row["policy_digest"] or "")[:12],
            )
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )
