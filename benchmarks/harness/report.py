"""One Markdown page over everything that a directory of findings has collected."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.harness.catalogue import CATALOGUE
from benchmarks.harness.document import Figure
from benchmarks.harness.driver import RECORD, Outcome, read_document
from benchmarks.harness.machine import look

__all__ = ["write_report"]


def write_report(directory: Path) -> Path:
    """One Markdown page over everything that the directory has collected."""
    record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    parts = ["# Measured", "\n".join(f"- {line}" for line in look().lines())]
    targets = [figure for name in CATALOGUE if name in record for figure in _figures(directory, name)]
    if targets:
        missed = sum(not figure.met for figure in targets)
        rows = [_row(figure) for figure in targets]
        head = [
            f"## Targets: {len(targets) - missed} of {len(targets)} met",
            "",
            "| figure | measured | target | met |",
        ]
        parts.append("\n".join([*head, "|---|---|---|---|", *rows]))
    for name, benchmark in CATALOGUE.items():
        if name not in record:
            continue
        found = Outcome(**{key: value for key, value in record[name].items() if key != "machine"})
        load = record[name]["machine"]["load"][0]
        parts.append(f"## {name}: {benchmark.purpose}")
        if found.skipped:
            parts.append(f"Skipped: {found.skipped}.")
            continue
        parts.append(f"`{found.command}` ({found.seconds:.0f} s, load {load:.2f} afterwards)")
        parts.append(found.text if found.text.startswith("**") else f"```text\n{found.text}\n```")
        pictures = sorted(directory.glob(f"{name}-*.png"))
        parts += [f"![{name}]({picture.name})" for picture in pictures]
    path = directory / "report.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _figures(directory: Path, name: str) -> list[Figure]:
    document = read_document(directory / f"{name}.json")
    return [figure for figure in document.figures if figure.met is not None] if document else []


def _target(figure: Figure) -> str:
    return f"≤ {figure.at_most:.3g}" if figure.at_most is not None else f"≥ {figure.at_least:.3g}"


def _row(figure: Figure) -> str:
    measured = f"{figure.value:.3g} {figure.unit}".strip()
    return f"| {figure.name} | {measured} | {_target(figure)} | {'yes' if figure.met else '**no**'} |"
