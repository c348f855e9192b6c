"""From "this run did not end optimal" to a message a person can act on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pycobre.errors import OutputError, SolverError
from pycobre.solver.api import LpModel, LpTemplate
from pycobre.solver.bundle import Bundle, write_bundle
from pycobre.solver.explicit import Conflict, explicit_lp, find_conflict, find_ray
from pycobre.solver.highs import Status
from pycobre.solver.job import ChainFailure, Job

__all__ = ["failure_error"]

SHOWN = 8  # names listed in a message before "and n more"


def failure_error(job: Job, failure: ChainFailure) -> SolverError:
    """The error of a failed chain, its bundle written where the options name a directory."""
    i, j = failure.chain, failure.opening
    call = job.call
    at = 0 if call.start is not None and len(call.start) == 1 else i
    alone = replace(
        call,
        x=call.x[i : i + 1],
        values=call.values[i if call.values.shape[0] > 1 else 0, : j + 1],
        start=call.start.take([at]) if call.start is not None else None,
        trial_point=call.trial_point[i : i + 1] if call.trial_point is not None else None,
        want_basis=False,
        want_primal=False,
        work_counter=None,
    )
    bundle, model = Bundle(alone, job.options), call.model
    path, unwritten = None, ""
    if job.options.bundles is not None:
        try:
            path = str(write_bundle(job.options.bundles, bundle))
        except (OSError, OutputError) as cause:  # a full disk must not hide why the run stops
            unwritten = f" Its bundle could not be written: {cause}"
    template = explicit_lp(model, alone.x[0], alone.values[j], call.cuts, failure.present)
    conflict = find_conflict(template) if failure.status is Status.INFEASIBLE else None
    incoming = {
        model.template.col_name(int(col)): float(value)
        for col, value in zip(model.inputs, alone.x[0], strict=True)
    }
    text = f"LP of chain {i}, opening {j}: "
    text += _describe(model, incoming, template, failure.status, conflict)
    text += f" Retries: {', '.join(failure.steps)}."
    text += unwritten
    if path is not None:
        text += f" Solve it alone with: pycobre replay {path}"
    return SolverError(
        text,
        chain=i,
        opening=j,
        status=failure.status.value,
        bundle=path,
        rows=() if conflict is None else conflict.rows,
        incoming=incoming,
    )


def _describe(
    model: LpModel,
    incoming: dict[str, float],
    template: LpTemplate,
    status: Status,
    conflict: Conflict | None,
) -> str:
    """What is known about a failed LP: status, the rows at fault, probable causes, the incoming state."""
    text = f"{status.value}."
    if status is Status.INFEASIBLE:
        text += _infeasible(template, conflict)
    elif status is Status.UNBOUNDED:
        text += _unbounded(model, template)
    elif status is Status.UNBOUNDED_OR_INFEASIBLE:
        text += " The cost falls without end or rows contradict each other; check free columns first."
    else:
        text += (
            " Probable causes: coefficients of very different size (see the numerical report), or bounds "
            "that nearly contradict each other."
        )
    if incoming:
        text += f" Incoming state: {_list([f'{name} = {value:.9g}' for name, value in incoming.items()])}."
    return text


def _infeasible(template: LpTemplate, conflict: Conflict | None) -> str:
    crossed = np.flatnonzero(template.col_lower > template.col_upper)
    if crossed.size:
        names = [
            f"{template.col_name(int(c))} in [{template.col_lower[c]:.9g}, {template.col_upper[c]:.9g}]"
            for c in crossed
        ]
        return f" Patched bounds contradict each other: {_list(names)}."
    if conflict is None:
        return " HiGHS names no conflicting rows."
    text = f" These rows cannot hold together: {_list(conflict.rows) or 'none'}"
    if conflict.cols:
        text += f", with the bounds of {_list(conflict.cols)}"
    return (
        text + ". Probable causes: an incoming state that the rows cannot continue from, or noise that no "
        "decision can balance; a slack column with a penalty cost makes such an LP feasible."
    )


def _unbounded(model: LpModel, template: LpTemplate) -> str:
    ray = find_ray(template)
    text = f" The cost falls without end along {_list(ray)}." if ray else " The cost falls without end."
    if model.theta_column is not None and template.col_name(model.theta_column) in ray:
        return text + " Probable cause: no lower bound on the cost-to-go column; give it one."
    return text + " Probable cause: a missing bound or a cost of the wrong sign."


def _list(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
