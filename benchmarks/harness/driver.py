"""Runs benchmarks one after the other, each in a process of its own, and keeps what they say.

A directory collects the findings: `NAME.txt` as printed, `NAME.json` as data, `NAME-….png`, and one `report.md`
over everything in it, so that a long selection can be measured piece by piece.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness.catalogue import Benchmark
from benchmarks.harness.document import Document
from benchmarks.harness.machine import look
from benchmarks.harness.plots import draw

__all__ = ["RECORD", "Outcome", "read_document", "run_all"]

TIMEOUT_S = 3600.0
RECORD = "record.json"


@dataclass(frozen=True)
class Outcome:
    """How one benchmark ended."""

    name: str
    command: str
    seconds: float
    code: int
    text: str
    skipped: str = ""

    @property
    def failed(self) -> bool:
        return self.code != 0


def run_all(
    chosen: Sequence[Benchmark],
    directory: Path,
    root: Path,
    *,
    quick: bool,
    rounds: int | None,
    say: Callable[[str], None],
) -> list[Outcome]:
    """Run the chosen benchmarks of the checkout `root`, each in a process of its own.

    One that fails or is skipped says why and does not keep the others from running.
    """
    directory.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number, benchmark in enumerate(chosen, 1):
        say(f"[{number}/{len(chosen)}] {benchmark.name}: {benchmark.purpose}")
        outcome = _run(benchmark, directory, root, quick=quick, rounds=rounds)
        outcomes.append(outcome)
        say(f"skipped: {outcome.skipped}" if outcome.skipped else outcome.text)
        say(f"({outcome.seconds:.0f} s)\n")
        _remember(directory, outcome)
    return outcomes


def _run(benchmark: Benchmark, directory: Path, root: Path, *, quick: bool, rounds: int | None) -> Outcome:
    result = directory.resolve() / f"{benchmark.name}.json"
    result.unlink(missing_ok=True)
    command = benchmark.command()
    environ = {**os.environ, "PYTHONPATH": _search_path(root)}
    asked = _help(command, root, environ)
    if asked.returncode:
        return Outcome(benchmark.name, shlex.join(["python", *command[1:]]), 0.0, 1, asked.stderr[-1500:])
    understood = asked.stdout
    if quick and "--quick" not in understood:
        return Outcome(benchmark.name, "", 0.0, 0, "", "it has no quick form")
    command += ["--quick"] if quick else []
    command += ["--rounds", str(rounds)] if rounds is not None and "--rounds" in understood else []
    shown = shlex.join(["python", *command[1:]])
    command += ["--json", str(result)] if "--json" in understood else []
    begin = time.monotonic()
    try:
        code, text, errors = _finish(command, root, environ)
    except subprocess.TimeoutExpired:
        code, text, errors = 1, "", f"not finished after {TIMEOUT_S:.0f} s"
    if code:
        text = f"{text}\nfailed with exit code {code}:\n{errors[-1500:]}".strip()
    spent = time.monotonic() - begin
    document = read_document(result)
    skipped = document.skipped if document else ""
    if document:
        _draw(document, directory)
    (directory / f"{benchmark.name}.txt").write_text(text + "\n", encoding="utf-8")
    return Outcome(benchmark.name, shown, spent, code, text, skipped)


def _finish(command: Sequence[str], root: Path, environ: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit code and output of a benchmark; if this process is stopped, those it started in turn end with it."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=root,
        env=environ,
    ) as process:
        try:
            text, errors = process.communicate(timeout=TIMEOUT_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, text.strip(), errors


def _help(command: Sequence[str], root: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What a benchmark says about its options."""
    return subprocess.run(
        [*command, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=root,
        env=environ,
    )


def _search_path(root: Path) -> str:
    """PYTHONPATH with which a child finds `benchmarks`, and those that it starts in turn."""
    before = os.environ.get("PYTHONPATH")
    return f"{root}{os.pathsep}{before}" if before else str(root)


def read_document(path: Path) -> Document | None:
    """The document that a benchmark wrote; some write data of another shape, or none."""
    try:
        return Document.read(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _draw(document: Document, directory: Path) -> None:
    for number, picture in enumerate(document.pictures, 1):
        draw(picture, directory / f"{document.name}-{number}.png")


def _remember(directory: Path, outcome: Outcome) -> None:
    """Add an outcome, and the machine it was measured on, to the directory's record."""
    path = directory / RECORD
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record[outcome.name] = {**asdict(outcome), "machine": look().to_dict()}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
