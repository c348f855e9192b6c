"""Damage real training runs, at random moments, and count what came of it.

    python tests/faults/run_faults.py [--trials 20 | --each-kind] [--seed 1] [--first N] [--plain] [--defaults]
        [--verbose] [BACKEND …]

A trial kills, stops, delays or starves a rank, fills the disk or the shared memory, or cuts the link, in a phase
of the run that is addressed by its name (see `sabotage/saboteur.py`). It must come to the policy of an undisturbed
run, or to an error that names the rank on all survivors, after which the run is resumed from its checkpoints and must
come to that policy. Prints a table; the exit code is 1 when a trial hung, leaked, or ended in anything else.
As root the disk and the shared memory are mounts of its own, and the link is one between network namespaces; without
it, or with --plain, a limit on the size of files takes the place of the mounts, and no link is cut. With --defaults
the runs are those of somebody who sets nothing: no checkpoint interval, no timeouts. Then whoever started a run is
killed too, and nothing that is found by patience alone is tried, because that takes minutes. "lost" are finished
iterations that had to be done again, at worst.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from fault_plan import RANKS, make_trial
from fault_system import Hosts, Mounts
from fault_trials import Stage, Verdict, run_trial, undisturbed

HEADING = "backend  trials  struck  correct  detected  unnamed  resumed  lost  median s  worst s  leaks  hangs  wrong"


def row(backend: str, verdicts: list[Verdict]) -> str:
    """One backend's line of the table."""
    times = [verdict.detection_s for verdict in verdicts if verdict.detection_s is not None]
    median, worst = (f"{statistics.median(times):.2f}", f"{max(times):.2f}") if times else ("-", "-")
    counts = [
        sum(getattr(verdict, name) for verdict in verdicts)
        for name in ("struck", "correct", "detected", "unnamed", "resumed")
    ]
    bad = [sum(bool(getattr(verdict, name)) for verdict in verdicts) for name in ("leaks", "hangs", "wrong")]
    first = "".join(f"{text:>{width}}" for text, width in zip(counts, (8, 9, 10, 9, 9), strict=True))
    last = "".join(f"{text:>7}" for text in bad)
    lost = max((verdict.lost for verdict in verdicts if verdict.lost is not None), default=0)
    return f"{backend:7}{len(verdicts):8}{first}{lost:>6}{median:>10}{worst:>9}{last}"


def run_backend(backend: str, arguments: argparse.Namespace, mounts: Mounts) -> list[Verdict]:
    """All trials of one backend, with a line for each that is not as it should be."""
    verdicts: list[Verdict] = []
    tried: set[str] = set()
    cpus = sorted(os.sched_getaffinity(0))
    hosts = Hosts()
    refusal = "--plain" if arguments.plain else hosts.build() if backend == "tcp" else ""
    try:
        with tempfile.TemporaryDirectory(prefix="pcf-", dir="/tmp") as directory:
            stage = Stage(backend, Path(directory), mounts, hosts, arguments.defaults)
            census = undisturbed(stage)
            for number in range(arguments.first, arguments.first + arguments.trials):
                trial = make_trial(backend, number, arguments.seed, census, cpus, defaults=arguments.defaults)
                if arguments.each_kind and trial.kind in tried:
                    continue
                tried.add(trial.kind)
                if trial.kind == "cut" and refusal:
                    print(f"{trial}: left out, {refusal}", flush=True)
                    continue
                verdict = run_trial(stage, trial)
                verdicts.append(verdict)
                if verdict.faults or arguments.verbose:
                    print(f"{trial}: {outcome(verdict)}", flush=True)
                    for fault in verdict.faults:
                        print(f"    {fault}", flush=True)
    finally:
        if backend == "tcp" and not refusal:
            hosts.remove()
    return verdicts


def outcome(verdict: Verdict) -> str:
    """A trial's end in a line."""
    if verdict.correct:
        return "the correct result" if verdict.struck else "never struck, the correct result"
    after = "" if verdict.detection_s is None else f" after {verdict.detection_s:.2f} s"
    last = verdict.text.strip().splitlines()[-1] if verdict.text.strip() else ""
    return f"detected{after}, {'resumed' if verdict.resumed else 'not resumed'} ({last})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("backends", nargs="*", choices=[*RANKS, []], metavar="BACKEND")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--each-kind", action="store_true", help="only the first trial of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first trial")
    parser.add_argument("--plain", action="store_true", help="without mounts and network namespaces")
    parser.add_argument("--defaults", action="store_true", help="runs with default settings")
    parser.add_argument("--verbose", action="store_true", help="a line for every trial")
    arguments = parser.parse_args()
    mounts = Mounts(wanted=not arguments.plain)
    rows, bad = [HEADING], 0
    for backend in arguments.backends or RANKS:
        verdicts = run_backend(backend, arguments, mounts)
        rows.append(row(backend, verdicts))
        bad += sum(bool(verdict.faults) for verdict in verdicts)
    print("\n".join(rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
