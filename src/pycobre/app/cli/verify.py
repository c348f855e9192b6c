"""`pycobre verify CASE`: run a case in many ways on this machine and compare every bit of the results."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pycobre.app.results.directory import Results, open_results
from pycobre.app.results.schemas import SIMULATION_TABLES
from pycobre.app.wording import duration
from pycobre.comm import available_backends
from pycobre.errors import OptionError, OutputError

__all__ = ["Fingerprint", "Way", "fingerprint", "ways"]

BACKENDS = ("local", "shm", "tcp", "mpi")
SAME, DIFFERENT = 0, 1


@dataclass(frozen=True)
class Way:
    """One way to run a case."""

    backend: str
    ranks: int
    threads: int

    def __str__(self) -> str:
        return f"{self.backend:7}{self.ranks:6}{self.threads:9}"


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of everything a run promises to reproduce."""

    iterations: str
    lower: str
    upper: str
    cuts: str
    policy: str
    tables: str

    def __str__(self) -> str:
        hashes = (self.lower, self.upper, self.cuts, self.policy, self.tables)
        return f"{self.iterations:>6}" + "".join(f"  {text[:7]:7}" for text in hashes)


HEADING = "backend ranks  threads  iter  lower    upper    cuts     policy   tables"


class _RunFailed(Exception):
    """One of the runs ended with an error, which is its text; it never leaves this package."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", type=Path, help="case directory")
    parser.add_argument("--ranks", default="1,2,3,4", metavar="N,…", help="numbers of ranks (1,2,3,4)")
    parser.add_argument("--backends", default="local,shm,tcp,mpi", metavar="B,…", help="backends (all four)")
    parser.add_argument("--threads", default="1,2,4", metavar="T,…", help="threads of each rank (1,2,4)")
    parser.add_argument(
        "--mpiexec", default="mpiexec", metavar="CMD", help="what starts MPI ranks, such as srun (mpiexec)"
    )
    parser.add_argument(
        "--iterations", type=int, default=20, metavar="N", help="stop there if the case does not before (20)"
    )
    parser.add_argument("--scenarios", type=int, default=20, metavar="S", help="simulated scenarios (20)")


def run(arguments: argparse.Namespace) -> int:
    """Print a row per way and the verdict; 1 when anything differs."""
    for name in ("iterations", "scenarios"):
        if (count := getattr(arguments, name)) < 1:
            raise OptionError(f"--{name}: expected at least 1, got {count}.")
    rules = _stopping_rules(arguments.case, arguments.iterations)
    reasons = {name: status.reason for name, status in available_backends().items() if not status}
    launcher = shlex.split(arguments.mpiexec)
    if not launcher or shutil.which(launcher[0]) is None:
        reasons.setdefault("mpi", f"there is no {arguments.mpiexec!r} on the PATH")
    wanted = list(
        ways(_names(arguments.backends), _numbers(arguments, "ranks"), _numbers(arguments, "threads"))
    )
    print(HEADING)
    first: Fingerprint | None = None
    differing = skipped = failed = 0
    for number, way in enumerate(wanted):
        if way.backend in reasons:
            skipped += 1
            print(f"{way}  skipped: {reasons[way.backend]}", flush=True)
            continue
        try:
            found, seconds = _run(arguments, rules, way, number)
        except _RunFailed as failure:
            failed += 1
            print(f"{way}  failed: {failure}", flush=True)
            continue
        first = first or found
        verdict = "" if found == first else f"differs in {_differences(first, found)}"
        differing += bool(verdict)
        print(f"{way}{found}  {verdict or duration(seconds)}", flush=True)
    print()
    ran = len(wanted) - skipped
    if failed:
        print(f"{failed} of {ran} runs failed: docs/guides/why-did-my-run-stop.md says what to do")
    if first is None and not failed:
        print("nothing could be run here: `pycobre doctor` says why")
        return DIFFERENT
    if differing:
        print(f"{differing} of {ran} runs differ from the first: please report this with the output above")
        return DIFFERENT
    if failed:
        return DIFFERENT
    print(f"all {ran} runs are the same, bit for bit" + (f"; {skipped} skipped" if skipped else ""))
    return SAME


def ways(backends: list[str], ranks: list[int], threads: list[int]) -> Iterator[Way]:
    """Every combination that exists: local has one rank, the others run with each number of ranks."""
    for backend in backends:
        for size in [1] if backend == "local" else [n for n in ranks if n > 1 or backend != "mpi"]:
            for count in threads:
                yield Way(backend, size, count)


def fingerprint(results: Results) -> Fingerprint:
    """Hash a result directory's promises, each on its own."""
    convergence = results.convergence
    names = [name for name in convergence.column_names if name.startswith("upper")]
    tables = hashlib.sha256()
    for table in SIMULATION_TABLES:
        path = results.directory / table.path
        if path.is_file():
            tables.update(path.read_bytes())
    return Fingerprint(
        iterations=str(results.metadata["iterations"]),
        lower=hashlib.sha256(convergence["lower_bound"].to_numpy().tobytes()).hexdigest(),
        upper=hashlib.sha256(b"".join(convergence[name].to_numpy().tobytes() for name in names)).hexdigest(),
        cuts=results.metadata["policy_digest"],
        policy=hashlib.sha256(results.policy_path.read_bytes()).hexdigest(),
        tables=tables.hexdigest(),
    )


