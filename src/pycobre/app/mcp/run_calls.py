"""What can be asked of runs: one function per tool. Those that start, watch or stop one are the server's own."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from pycobre.app.answers.run_records import (
    Convergence,
    FailureExplanation,
    RunComparison,
    RunEstimate,
    RunList,
    RunState,
)
from pycobre.app.mcp.case_calls import CaseName, Limit
from pycobre.app.mcp.desk import Desk
from pycobre.errors import OptionError, OutputError

__all__ = ["CALLS", "INTERNAL", "Overrides", "RunName", "Workers"]

RunName = Annotated[
    str, Field(description="id of the run, or enough of its beginning, as list_runs names it")
]
Overrides = Annotated[
    dict[str, Any],
    Field(description="settings of the case by dotted path, such as training.selection.forward_passes"),
]
Workers = Annotated[int, Field(ge=1, le=256, description="processes on this machine")]


def estimate_run(
    desk: Desk,
    case: CaseName,
    overrides: Overrides = {},  # noqa: B006 - read only; the schema shows it
    workers: Workers = 1,
    measure: Annotated[
        bool, Field(description="solve a few iterations to know the time, for some seconds")
    ] = True,
) -> RunEstimate:
    """Estimate what a run will need before it starts: LPs, memory, and time from a short measurement."""
    from pycobre.app.answers.run_estimate import estimate_run

    return estimate_run(desk.case(case), case, overrides, workers, measure)


def list_runs(
    desk: Desk,
    case: Annotated[str, Field(description="only runs of this case")] = "",
    state: Annotated[str, Field(description="only runs in this state: running, finished, failed, …")] = "",
    limit: Limit = 50,
) -> RunList:
    """List the runs below the root, the newest first."""
    from pycobre.app.answers.run_index import run_entries

    return run_entries(desk.folder.root, case=case, state=state, limit=limit, sound=desk.folder.sound)


def compare_runs(
    desk: Desk,
    a: Annotated[str, Field(description="id of the run before")],
    b: Annotated[str, Field(description="id of the run after")],
    limit: Limit = 100,
) -> RunComparison:
    """Compare the figures of two runs, such as two months: costs, prices, storage, deficits."""
    from pycobre.app.answers.run_comparison import compare_runs

    return compare_runs(desk.tables(a), desk.tables(b), limit)


def explain_failure(desk: Desk, run: RunName) -> FailureExplanation:
    """Say why a run stopped: kind, rank, the LP that failed, the rows that cannot hold together, the remedy."""
    from pycobre.app.answers.failure import explain_failure

    found, results = desk.run(run)
    return explain_failure(found, results)


def is_converged(
    desk: Desk,
    run: RunName,
    more_iterations: Annotated[int, Field(ge=1, le=100_000, description="whose cost is estimated")] = 50,
    tolerance: Annotated[
        float, Field(gt=0.0, le=1.0, description="relative gap that is small enough")
    ] = 0.01,
) -> Convergence:
    """Say whether a training has converged, with the evidence, and what more training would cost."""
    from pycobre.app.answers.convergence import is_converged

    return is_converged(desk.tables(run), more_iterations, tolerance)


def run_status(desk: Desk, run: RunName) -> RunState:
    """Say how far a run is: phase, iteration, bounds, time left."""
    from pycobre.app.answers.run_index import run_state

    found, results = desk.run(run)
    return run_state(desk.folder.root, found, results)


def prepare_run(
    desk: Desk, case: str, overrides: dict[str, Any], output: str, resume: bool
) -> dict[str, Any]:
    """Check what a run would be refused for, and say where it writes and under which id."""
    from pycobre.app.answers.run_index import run_id_of
    from pycobre.app.build_request import build_request
    from pycobre.app.request import CaseSource
    from pycobre.app.results.layout import default_output
    from pycobre.app.results.lock import owner_of
    from pycobre.app.results.record import new_id
    from pycobre.hydro.checks import require_sound
    from pycobre.hydro.files import identity

    desk.require_writing("start_run")
    directory = desk.case(case)
    path = desk.folder.below(output, "output") if output else default_output(directory)
    path = desk.folder.below(desk.folder.name(path), "output")
    if path.exists():
        desk.folder.check_tree(path, f"output {desk.folder.name(path)!r}")
        if (owner := owner_of(path)) is not None:
            raise OutputError(
                f"{path}: expected a directory that no run writes to, got one in use by process {owner.pid} on "
                f"{owner.host} (run {owner.run}). Wait for that run, stop it, or choose another output."
            )
    source = build_request(directory, overrides).source
    assert isinstance(source, CaseSource)
    require_sound(source.case)
    earlier = run_id_of(path) if resume else None
    return {
        "case": str(directory),
        "output": str(path),
        "directory": desk.folder.name(path),
        "run": earlier or new_id(),
        "digest": identity(source.case)["input_hash"],
    }


def request_stop(desk: Desk, run: str) -> dict[str, Any]:
    """Ask a run to stop after its iteration."""
    from pycobre.app.results.control import send_request

    desk.require_writing("stop_run")
    found, results = desk.run(run)
    status = results.status
    if status is None or status.state != "running":
        state = "one that has ended" if status is None else f"one that is {status.state}"
        raise OptionError(
            f"stop_run: expected a run that goes on, got {state}. `list_runs` names those that run."
        )
    send_request(results.directory, "stop")
    return {"run": found}


CALLS: tuple[Any, ...] = (estimate_run, list_runs, compare_runs, explain_failure, is_converged)
#: Asked by the server's own tools.
INTERNAL: tuple[Any, ...] = (run_status, prepare_run, request_stop)
