"""One training by Cobre, in an interpreter that has it: `python cobre_child.py CASE OUTPUT THREADS` prints JSON.

This file is run by its path and imports nothing of this package: Cobre lives in an environment of its own.
"""

import json
import sys
import time


def peak_mb() -> float:
    """Of this program; `ru_maxrss` would count what its parent had before it was replaced."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def main(case: str, output: str, threads: int) -> None:
    """Train once; the clock starts at the call, and each iteration is noted when its report arrives."""
    import cobre.run  # type: ignore[import-not-found]

    iterations: list[tuple[float, float, float]] = []
    begin, cpu = time.perf_counter(), time.process_time()

    def note(event: dict[str, float]) -> None:
        iterations.append((event["lower_bound"], time.perf_counter() - begin, time.process_time() - cpu))

    cobre.run.run(case, output, threads=threads, on_iteration=note)
    spent = time.perf_counter() - begin
    found = {
        "wall_s": spent,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "lower_bound": [bound for bound, _, _ in iterations],
        "at_s": [at for _, at, _ in iterations],
        "cpu_at_s": [at for _, _, at in iterations],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
