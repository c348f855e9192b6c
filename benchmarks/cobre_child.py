"""One training by Cobre, in an interpreter that has it: `python cobre_child.py CASE OUTPUT THREADS` prints JSON.

This file is run by its path and imports nothing of this package: Cobre lives in an environment of its own.
"""

import json
import resource
import sys
import time


def main(case: str, output: str, threads: int) -> None:
    """Train once; the clock starts at the call, and each iteration is noted when its report arrives."""
    import cobre.run  # type: ignore[import-not-found]

    iterations: list[tuple[float, float]] = []
    begin, cpu = time.perf_counter(), time.process_time()

    def note(event: dict[str, float]) -> None:
        iterations.append((event["lower_bound"], time.perf_counter() - begin))

    cobre.run.run(case, output, threads=threads, on_iteration=note)
    spent = time.perf_counter() - begin
    found = {
        "wall_s": spent,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "lower_bound": [bound for bound, _ in iterations],
        "at_s": [at for _, at in iterations],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
