"""Training: iterations of forward pass, backward pass and bound, on any number of ranks.

    every iteration, on every rank
      forward     own trajectories, depth by depth              gather: their costs and paths
      backward    from the last depth to the first: own cuts    gather: all cuts of that depth; store them
      bound       own share of the start's outcomes             gather: objectives
      end         events, stopping rules                        gather: who wants to stop

Every gather carries a status (`error_agreement`), so that an error anywhere is raised everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from pycobre.comm import Communicator
from pycobre.events import Listener
from pycobre.problem import Problem
from pycobre.sddp.error_agreement import collective_section
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.policy import Policy
from pycobre.sddp.prepared import PreparedProblem, prepared_for
from pycobre.sddp.sampling import InSample, Sampler
from pycobre.sddp.training.outcome import Checkpointer, TrainingOutcome
from pycobre.sddp.training.state import TrainingState
from pycobre.sddp.training.trainer import Trainer

__all__ = ["train"]


def train(
    problem: Problem,
    comm: Communicator,
    options: TrainOptions | None = None,
    *,
    sampler: Sampler | None = None,
    on_event: Listener | None = None,
    should_stop: Callable[[], bool] | None = None,
    checkpoint: Checkpointer | None = None,
    state: TrainingState | None = None,
    warm_start: Policy | None = None,
    prepared: PreparedProblem | None = None,
) -> TrainingOutcome:
    """Train a policy.

    Requires: every rank of `comm` calls it with the same problem, options, sampler and state (checked as far as
        possible); `on_event` and `should_stop` may differ and are called on the ranks that give them,
        `should_stop` once per iteration; the stopping rules and `checkpoint` are asked on rank 0 only.
    Ensures: the same policy, bounds and reason on every rank, with the same bits whatever the number of ranks
        and threads. With `state` it goes on as if it had never stopped; with `warm_start` it begins with the
        cuts of another policy of a problem with the same nodes and states. `prepared` is used and left open.
    On error: a failure of any rank (a solve, the sampler, a listener, a rule) is raised on all of them, and
        `comm` stays usable; `CommError` when the communicator itself fails. An interrupt of one rank aborts it.
    """
    options = (options or TrainOptions()).resolved(problem)
    with collective_section(comm):
        sampler = sampler or InSample(
            problem, options.seed, max_depth=options.max_depth, persistence=options.persistence
        )
        with (
            prepared_for(problem, comm, options.solver, options.threads, prepared) as ready,
            Trainer(ready, comm, options, sampler, on_event, should_stop, checkpoint) as trainer,
        ):
            trainer.prepare(state, warm_start)
            while trainer.iterate() is None:
                pass
            return trainer.finish()
