"""Small runs, and looking at the processes they start."""

import os
from pathlib import Path

from pycobre.problem import Problem
from pycobre.sddp import IterationLimit, TrainOptions
from pycobre.testing.problems import reservoir

PASSES = 4


def problem() -> Problem:
    return reservoir(6)


def options(iterations: int = 8) -> TrainOptions:
    return TrainOptions(forward_passes=PASSES, stopping=IterationLimit(iterations))


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
        if parent != os.getpid() or b"pycobre.run.worker" not in command:
            continue
        for variable in environment.split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name in (b"COBRE_SHM_RANK", b"COBRE_TCP_RANK"):
                found[int(value)] = int(entry.name)
    return found


def segments() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith(f"pycobre-{os.getpid()}-")}
