"""One step of a run by the program of this interpreter: `cobre_steps_child.py cobre|pycobre STEP CASE OUTPUT`.

What comes before the step is done too, and not counted; the peak is that of the process. Run by its path, it imports
nothing of this package: Cobre lives in an environment of its own.
"""

import json
import sys
import time


def peak_mb() -> float:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


class Clock:
    """CPU and wall time of the step itself."""

    def __enter__(self) -> "Clock":
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def by_cobre(step: str, case: str, output: str) -> Clock:
    import cobre  # type: ignore[import-not-found]
    import cobre.io  # type: ignore[import-not-found]

    if step in ("validate", "load"):
        with Clock() as clock:
            (cobre.io.validate if step == "validate" else cobre.io.load_case)(case)
        return clock
    with Clock() as clock:
        study = cobre.Study(case, output, threads=1)
    if step == "iteration":
        with Clock() as clock:
            study.train()
    return clock


def by_pycobre(step: str, case: str, output: str) -> Clock:
    from pycobre.comm import LocalBackend
    from pycobre.hydro.files import load_case, validate
    from pycobre.hydro.study import study_of_case
    from pycobre.sddp import train

    if step in ("validate", "load"):
        with Clock() as clock:
            (validate if step == "validate" else load_case)(case)
        return clock
    with Clock() as clock:  # Cobre's study reads the case too
        study = study_of_case(load_case(case))
    if step == "iteration":
        with Clock() as clock, LocalBackend() as comm:
            train(study.problem, comm, study.options, sampler=study.sampler)
    return clock


if __name__ == "__main__":
    program, *words = sys.argv[1:]
    found = {"cobre": by_cobre, "pycobre": by_pycobre}[program](*words)
    print(json.dumps({"cpu_s": found.cpu, "wall_s": found.wall, "peak_mb": peak_mb()}))
