"""One reference run, as a program: `python reference_run.py NAME BACKEND WORKERS THREADS [OUTPUT [resume]]`.

Prints one JSON line with a hash of everything that is promised to be the same. Under an MPI launcher every rank
runs it and rank 0 prints. With OUTPUT every iteration has its checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace

from pycobre.app.api import Execution, communicator_for, run_here
from pycobre.app.report import Report
from pycobre.app.request import CaseSource, ProblemSource, Request
from pycobre.app.stop_switch import StopSwitch
from pycobre.sddp import CVaR, InteriorPoints, IterationLimit, Level1, TrainOptions

SCENARIOS = 7


def request(name: str, threads: int = 1, output: str | None = None, *, resume: bool = False) -> Request:
    """The two reference studies: a cascade with PAR inflows and a Markovian problem, both with a selection of cuts,
    cuts at interior points and CVaR."""
    return Request(
        _source(name),
        simulate=True,
        scenarios=SCENARIOS,
        threads=threads,
        output=output,
        resume=resume,
        checkpoint_iterations=None if output is None else 1,
    )


def _source(name: str) -> CaseSource | ProblemSource:
    if name == "hydro":
        from pycobre.hydro.examples import example
        from pycobre.hydro.files import with_overrides

        case = example("cascade").build()
        risky = replace(case, stages=tuple(replace(s, risk_measure=_cvar()) for s in case.stages))
        settings = {
            "training.selection.forward_passes": 5,
            "training.stopping_rules": [{"type": "iteration_limit", "limit": 6}],
            "training.cut_selection": {"selection": {"method": "level1", "check_frequency": 2}},
            "training.interior_points": {"initial": 0.5},
        }
        return CaseSource(with_overrides(risky, settings))
    from pycobre.testing.problems import valley

    options = TrainOptions(
        forward_passes=5,
        stopping=IterationLimit(8),
        risk=CVaR(0.6),
        selection=Level1(every=3),
        interior=InteriorPoints(),
    )
    return ProblemSource(valley(inflows=True, prices=True), options)


def _cvar() -> object:
    from pycobre.hydro.model import horizon

    return horizon.CVaR(cvar=horizon.CVaRParameters(alpha=0.4, lambda_=0.5))


def fingerprint(report: Report) -> dict[str, str]:
    """Hashes by name; clocks are left out."""
    assert report.policy is not None
    found = {
        "iterations": str(report.metadata["iterations"]),
        "cuts": report.metadata["policy_digest"],
        "policy file": _hash(report.policy.to_bytes()),
    }
    for name, columns in report.tables.items():
        if name == "timing":
            continue
        parts = {"lower bound": [], "upper bound": [], name: []}
        for column in sorted(columns):
            group = next(
                (g for g in ("lower bound", "upper bound") if column.startswith(g.replace(" ", "_"))), name
            )
            parts[group].append(columns[column].tobytes())
        found.update({group: _hash(b"".join(data)) for group, data in parts.items() if data})
    return found


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def main() -> None:
    name, backend, workers, threads, *rest = sys.argv[1:]
    wanted = request(name, int(threads), rest[0] if rest else None, resume=rest[1:] == ["resume"])
    if backend == "mpi":
        with communicator_for("mpi") as comm:
            report = run_here(wanted, comm, None, StopSwitch())
            speaks = comm.rank == 0
    else:
        with Execution(backend, int(workers)) as run:
            report, _ = run.drive(wanted)
        speaks = True
    if speaks:
        print(json.dumps(fingerprint(report)))


if __name__ == "__main__":
    main()
