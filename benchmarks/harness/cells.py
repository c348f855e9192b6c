"""What the benchmarks of solver and algorithm share: `--quick`, `--json FILE`, and the file's one form.

    {"benchmark": name, "quick": bool, "cells": [{"case": …, "name": …, "value": number, "unit": …}, …]}

A cell is one number: `case` says of what (the row of the printed table), `name` what it is (its column).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    case: str
    name: str
    value: float
    unit: str


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that these benchmarks share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smaller run: seconds instead of minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every cell to FILE too")
    return parser


def finish(options: argparse.Namespace, benchmark: str, cells: list[Cell]) -> None:
    """Write the cells where the user asked for them."""
    if options.json is None:
        return
    document = {
        "benchmark": benchmark,
        "quick": options.quick,
        "cells": [asdict(cell) | {"value": round(cell.value, 6)} for cell in cells],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
