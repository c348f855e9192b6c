"""The first and the last lines of a run, for people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from pycobre.app.report import Report
from pycobre.app.request import ProblemSource, Request
from pycobre.app.wording import amount, counted, duration
from pycobre.hydro.uncertainty.tree import tree_seed
from pycobre.sddp.timing import sums_by_rank

__all__ = ["header", "summary"]

LISTED_RANKS = 8


def header(request: Request, ranks: int, backend: str) -> str:
    """What is about to run: case, sizes, backend, ranks, seeds."""
    shares = f"{backend} backend, {counted(ranks, 'rank')} × {counted(request.threads, 'thread')}"
    if isinstance(request.source, ProblemSource):
        return _problem_header(request, request.source, shares)
    case = request.source.case
    training = case.config.training
    counts = (
        (len(case.stages), "stage", "stages"),
        (len(case.hydros), "hydro", "hydros"),
        (len(case.thermals), "thermal", "thermals"),
        (len(case.buses), "bus", "buses"),
        (len(case.lines), "line", "lines"),
    )
    sizes = " · ".join(counted(*each) for each in counts if each[0])
    passes = getattr(training.selection, "forward_passes", None)
    work = counted(passes, "forward pass", "forward passes") if passes else "every path"
    seed = tree_seed(case)
    return "\n".join(
        (
            f"pycobre · {case.name}",
            f"  {sizes}",
            f"  {work if request.train else 'simulation only'} · seed {seed} · {shares}",
            f"  results in {request.output}",
        )
    )


def _problem_header(request: Request, source: ProblemSource, shares: str) -> str:
    problem, options = source.problem, source.options
    counts = (
        (max(node.stage for node in problem.nodes), "stage", "stages"),
        (len(problem.nodes), "node", "nodes"),
        (len(problem.states), "state", "states"),
        (sum(node.noise.openings for node in problem.nodes), "opening", "openings"),
    )
    passes = counted(options.forward_passes, "forward pass", "forward passes")
    return "\n".join(
        (
            f"pycobre · {problem.name} ({problem.sense.value})",
            f"  {' · '.join(counted(*each) for each in counts)}",
            f"  {passes} · seed {options.seed} · {shares}",
            f"  results in {request.output}",
        )
    )


def summary(report: Report, request: Request, further: Mapping[str, Any] | None = None) -> str:
    """What came of it, and what to type next; `further` are results that the command has added."""
    found = report.metadata
    lines = [""]
    if "lower_bound" in found:
        half = found["upper_bound_half_width"]
        interval = f" ± {amount(half)} (95 %)" if half == half and half > 0 else ""
        estimate = found.get("bound_estimate")
        # The mean of a pass bounds what is minimised from above, what is maximised from below.
        bound, mean = (
            ("upper", "lower bound") if found.get("sense") == "maximise" else ("lower", "upper bound")
        )
        lines += [
            f"  {bound} bound   {amount(found['lower_bound'])}{', an estimate' if estimate else ''}",
            f"  {mean}   {amount(found['upper_bound'])}{interval}{_exact(found)}",
            f"  gap           {100 * found['gap']:.3f} %{_gap_interval(found)}",
            f"  iterations    {found['iterations']}, {_stopped(found['termination_reason'])}",
            f"  cuts          {found['total_cuts']}",
        ]
        if estimate:
            lines.append(f"  estimate      {estimate}")
    if "simulation" in found:
        cost = found["simulation"]
        exact, several = cost.get("enumerated", False), cost["scenarios"] > 1
        half = f" ± {amount(cost['half_width'])} (95 %)" if several and not exact else ""
        scenarios = counted(cost["scenarios"], "path" if exact else "scenario")
        lines.append(f"  simulation    {scenarios}, mean {amount(cost['mean'])}{half}")
        lines += _of_simulation(cost, found)
    for name, values in (further or {}).items():
        said = ", ".join(
            f"{key} {amount(value) if isinstance(value, float) else value}" for key, value in values.items()
        )
        lines.append(f"  {name:<12}  {said}")
    lines += [*_efficiency(report), f"  backend       {found['backend']}, {counted(found['ranks'], 'rank')}"]
    lines.append(f"  time          {duration(found['elapsed_s'])}")
    if "policy_digest" in found:
        lines.append(f"  policy        {found['policy_digest']}")
    output = shlex.quote(str(request.output))
    lines += [f"  results       {request.output}", ""]
    if found.get("termination_reason") == "interrupted":
        lines.append("interrupted: the same command with --resume goes on from here, bit for bit")
    else:
        lines.append(_next(output))
    return "\n".join(lines)


def _of_simulation(cost: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """How far the simulated cost is from the bound, and what of it is not physical; what is nothing is said too."""
    lines = []
    if "gap" in cost:
        half = 100 * cost["half_width"] / max(1.0, abs(found["lower_bound"]))
        exact = cost["scenarios"] == 1 or cost.get("enumerated", False)
        interval = "" if exact else f" ± {half:.3f} % (95 %)"
        lines.append(f"  to the bound  {100 * cost['gap']:.3f} %{interval}")
    figures = cost.get("indicators", {})
    if "lolp" in figures:
        said = f"EENS {figures['eens_mwh']:,.1f} MWh, LOLP {100 * figures['lolp']:.2f} % of stages"
        lines.append(f"  load shed     {said if figures['lolp'] else 'none'}")
    if "water_created_share" in figures:
        said = (
            f"{figures['water_created_hm3']:,.3f} hm³ in {100 * figures['water_created_share']:.2f} % "
            f"of plant-stages, {figures['water_unneeded_hm3']:,.3f} beyond need"
        )
        lines.append(f"  water created {said if figures['water_created_share'] else 'none'}")
        violated = figures["limits_violated_share"]
        said = f"violated in {100 * violated:.2f} % of plant-stages" if violated else "kept"
        lines.append(f"  flow limits   {said}")
    return lines


def _exact(found: Mapping[str, Any]) -> str:
    return ", exact" if found.get("upper_bound_kind") == "exact" else ""


def _next(output: str) -> str:
    """A command that works with what is installed."""
    if find_spec("plotly") is None:
        return f'next: pip install "pycobre[plot]", then pycobre report {output}'
    return f"next: pycobre report {output}" + ("" if find_spec("matplotlib") else " --no-png")


def _stopped(reason: str) -> str:
    return "interrupted" if reason == "interrupted" else f"stopped by {reason.replace('_', ' ')}"


def _gap_interval(found: Mapping[str, Any]) -> str:
    """What the interval of the upper bound means for the gap; nothing where there is none."""
    half = found["upper_bound_half_width"]
    return (
        f" ± {100 * half / max(1.0, abs(found['lower_bound'])):.3f} % (95 %)"
        if half == half and half > 0
        else ""
    )


def _efficiency(report: Report) -> list[str]:
    """Where each rank's time went, a line each; of many ranks the least and the most."""
    clocks = report.tables.get("timing")
    if clocks is None:
        return []
    ranks = sums_by_rank(clocks)
    totals = np.maximum([each.total_s for each in ranks], 1e-9)
    shares = {
        word: np.array([getattr(each, part) for each in ranks]) / totals
        for word, part in (("solving", "solve_s"), ("communicating", "communicate_s"), ("waiting", "wait_s"))
    }
    if len(ranks) > LISTED_RANKS:
        said = ", ".join(f"{word} {100 * s.min():.0f}–{100 * s.max():.0f} %" for word, s in shares.items())
        lines = [f"{len(ranks)} ranks: {said}"]
    else:
        lines = [
            f"rank {each.rank}: "
            + ", ".join(f"{word} {100 * share[i]:.0f} %" for word, share in shares.items())
            for i, each in enumerate(ranks)
        ]
    return [f"  {'efficiency' if i == 0 else '':12}  {line}" for i, line in enumerate(lines)]
