"""Why a run stopped: its error, the LP that failed, the rows that cannot hold together, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pycobre.app.answers.case_records import Source
from pycobre.app.answers.run_records import Conflict, FailureExplanation
from pycobre.app.results.directory import Results
from pycobre.app.results.event_log import finite
from pycobre.app.results.layout import EVENTS, STATUS
from pycobre.errors import SolverError

__all__ = ["explain_failure"]

LAST = 5
MOST = 200
FAILED = "failed"


def explain_failure(run: str, results: Results) -> FailureExplanation:
    """The explanation of a run that failed or was lost; of another, that it did not fail."""
    status = results.status
    error: dict[str, Any] = (status.error if status is not None else None) or {}
    fields: dict[str, Any] = error.get("fields") or {}
    state = status.state if status is not None else "finished" if results.metadata else "unknown"
    bundle = _bundle(results, fields.get("bundle"))
    lp, conflict = (None, None) if bundle is None else _examined(bundle)
    events = list(results.events())[-LAST:]
    name = None if bundle is None else f"{FAILED}/{bundle.name}"
    return FailureExplanation(
        run=run,
        state=state,
        failed=state in ("failed", "lost"),
        summary=_summary(state, error, fields, conflict),
        kind=error.get("kind"),
        message=error.get("message"),
        rank=error.get("rank"),
        stage=None if fields.get("stage") is None else str(fields["stage"]),
        iteration=fields.get("iteration"),
        scenario=fields.get("scenario"),
        bundle=name,
        lp=lp,
        rows=[str(row) for row in fields.get("rows", ())][:MOST],
        conflict=conflict,
        incoming={str(key): float(value) for key, value in (fields.get("incoming") or {}).items()},
        remedy=_remedy(state, error),
        last_events=[finite(event) for event in events],
        warnings=list((status.warnings if status is not None else None) or ()),
        sources=[
            Source("run", run, STATUS),
            Source("run", run, EVENTS),
            *([Source("run", run, name)] if name is not None else []),
        ],
    )


def _bundle(results: Results, noted: Any) -> Path | None:
    """The bundle of the LP: by the name that the error noted, and only in the run's own directory."""
    if not isinstance(noted, str):
        return None
    path = results.directory / FAILED / Path(noted).name
    return path if path.is_file() and not path.is_symlink() else None


def _examined(path: Path) -> tuple[dict[str, int] | None, Conflict | None]:
    from pycobre.solver.bundle import read_bundle
    from pycobre.solver.explicit import find_conflict

    try:
        bundle = read_bundle(path)
        lp = bundle.last_lp()
    except SolverError:  # torn, or of another version: the rest of the explanation stands
        return None, None
    sizes = {
        "columns": bundle.call.model.template.num_cols,
        "rows": bundle.call.model.template.num_rows,
        "cuts": 0 if bundle.call.cuts is None else bundle.call.cuts.count,
    }
    found = find_conflict(lp)
    if found is None:
        return sizes, None
    return sizes, Conflict(list(found.rows)[:MOST], list(found.cols)[:MOST], found.irreducible)


def _summary(state: str, error: dict[str, Any], fields: dict[str, Any], conflict: Conflict | None) -> str:
    if state == "lost":
        return "The process of the run is gone without a word: it was killed, or its machine went down."
    if state != "failed":
        return f"The run did not fail: its state is {state}."
    where = [
        f"{name} {fields[name]}"
        for name in ("stage", "iteration", "scenario")
        if fields.get(name) is not None
    ]
    rank = f" on rank {error['rank']}" if error.get("rank") is not None else ""
    text = f"{error.get('kind', 'An error')}{rank}{' at ' + ', '.join(where) if where else ''}."
    if conflict is not None:
        rows = ", ".join(conflict.rows[:6])
        text += f" These cannot hold together: {rows}{' and more' if len(conflict.rows) > 6 else ''}."
    return text


def _remedy(state: str, error: dict[str, Any]) -> str | None:
    if state == "lost":
        return "Start it again with resume: it goes on from its newest checkpoint."
    remedy = error.get("remedy")
    return None if remedy is None else str(remedy)
