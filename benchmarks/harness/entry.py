"""The main program of a benchmark: `python -m benchmarks.NAME [--quick] [--rounds N] [--only PART] [--json FILE]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.harness.document import Document, show

__all__ = ["Settings", "main"]


@dataclass(frozen=True)
class Settings:
    """How much to measure."""

    quick: bool = False  #: small sizes, one round: whether it works
    rounds: int = 3  #: repetitions of everything, interleaved
    only: str = ""  #: a part of the benchmark, where it has parts
    given: dict[str, Any] = field(default_factory=dict)  #: the benchmark's own arguments, by name

    def repetitions(self, usual: int = 3) -> int:
        """Repetitions of something that is usually measured so often."""
        return 1 if self.quick else max(1, usual * self.rounds // 3)


def main(
    measure: Callable[[Settings], Document],
    arguments: Callable[[argparse.ArgumentParser], None] | None = None,
) -> None:
    """Measure, print the findings, and write them where asked; `arguments` adds those of this benchmark alone."""
    parser = argparse.ArgumentParser(description=measure.__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: whether it works")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="repetitions (3)")
    parser.add_argument("--only", default="", metavar="PART", help="a part of it, where it has parts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings there too")
    if arguments is not None:
        arguments(parser)
    given = parser.parse_args()
    document = measure(Settings(given.quick, given.rounds, given.only, vars(given)))
    if given.quick:
        # Small sizes say whether a benchmark works, not whether its targets are met.
        document = replace(
            document, figures=tuple(replace(f, at_most=None, at_least=None) for f in document.figures)
        )
    print(show(document))
    if given.json is not None:
        document.write(given.json)
