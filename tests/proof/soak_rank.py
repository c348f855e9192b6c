"""What a rank of the soak does, and what it weighs meanwhile."""

from __future__ import annotations

import gc
import os
import resource
from typing import NamedTuple

from pycobre.comm import Communicator
from pycobre.sddp import IterationLimit, TrainOptions, simulate, train
from pycobre.testing.problems import reservoir

#: Iterations of one training: an hour of a study that takes a second for each is 72 trainings.
ITERATIONS = 50


class Weight(NamedTuple):
    """What a process holds of the system after a number of trainings."""

    kib: int
    descriptors: int
    threads: int
    digest: str


def soak(comm: Communicator, trainings: int, iterations: int) -> list[Weight]:
    """Train and simulate again and again over one communicator."""
    problem = reservoir(6)
    options = TrainOptions(forward_passes=4, stopping=IterationLimit(iterations), threads=2)
    weights = []
    for _ in range(trainings):
        outcome = train(problem, comm, options)
        simulate(problem, outcome.policy, 4, comm)
        weights.append(_weigh(outcome.policy.digest))
        del outcome
    return weights


def _weigh(digest: str) -> Weight:
    gc.collect()
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    kib = pages * resource.getpagesize() // 1024
    return Weight(kib, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), digest)
