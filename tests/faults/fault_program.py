"""The run of somebody who sets nothing, as a program: `python fault_program.py BACKEND WORKERS OUTPUT`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fault_problem import options, problem

import pycobre
from pycobre.app.failures import exit_code
from pycobre.errors import CobreError


def main(backend: str, workers: str, output: str) -> int:
    try:
        found = pycobre.train(
            problem(), options=options(), backend=backend, num_workers=int(workers), output=output
        )
    except CobreError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return exit_code(error)
    directory = json.loads(os.environ["PYCOBRE_FAULT"])["directory"]
    Path(directory, "digest").write_text(found.policy_digest)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
