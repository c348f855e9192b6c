"""HiGHS as this package uses it: options that make a solve a pure function, how a solve ends, and a session.

A `Session` is one loaded LP. The recovery steps (`recovery`) and the chains of the reference implementation
are written against it; the compiled path offers the same few methods on its own handle.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pycobre.solver.api import SolverOptions

__all__ = ["OptionValue", "Session", "Status", "highs_options", "option_refused"]

OptionValue = bool | int | float | str


class Status(Enum):
    """How a run ended, in the words used in messages."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNBOUNDED_OR_INFEASIBLE = "unbounded or infeasible"
    ITERATION_LIMIT = "iteration limit reached"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, highs_status: int) -> Status:
        """From the number of HiGHS's model status."""
        return _STATUS.get(highs_status, cls.UNKNOWN)


_STATUS = {
    7: Status.OPTIMAL,
    8: Status.INFEASIBLE,
    9: Status.UNBOUNDED_OR_INFEASIBLE,
    10: Status.UNBOUNDED,
    14: Status.ITERATION_LIMIT,
}


def highs_options(options: SolverOptions) -> dict[str, OptionValue]:
    """The options of every solve: measured to be fast, and without anything that remembers or races."""
    return {
        "output_flag": False,
        "solver": "simplex",
        "simplex_strategy": 1,
        "presolve": "off",
        "parallel": "off",
        "threads": 1,
        "simplex_scale_strategy": 0,
        "simplex_dual_edge_weight_strategy": 1,
        "simplex_price_strategy": 1,
        "dual_simplex_cost_perturbation_multiplier": 0.0,
        "no_unnecessary_rebuild_refactor": False,
        "primal_feasibility_tolerance": options.primal_tolerance,
        "dual_feasibility_tolerance": options.dual_tolerance,
        "simplex_iteration_limit": options.iteration_limit,
        "ipm_iteration_limit": 1000,
    }


def option_refused(name: str, value: OptionValue) -> str:
    return (
        f"HiGHS option {name}: the installed HiGHS refuses {value!r}. Install a version that pycobre names."
    )


class Session(Protocol):
    """One loaded LP, as the recovery steps see it."""

    def set_options(self, options: dict[str, OptionValue]) -> None: ...

    def clear(self) -> None:
        """Forget basis, factors, weights and everything else that a run leaves behind; keep the LP."""

    def run(self) -> Status: ...

    def keep_basis(self) -> bool:
        """Remember the current basis; False where there is none."""

    def put_basis(self) -> None:
        """Start the next run from the remembered basis."""
