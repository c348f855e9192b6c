"""A cost of a thousandth on every storage: costs of very different size in one LP, and a training that ends well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pycobre.comm import create_communicator
from pycobre.hydro import build_model
from pycobre.hydro.examples import synthetic
from pycobre.problem import Problem
from pycobre.sddp import IterationLimit, TrainOptions, train
from pycobre.sddp.plan import Plan
from pycobre.solver import SolverOptions
from pycobre.solver.prepare import prepare

COST = 1e-3


def with_storage_costs(problem: Problem) -> Problem:
    """± COST on the outgoing storages in turn; bounds of the cost-to-go make room for it."""
    nodes = []
    for node in problem.nodes:
        storages = [
            col for col in node.state_out.tolist() if node.template.col_names[col].startswith("storage")
        ]
        cost = node.template.cost.copy()
        cost[storages] += COST * np.where(np.arange(len(storages)) % 2, 1.0, -1.0)
        lower = None if node.theta_lower is None else node.theta_lower - 1e6
        nodes.append(replace(node, template=replace(node.template, cost=cost), theta_lower=lower))
    return replace(problem, nodes=tuple(nodes))


def test_tiny_costs_beside_large_penalties_are_solved_without_retries():
    case = synthetic(hydros=30, cascades=4, lags=3, thermals=20, buses=3, blocks=3, stages=4, openings=6)
    plain = build_model(case).problem
    problem = with_storage_costs(plain)
    for node in Plan.of(problem).nodes:
        prepared = prepare(node.model, scaled=True)
        costs = np.delete(np.abs(prepared.cost), [prepared.theta] if prepared.theta >= 0 else [])
        assert costs.max() <= 2.0**13.5
        assert costs[costs > 0].min() < 1e-5  # six orders and more below: what moved the factor before
    options = TrainOptions(4, IterationLimit(4), solver=SolverOptions(tableau_entries=0, kernel_rows=0))
    comm = create_communicator("local")
    outcome, without = (train(each, comm, options) for each in (problem, plain))
    assert not [warning for warning in outcome.warnings if "retries" in warning or "certificate" in warning]
    assert abs(outcome.policy.lower_bound / without.policy.lower_bound - 1.0) < 1e-2
