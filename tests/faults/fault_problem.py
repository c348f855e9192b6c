"""What every trial trains: small enough that starting its processes is most of the work."""

from __future__ import annotations

from pycobre.app.request import ProblemSource, Request
from pycobre.problem import Problem
from pycobre.sddp import IterationLimit, TrainOptions
from pycobre.testing.problems import reservoir

ITERATIONS = 8


def problem() -> Problem:
    return reservoir(6)


def options() -> TrainOptions:
    return TrainOptions(forward_passes=4, stopping=IterationLimit(ITERATIONS))


def request(output: str, *, defaults: bool) -> Request:
    """A fresh run with a checkpoint after every iteration, or with those that are the default."""
    source = ProblemSource(problem(), options())
    return Request(source, simulate=False, output=output, checkpoint_iterations=None if defaults else 1)
