"""Nodes that can never be solved are found before any algorithm runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from pycobre.errors import ProblemError
from pycobre.problem import Graph, Problem, Stage, build, check_stages


def findings(write: Callable[[Stage, Any], None], graph: Graph | None = None) -> tuple[str, ...]:
    chosen = graph or Graph.linear(2)
    problem = build(chosen, write, lower_bound=-99.0, check=False)
    with pytest.raises(ProblemError) as caught:
        check_stages(problem)
    with pytest.raises(ProblemError):
        build(chosen, write, lower_bound=-99.0)
    return caught.value.findings


def test_a_first_node_infeasible_from_the_initial_state() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=1.0, upper=9.0)
        u = sp.variable("u", upper=4.0)
        sp.add(x.out == x.in_ - u, "balance")
        sp.add(u + 0.1 * x.in_ >= (3.0 if t == 1 else 0.0), "need")

    assert findings(write) == (
        "node '1': expected a feasible LP, got one that is infeasible from the initial state [1.0]: rows balance, "
        "need and the bounds of x.in, x.out contradict each other. Relax a row, or add a slack with a cost.",
    )


def test_an_opening_infeasible_for_every_incoming_state() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=1.0, upper=2.0)
        w = sp.noise([0.0, 1.0, 6.0])
        u = sp.variable("u", upper=3.0)
        sp.add(x.out == x.in_ + 1.0 - u, "balance")
        if t == 2:
            sp.add(x.in_ + u >= w, "need")

    assert findings(write) == (
        "node '2', opening 2: expected a feasible LP, got one that is infeasible for every incoming state: rows "
        "need and the bounds of x.in, u contradict each other. Relax a row, or add a slack with a cost.",
    )


def test_a_cost_that_falls_for_ever() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0)
        sp.add(x.out == x.in_, "carry")
        u, v = sp.variables("u v")
        sp.add(u - v == x.in_, "pair")
        sp.minimise((1.0 if t == 1 else -1.0) * u)

    assert findings(write) == (
        "node '2': expected a bounded LP, got one whose cost falls for ever along u, v. Bound the columns that "
        "earn money, or check the signs of the objective.",
    )


def test_noise_may_make_it_unbounded() -> None:
    def write(sp: Stage, t: Any) -> None:
        sp.minimise(sp.noise([1.0, -1.0]) * sp.variable("u"))

    assert findings(write, Graph.linear(1))[0].startswith("node '1', opening 1: expected a bounded LP")


def test_nodes_that_no_path_reaches_are_left_alone() -> None:
    def write(sp: Stage, node: Any) -> None:
        x = sp.state("x", initial=0.0, upper=1.0)
        sp.add(x.out == x.in_ + (5.0 if node == (1, 1) else 0.0), "carry")

    assert isinstance(build(Graph.markov([[[1.0, 0.0]]]), write), Problem)


def test_limits_of_the_incoming_state_follow_noisy_bounds_and_cycles() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0, lower=sp.noise([-1.0, -2.0]), upper=sp.noise([1.0, 3.0]))
        short = sp.variable("short", lower=-math.inf)
        sp.add(x.out == x.in_ + short, "balance")
        if t == 2:
            sp.add(x.in_ >= 3.0, "only from the top")
        sp.minimise(0.0)

    assert build(Graph.cyclic(2, probability=0.5), write, lower_bound=0.0).shape.cyclic
