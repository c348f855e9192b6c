"""A problem made ready for solving: plan, openings and solver engine, shared by training and simulation.

Scaling the LPs, ordering the openings and copying them into shared memory cost the same for a training and for
the simulation that follows it. Who runs both makes a `PreparedProblem` once and passes it to both; the numbers
are those of two separate preparations, because a solve depends on its arguments alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import cast

from pycobre.comm import Communicator, SharedMemoryProvider
from pycobre.errors import OptionError
from pycobre.problem import Problem
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import Plan
from pycobre.solver import SolverOptions, create_engine

__all__ = ["PreparedProblem", "prepared_for"]


class PreparedProblem:
    """Use as a context, so that engine and shared memory are released. Training and simulation fill it."""

    def __init__(
        self, problem: Problem, comm: Communicator, solver: SolverOptions | None = None, *, threads: int = 1
    ) -> None:
        self.problem, self.comm = problem, comm
        self.solver = replace(solver or SolverOptions(), threads=threads)
        self.plan = Plan.of(problem)
        self.engine = create_engine(self.solver)
        self._openings: Openings | None = None

    @property
    def openings(self) -> Openings:
        """Made at the first use, which is collective: by then the ranks have compared their arguments."""
        if self._openings is None:
            self._openings = Openings(cast(SharedMemoryProvider, self.comm), self.plan)
        return self._openings

    def __enter__(self) -> PreparedProblem:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.engine.close()
        if self._openings is not None:
            self._openings.close()


def prepared_for(
    problem: Problem,
    comm: Communicator,
    solver: SolverOptions,
    threads: int,
    given: PreparedProblem | None,
) -> AbstractContextManager[PreparedProblem]:
    """`given`, left open, where it fits; a new one, closed at the end of the context, where none is given."""
    if given is None:
        return PreparedProblem(problem, comm, solver, threads=threads)
    for what, fits in (
        ("problem", given.problem is problem),
        ("communicator", given.comm is comm),
        ("solver options and threads", given.solver == replace(solver, threads=threads)),
    ):
        if not fits:
            raise OptionError(
                f"prepared: expected the {what} that it was made for, got another. "
                "Leave it out, or make one for these arguments."
            )
    return nullcontext(given)