def _differences(a: Fingerprint, b: Fingerprint) -> str:
    names = ("iterations", "lower", "upper", "cuts", "policy", "tables")
    return ", ".join(name for name in names if getattr(a, name) != getattr(b, name))


def _stopping_rules(case: Path, iterations: int) -> str:
    """The case's own rules as JSON, so that the iteration at which they stop is compared too.

    They stop at `iterations` at the latest. A limit of time is left out: where the clock stops a run is no promise.
    """
    from pycobre.hydro.files import case_files, load_case

    rules = json.loads(case_files(load_case(case))["config.json"])["training"]["stopping_rules"]
    limits = [rule["limit"] for rule in rules if rule["type"] == "iteration_limit"]
    kept = [rule for rule in rules if rule["type"] not in ("iteration_limit", "time_limit")]
    return json.dumps([*kept, {"type": "iteration_limit", "limit": min([iterations, *limits])}])


def _run(arguments: argparse.Namespace, rules: str, way: Way, number: int) -> tuple[Fingerprint, float]:
    with tempfile.TemporaryDirectory(prefix="pycobre-verify-") as output:
        command = [sys.executable, "-m", "pycobre", "run", str(arguments.case), "--output", output, "--quiet"]
        command += ["--set", f"training.stopping_rules={rules}", "--scenarios", str(arguments.scenarios)]
        command += ["--backend", way.backend, "--threads", str(way.threads)]
        if way.backend == "mpi":
            launcher = shlex.split(arguments.mpiexec)
            command = [*launcher, "-n", str(way.ranks), *_mpi_flags(launcher[0]), *command]
        elif way.ranks > 1:
            command += ["--workers", str(way.ranks)]
        environ = {**os.environ, "PYTHONHASHSEED": str(number)}  # the order of sets may not matter either
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            error = next((line for line in said if line.startswith("error: ")), said[-1] if said else "")
            raise _RunFailed(f"exit code {done.returncode}: {error.removeprefix('error: ')}")
        try:
            results = open_results(output)
        except OutputError as error:
            where = "Set TMPDIR to a directory that all hosts see."
            raise _RunFailed(
                f"rank 0 wrote its results where they are not seen from here. {where}"
            ) from error
        return fingerprint(results), float(results.metadata["elapsed_s"])


def _mpi_flags(launcher: str) -> list[str]:
    """What Open MPI's launcher wants before it starts more ranks than cores, or anything as root."""
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version and "OpenRTE" not in version and "PRRTE" not in version:
        return []
    return ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]


def _numbers(arguments: argparse.Namespace, option: str) -> list[int]:
    text: str = getattr(arguments, option)
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as cause:
        raise OptionError(f"--{option}: expected numbers separated by commas, got {text!r}.") from cause
    if min(numbers) < 1:
        raise OptionError(f"--{option}: expected numbers above 0, got {text!r}.")
    return numbers


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in BACKENDS:
            raise OptionError(f"--backends: expected some of {', '.join(BACKENDS)}, got {name!r}.")
    return names
