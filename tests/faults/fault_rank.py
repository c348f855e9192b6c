"""One rank of a trial as a program: `python fault_rank.py BACKEND OUTPUT`, started by a launcher or by hand."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fault_problem import request

from pycobre.app.api import communicator_for, run_here
from pycobre.app.failures import exit_code
from pycobre.app.stop_switch import StopSwitch
from pycobre.errors import CobreError


def main(backend: str, output: str) -> int:
    fault = json.loads(os.environ["PYCOBRE_FAULT"])
    try:
        with communicator_for(backend) as comm:
            report = run_here(request(output, defaults=fault["defaults"]), comm, None, StopSwitch())
            if comm.rank == 0:
                Path(fault["directory"], "digest").write_text(report.metadata["policy_digest"])
    except CobreError as error:
        import saboteur

        saboteur.account(error)
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
