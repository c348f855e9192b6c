"""Whether a training has converged: the bounds, their intervals, the trend, and what more training would cost."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.app.answers.case_records import Source
from pycobre.app.answers.run_records import Convergence
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.results.layout import METADATA
from pycobre.errors import OutputError

__all__ = ["is_converged"]

LAST = 10
STEADY = 1e-3
"""Relative gain of the bound over the last iterations that counts as none."""


def is_converged(tables: RunTables, more_iterations: int = 50, tolerance: float = 0.01) -> Convergence:
    """The verdict with its reasons.

    Converged: the bound stands still and lies inside the 95 % interval of the policy's cost, or closer to it than
    `tolerance` (relative). The cost is the simulation's, where there is one, else that of the last forward pass.
    """
    results = tables.results
    if not results.trained:
        raise OutputError(f"run {tables.run}: expected a training, got none. Ask of the run that trained.")
    table = results.convergence
    history = {name: table[name].to_numpy().astype(np.float64) for name in table.column_names}
    metadata = results.metadata
    sign = -1.0 if metadata.get("sense") == "maximise" else 1.0
    lower, upper = history["lower_bound"], history["upper_bound"]
    count = len(lower)
    if not count:
        raise OutputError(f"run {tables.run}: expected iterations, got none. Let it train first.")
    bound, last = float(lower[-1]), min(LAST, count - 1)
    simulation = metadata.get("simulation", {})
    mean = float(simulation["mean"]) if "mean" in simulation else float(upper[-1])
    half = (
        float(simulation["half_width"])
        if "mean" in simulation
        else float(history["upper_bound_half_width"][-1])
    )
    gap = sign * (mean - bound) / max(1.0, abs(bound))
    gain = None if last == 0 else sign * (bound - float(lower[-1 - last])) / max(1.0, abs(bound))
    inside = abs(mean - bound) <= half if np.isfinite(half) else False
    of = "simulated" if "mean" in simulation else "the last pass's"
    reasons = [
        f"the bound is {bound:.6g}, {of} mean cost {mean:.6g} ± {half:.3g} (95 %): a gap of {100 * gap:.3g} %",
        f"the bound lies {'inside' if inside else 'outside'} the interval of the mean cost",
    ]
    steady = gain is not None and abs(gain) < STEADY
    if gain is None:
        reasons.append("there is one iteration only, so there is no trend")
    else:
        reasons.append(f"over the last {last} iterations the bound moved by {100 * gain:.3g} %")
    if metadata.get("bound_estimate"):
        reasons.append("the bound is an estimate, not proved")
    close = inside or abs(gap) <= tolerance
    verdict = "converged" if close and steady else "not converged" if not close and not steady else "unclear"
    if verdict == "unclear":
        reasons.append(
            "the bound stands still and the gap stays: more cuts change little; simulate more scenarios, or "
            "check the risk measure"
            if steady
            else "the gap is within reach, but the bound still moves"
        )
    seconds = _seconds(tables)
    lps = float(history["lp_solves"][-min(LAST, count) :].mean())
    return Convergence(
        run=tables.run,
        verdict=verdict,
        reasons=reasons,
        iterations=count,
        termination_reason=metadata.get("termination_reason"),
        lower_bound=bound,
        upper_bound=float(upper[-1]),
        half_width=_number(history["upper_bound_half_width"][-1]),
        gap=float(history["gap"][-1]),
        simulated_mean=simulation.get("mean"),
        simulated_half_width=simulation.get("half_width"),
        simulated_gap=simulation.get("gap"),
        bound_gain_last=gain,
        last_iterations=last,
        seconds_per_iteration=seconds,
        lps_per_iteration=lps,
        more_iterations=more_iterations,
        more_training_s=None if seconds is None else seconds * more_iterations,
        more_lps=lps * more_iterations,
        expected_bound=_expected(lower, more_iterations),
        sources=[tables.source("convergence"), tables.source("timing"), Source("run", tables.run, METADATA)],
    )


def _expected(bound: F64, more: int) -> float | None:
    """The bound after so many more iterations, if its gains go on shrinking as they did over the last twenty."""
    if len(bound) < 21:
        return None
    first, second = bound[-11] - bound[-21], bound[-1] - bound[-11]
    if first == 0.0 or not 0.0 <= second / first < 1.0:
        return None
    ratio = second / first
    lots = more / 10.0
    return float(bound[-1] + second * ratio * (1.0 - ratio**lots) / (1.0 - ratio))


def _seconds(tables: RunTables) -> float | None:
    table = tables.results.timing
    iteration, total = table["iteration"].to_numpy(), table["total_s"].to_numpy()
    if not len(iteration):
        return None
    late = iteration > iteration.max() - LAST
    longest = [total[late & (iteration == each)].max() for each in np.unique(iteration[late])]
    return float(np.mean(longest))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
