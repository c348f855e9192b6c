"""How long importing takes: `import pycobre` beside `import numpy`, and `pycobre --help` beside a bare interpreter.

Run with `python -m benchmarks.import_time`. Interpreters are started in turn, so that all candidates see the same
machine; the minimum of the rounds is printed, in milliseconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

CANDIDATES = {
    "bare interpreter": "pass",
    "import pycobre": "import pycobre",
    "import numpy": "import numpy",
    "import pycobre.comm": "import pycobre.comm",
    "pycobre --help": "import sys; sys.argv = ['pycobre', '--help']; from pycobre.app.cli import main; main()",
}


def milliseconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    best = dict.fromkeys(CANDIDATES, float("inf"))
    for _ in range(rounds):
        for name, code in CANDIDATES.items():
            best[name] = min(best[name], milliseconds(code))
    bare, numpy = best["bare interpreter"], best["import numpy"]
    for name, value in best.items():
        print(f"{name:20} {value:7.1f} ms   bare {value - bare:+7.1f}   numpy {value - numpy:+7.1f}")


if __name__ == "__main__":
    main()
