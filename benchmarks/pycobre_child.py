"""One training by pycobre, in an interpreter of its own; prints JSON in the same form as Cobre's."""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.cobre_child import peak_mb
from pycobre.app import train
from pycobre.comm import LocalBackend
from pycobre.events import Event, IterationFinished
from pycobre.hydro.files import load_case
from pycobre.hydro.study import study_of_case
from pycobre.sddp import train as train_problem

__all__ = ["main"]


class Notes:
    """Bounds, times and LPs by iteration; asks to stop when the bound is reached and enough were done."""

    def __init__(self, target: float, at_least: int) -> None:
        self.bounds: list[float] = []
        self.at_s: list[float] = []
        self.cpu_at_s: list[float] = []  #: of this process, threads included
        self.lp_solves: list[int] = []
        self.iteration_s: list[float] = []
        self._target, self._at_least = target, at_least
        self._begin, self._cpu = time.perf_counter(), time.process_time()

    def __call__(self, event: Event) -> bool:
        if not isinstance(event, IterationFinished) or event.worker_id != 0:
            return False
        self.bounds.append(event.lower_bound)
        self.at_s.append(time.perf_counter() - self._begin)
        self.cpu_at_s.append(time.process_time() - self._cpu)
        self.lp_solves.append(event.lp_solves)
        self.iteration_s.append(event.elapsed_s)
        return event.lower_bound >= self._target and len(self.bounds) >= self._at_least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--all-cuts", action="store_true", help="every LP holds all cuts, as Cobre's do")
    parser.add_argument(
        "--highs", action="store_true", help="with --all-cuts: every LP by HiGHS, as Cobre's are"
    )
    parser.add_argument("--target", type=float, default=float("inf"))
    parser.add_argument("--at-least", type=int, default=0)
    given = parser.parse_args()
    cpu = time.process_time()
    notes = Notes(given.target, given.at_least)
    begin = time.perf_counter()
    if given.all_cuts:
        study = study_of_case(load_case(given.case))
        solver = (
            replace(study.options.solver, tableau_entries=0, kernel_rows=0)
            if given.highs
            else study.options.solver
        )
        options = replace(study.options, lazy=False, threads=given.threads, solver=solver)
        with LocalBackend() as comm:
            train_problem(study.problem, comm, options, sampler=study.sampler, on_event=notes)
    else:
        train(
            given.case,
            progress_callback=notes,
            num_workers=given.workers,
            threads=given.threads,
            output=given.output,
        )
    spent = time.perf_counter() - begin
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    workers = given.workers if given.workers > 1 else 0
    found = {
        "wall_s": spent,
        "cpu_s": time.process_time() - cpu + children.ru_utime + children.ru_stime,
        # The largest child stands for each of them.
        "peak_mb": peak_mb() + workers * children.ru_maxrss / 1024,
        "lower_bound": notes.bounds,
        "at_s": notes.at_s,
        "cpu_at_s": notes.cpu_at_s,
        "lp_solves": notes.lp_solves,
        "iteration_s": notes.iteration_s,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
