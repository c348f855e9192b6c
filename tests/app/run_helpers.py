"""Small runs, and looking at the processes they start."""

import os
from pathlib import Path

from pycobre.app.pipeline import execute
from pycobre.app.request import ProblemSource, Request
from pycobre.comm import Communicator
from pycobre.problem import Problem
from pycobre.sddp import IterationLimit, TrainOptions
from pycobre.testing.problems import reservoir

PASSES = 4


def problem() -> Problem:
    return reservoir(6)


def options(iterations: int = 8) -> TrainOptions:
    return TrainOptions(forward_passes=PASSES, stopping=IterationLimit(iterations))


def asked_to_stop(comm: Communicator, asked: int) -> tuple[str, bool]:
    """One rank alone is asked to stop; why its training ended, and whether it simulated."""
    request = Request(ProblemSource(problem(), options(3)), simulate=True, scenarios=4)
    found = execute(request, comm, lambda event: None, lambda: comm.rank == asked).metadata
    return found["termination_reason"], "simulation" in found


def workers_alive() -> dict[int, int]:
    """Rank → pid of every worker process that this process started and has not reaped."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if parent != os.getpid() or b"pycobre.app.worker" not in command:
            continue
        for variable in environment.split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name in (b"COBRE_SHM_RANK", b"COBRE_TCP_RANK"):
                found[int(value)] = int(entry.name)
    return found


def segments() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith(f"pycobre-{os.getpid()}-")}
