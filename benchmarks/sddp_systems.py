"""Reservoir systems of any size as multistage problems, for the benchmarks of the algorithm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.solver_models import system
from pycobre.problem import Node, Noise, Problem, State
from pycobre.problem.api import Arcs
from pycobre.solver import LpTemplate


def reservoirs(
    plants: int = 4,
    buses: int = 5,
    lines: int = 5,
    thermals: int = 126,
    blocks: int = 1,
    *,
    stages: int,
    openings: int,
) -> Problem:
    """Storage in every plant as the state, inflows as noise, a linear graph; deterministic."""
    given = system(plants, buses, lines, thermals, blocks, stages, openings)
    nodes = []
    for t, (model, values) in enumerate(zip(given.models, given.openings, strict=True)):
        theta = model.theta_column
        assert theta is not None
        template = _without_column(model.template, theta)
        noise = Noise(model.plan, values, np.full(len(values), 1.0 / len(values)))
        lower = 0.0 if t < stages - 1 else None
        inputs, outputs = (
            np.where(cols > theta, cols - 1, cols).astype(np.int32) for cols in (model.inputs, model.outputs)
        )
        nodes.append(
            Node(
                f"stage {t}", template, inputs, outputs, noise, discount=0.99, theta_lower=lower, stage=t + 1
            )
        )
    states = tuple(State(f"storage {h}", float(x)) for h, x in enumerate(given.initial))
    arcs = [(t - 1, t, 1.0) for t in range(stages)]
    return Problem(states, tuple(nodes), Arcs.of(arcs), name=f"{plants} reservoirs")


def production_like(*, stages: int, openings: int) -> Problem:
    """About 2,100 columns and 1,200 rows per stage, 80 reservoirs, three blocks."""
    return reservoirs(80, 20, 30, 300, 3, stages=stages, openings=openings)


def _without_column(lp: LpTemplate, col: int) -> LpTemplate:
    """The template without a column that is in no row."""
    assert lp.starts[col] == lp.starts[col + 1]
    return replace(
        lp,
        cost=np.delete(lp.cost, col),
        col_lower=np.delete(lp.col_lower, col),
        col_upper=np.delete(lp.col_upper, col),
        starts=np.delete(lp.starts, col),
    )
