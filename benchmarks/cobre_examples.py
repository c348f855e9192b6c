"""Bounds of example cases against Cobre's, iteration by iteration: the same cases, settings and random numbers.

    python -m benchmarks.cobre_examples --examples DIRECTORY [--case NAME] [--iterations N]

`--examples`, or `PYCOBRE_BENCH_EXAMPLES`, is a directory with case directories at any depth: a checkout of Cobre's
repository, whose examples are in the form of 0.5 and are migrated here, or cases in the form of 0.18. Where plans are
unique the bounds are equal; where several are optimal the solvers may choose differently, and the bounds differ from
the second iteration on.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cobre_environment import Missing, cobre_python
from benchmarks.cobre_runs import run_cobre, run_own
from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from pycobre.errors import CobreError
from pycobre.hydro.files import migrate, validate

__all__ = ["EXAMPLES_VARIABLE", "Comparison", "cases_in", "measure"]

EXAMPLES_VARIABLE = "PYCOBRE_BENCH_EXAMPLES"
MOST_ITERATIONS = 40  # of either program: the larger examples ask for hundreds
SAME = 1e-9
TOP_LEVEL = ("config.json", "stages.json", "system")


@dataclass(frozen=True)
class Comparison:
    """The lower bounds of both programs, by iteration, or why there are none."""

    name: str
    cobre: tuple[float, ...] = ()
    own: tuple[float, ...] = ()
    reason: str = ""

    @property
    def differences(self) -> tuple[float, ...]:
        """Relative, by iteration."""
        both = zip(self.cobre, self.own, strict=False)
        return tuple(abs(ours - theirs) / max(1.0, abs(theirs)) for theirs, ours in both)

    def row(self) -> tuple[Any, ...]:
        if self.reason:
            return (self.name, None, None, None, None, None, self.reason)
        found = self.differences
        last = len(found) - 1
        equal = max(found) <= SAME
        said = "equal" if equal else "first equal" if found[0] <= SAME else "differ"
        return (self.name, last + 1, self.cobre[last], self.own[last], found[0], found[last], said)


def cases_in(root: Path) -> list[Path]:
    """All case directories under `root`, by path; results in them are none."""
    marks = sorted(root.rglob("stages.json"))
    return [p.parent for p in marks if all((p.parent / name).exists() for name in TOP_LEVEL)]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--examples", type=Path, help=f"directory with case directories ({EXAMPLES_VARIABLE})"
    )
    parser.add_argument("--case", help="the cases whose name contains this")
    parser.add_argument(
        "--iterations", type=int, default=MOST_ITERATIONS, help=f"at most ({MOST_ITERATIONS})"
    )


def measure(settings: entry.Settings) -> Document:
    """Compare bounds with Cobre's on example cases."""
    given = settings.given.get("examples") or os.environ.get(EXAMPLES_VARIABLE)
    if not given:
        return Document("cobre-examples", skipped=f"name the cases by --examples or {EXAMPLES_VARIABLE}")
    try:
        python = cobre_python()
    except Missing as reason:
        return Document("cobre-examples", skipped=str(reason))
    found = [p for p in cases_in(Path(given)) if (settings.given.get("case") or "") in p.name]
    most = min(settings.given.get("iterations") or MOST_ITERATIONS, 3 if settings.quick else 10**9)
    compared = [compare(python, path, most) for path in found[: 2 if settings.quick else None]]
    differing = [each for each in compared if not each.reason and max(each.differences) > SAME]
    return Document(
        "cobre-examples",
        tables=(
            Table(
                f"lower bounds, at most {most} iterations",
                ("case", "iterations", "Cobre", "pycobre", "first: rel. diff.", "last: rel. diff.", ""),
                tuple(each.row() for each in compared),
            ),
        ),
        figures=(
            Figure("cases", len(compared)),
            Figure(f"cases with a bound that differs by more than {SAME:g}", len(differing)),
            Figure("cases that a program refuses", sum(bool(each.reason) for each in compared)),
        ),
        data={each.name: {"cobre": each.cobre, "own": each.own} for each in compared},
    )


def compare(python: Path, case: Path, iterations: int) -> Comparison:
    """Train one case with both programs."""
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        copy = root / "case"
        try:
            if any(finding.kind == "old_form" for finding in validate(case)):
                migrate(case, copy)
            else:
                shutil.copytree(case, copy, ignore=shutil.ignore_patterns("output"))
        except CobreError as error:
            return Comparison(case.name, reason=f"not migrated: {_first(error)}")
        _limit(copy / "config.json", iterations)
        try:
            own = run_own(copy, root / "own").lower_bound
        except RuntimeError as error:
            return Comparison(case.name, reason=f"pycobre: {_first(error)}")
        try:
            theirs = run_cobre(python, copy, root / "cobre", 1).lower_bound
        except RuntimeError as error:
            return Comparison(case.name, reason=f"Cobre: {_first(error)}")
    return Comparison(case.name, theirs, own)


def _limit(path: Path, iterations: int) -> None:
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for rule in config["training"]["stopping_rules"]:
        if rule["type"] == "iteration_limit":
            rule["limit"] = min(rule["limit"], iterations)
    config["simulation"] = {**config.get("simulation", {}), "enabled": False}
    path.write_text(json.dumps(config), encoding="utf-8")


def _first(error: Exception) -> str:
    """The line that says why: the last one of a traceback, else the first."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if "Error" in line or line.startswith("error")]
    return (said or lines or [""])[-1].strip()[:160]


if __name__ == "__main__":
    entry.main(measure, arguments)
