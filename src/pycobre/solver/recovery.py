"""Numerical recovery: what is tried, in order, when a run does not end optimal, with the same limits every time.

Each step clears everything HiGHS remembers and runs once under a few changed options. When one succeeds its
basis is put back under the usual options and run once more, so that what is read (and what the chain goes on
from) is the usual simplex solution. Steps are limited by iterations, never by the clock.
"""

from __future__ import annotations

from pycobre._util.frozen import frozen
from pycobre.solver.highs import OptionValue, Session, Status

__all__ = ["STEPS", "RecoveryResult", "recover"]

LIMIT = "simplex_iteration_limit"
LARGEST_LIMIT = 2**31 - 1

#: name → options changed for that step
STEPS: tuple[tuple[str, dict[str, OptionValue]], ...] = (
    ("cold", {}),
    ("primal simplex", {"simplex_strategy": 4}),
    ("scaled by HiGHS", {"simplex_scale_strategy": 2, "dual_simplex_cost_perturbation_multiplier": 1.0}),
    ("presolved", {"presolve": "on", "simplex_scale_strategy": 2}),
    ("interior point", {"solver": "ipm", "presolve": "on"}),
)

LIMIT_FACTOR = 10  # a step may take this many times the usual iterations

#: statuses that two steps in a row confirm: the LP is like that, more steps would only say it again
CONFIRMED_STATUSES = (Status.INFEASIBLE, Status.UNBOUNDED)


@frozen()
class RecoveryResult:
    """How recovery ended; `steps` are the names of the steps that ran."""

    status: Status
    steps: tuple[str, ...]


def recover(session: Session, usual: dict[str, OptionValue], failed: Status) -> RecoveryResult:
    """Try the steps until one gives an optimal basis that the usual options confirm."""
    done: list[str] = []
    last = failed
    for name, changed in STEPS:
        done.append(name)
        limit = int(usual[LIMIT])
        session.set_options(changed | {LIMIT: min(LIMIT_FACTOR * limit, LARGEST_LIMIT)})
        session.clear()
        status = session.run()
        kept = status is Status.OPTIMAL and session.keep_basis()
        session.set_options({key: usual[key] for key in (*changed, LIMIT)})
        if kept:
            session.clear()
            session.put_basis()
            status = session.run()
            if status is Status.OPTIMAL:
                return RecoveryResult(status, tuple(done))
        if status in CONFIRMED_STATUSES and status is last:
            return RecoveryResult(status, tuple(done))
        last = status
    return RecoveryResult(last, tuple(done))
