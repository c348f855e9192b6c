"""The shipped random problems keep their promises: solvable, validly bounded, and of every kind."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from pycobre.problem import ROOT, Arcs, Node, Problem, Sense, solve_extensive_form
from pycobre.solver.api import LpTemplate, Target
from pycobre.testing.random_problems import PLACES, Recipe, problems, random_problem


def least_cost_to_go(problem: Problem, position: int) -> float:
    """Return min over any incoming state of what follows a node: put a free choice of state before it."""
    width = len(problem.states)
    choice = Node(
        "choice",
        LpTemplate(
            np.zeros(2 * width),
            np.full(2 * width, -math.inf),
            np.full(2 * width, math.inf),
            [],
            [],
            np.zeros(2 * width + 1),
            [],
            [],
        ),
        state_in=np.arange(width),
        state_out=np.arange(width, 2 * width),
        theta_lower=-1e9,
    )
    nodes = (*problem.nodes, choice)
    inner = problem.arcs.source != ROOT
    targets, probability = problem.shape.successors(position)
    arcs = [
        *zip(
            problem.arcs.source[inner].tolist(),
            problem.arcs.target[inner].tolist(),
            problem.arcs.probability[inner].tolist(),
            strict=True,
        ),
        *((len(nodes) - 1, int(j), float(p)) for j, p in zip(targets, probability, strict=True)),
        (ROOT, len(nodes) - 1, 1.0),
        *((len(nodes) - 1, j, 0.0) for j in range(len(nodes) - 1) if j not in targets),
    ]
    return solve_extensive_form(replace(problem, nodes=nodes, arcs=Arcs.of(arcs), sense=Sense.MINIMISE))


@given(problems(max_stages=2))
@settings(max_examples=30, deadline=None)
def test_no_policy_beats_the_bound_from_any_state(problem: Problem) -> None:
    for position, node in enumerate(problem.nodes):
        if node.theta_lower is not None:
            assert least_cost_to_go(problem, position) >= node.theta_lower


def test_the_same_recipe_and_seed_make_the_same_problem() -> None:
    recipe = Recipe(graph="markov", stages=3, states=2, openings=3, noise=frozenset(PLACES))
    assert random_problem(recipe, 5).fingerprint == random_problem(recipe, 5).fingerprint
    assert random_problem(recipe, 5).fingerprint != random_problem(recipe, 6).fingerprint


@pytest.mark.parametrize("maximise", [False, True])
def test_maximising_sees_the_negative_of_minimising(maximise: bool) -> None:
    recipe = Recipe(stages=2, openings=2, noise=frozenset(PLACES), controls=2, maximise=maximise)
    value = solve_extensive_form(random_problem(recipe, 11))
    other = solve_extensive_form(random_problem(replace(recipe, maximise=not maximise), 11))
    assert value == pytest.approx(-other, rel=1e-12)


def test_every_kind_of_trouble_occurs() -> None:
    seen: set[str] = set()
    for seed in range(60):
        recipe = Recipe(
            graph=("linear", "markov", "tree", "ring")[seed % 4],  # type: ignore[arg-type]
            stages=3,
            states=2,
            controls=2,
            openings=3,
            noise=frozenset(PLACES),
            first_stage_noise=seed % 2 == 0,
            free_states=seed % 3 == 0,
        )
        problem = random_problem(recipe, seed)
        shape = problem.shape
        seen.update(Target(kind).name for node in problem.nodes for kind in node.noise.plan.kind.tolist())
        if not shape.reachable.all():
            seen.add("unreachable")
        if shape.cyclic:
            seen.add("cyclic")
        if any((node.noise.probability == 0.0).any() for node in problem.nodes):
            seen.add("impossible opening")
        if problem.nodes[0].noise.openings > 1:
            seen.add("first-stage noise")
        if any((node.template.cost < 0.0).any() for node in problem.nodes):
            seen.add("negative cost")
        if np.isinf(problem.nodes[0].template.col_lower[problem.nodes[0].state_out]).all():
            seen.add("free state")
        if len({len(shape.successors(i)[0]) for i in range(len(problem.nodes))}) > 1:
            seen.add("branching")
    assert seen >= {
        *(target.name for target in Target),
        "unreachable",
        "cyclic",
        "impossible opening",
        "first-stage noise",
        "negative cost",
        "free state",
        "branching",
    }
