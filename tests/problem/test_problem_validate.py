"""Bad data are refused at construction, all at once, in words that say where and what to do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pycobre.errors import ProblemError
from pycobre.problem import ROOT, Arcs, Node, Noise, Problem, Sense, State
from pycobre.solver.api import LpTemplate, PatchPlan, RhsCorrections, Target

NAN = math.nan
INF = math.inf


def template(**changes: Any) -> LpTemplate:
    """x_in, x_out, u with x_out − x_in + u = 5 and 0 ≤ u ≤ 10."""
    good = {
        "cost": [0.0, 0.0, 1.0],
        "col_lower": [-INF, 0.0, 0.0],
        "col_upper": [INF, 8.0, 10.0],
        "row_lower": [5.0],
        "row_upper": [5.0],
        "starts": [0, 1, 2, 3],
        "rows": [0, 0, 0],
        "values": [-1.0, 1.0, 1.0],
        "col_names": ("x.in", "x.out", "u"),
        "row_names": ("balance",),
    }
    return LpTemplate(**{**good, **changes})


def noise(kind: int = Target.RHS, row: int = 0, col: int = -1, **changes: Any) -> Noise:
    good: dict[str, Any] = {
        "plan": PatchPlan([kind], [row], [col]),
        "values": [[4.0], [6.0]],
        "probability": [0.5, 0.5],
    }
    return Noise(**{**good, **changes})


def node(name: str = "n", **changes: Any) -> Node:
    good: dict[str, Any] = {"template": template(), "state_in": [0], "state_out": [1], "noise": noise()}
    return Node(name, **{**good, **changes})


def problem(
    *nodes: Node,
    arcs: list[tuple[int, int, float]] | Arcs | None = None,
    states: tuple[State, ...] = (State("x", 1.0),),
    **changes: Any,
) -> Problem:
    given = [(ROOT, 0, 1.0)] if arcs is None else arcs
    return Problem(states, nodes, given if isinstance(given, Arcs) else Arcs.of(given), **changes)


def findings(*nodes: Node, **changes: Any) -> tuple[str, ...]:
    with pytest.raises(ProblemError) as caught:
        problem(*nodes, **changes)
    for finding in caught.value.findings[:20]:
        assert finding in str(caught.value)
    return caught.value.findings


def test_the_good_one_is_good() -> None:
    assert problem(node()).node("n").name == "n"
    with pytest.raises(KeyError, match=r"problem 'problem' has no node 'm': its nodes are \['n'\]"):
        problem(node()).node("m")


def test_what_is_built_shows_itself_in_one_line() -> None:
    built = problem(node())
    assert repr(built) == "<Problem 'problem': minimise, 1 nodes, 1 states, 2 openings>"
    assert repr(built.nodes[0]) == "<Node 'n': 3 columns, 1 rows, 2 openings>"
    assert repr(built.nodes[0].noise) == "<Noise: 2 openings, 1 places>"


def test_what_is_built_cannot_be_changed() -> None:
    costs = np.array([0.0, 0.0, 1.0])
    built = problem(node(template=template(cost=costs)))
    costs[2] = 99.0
    assert built.nodes[0].template.cost.tolist() == [0.0, 0.0, 1.0]
    for array in (
        built.nodes[0].template.values,
        built.nodes[0].noise.values,
        built.nodes[0].noise.plan.row,
        built.nodes[0].state_in,
        built.arcs.probability,
        built.initial,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


NO_INCOMING: dict[str, Any] = {"starts": [0, 0, 1, 2], "rows": [0, 0], "values": [1.0, 1.0]}
EMPTY = LpTemplate([], [], [], [], [], [0], [], [])

NODES: list[tuple[Node, tuple[str, ...]]] = [
    (node(discount=0.0), ("discount: expected more than 0 and at most 1, got 0.0.",)),
    (node(discount=NAN), ("discount: expected more than 0 and at most 1, got nan.",)),
    (
        node(state_in=[0, 2]),
        ("state_in: expected one column for each of the 1 states, got 2.",),
    ),
    (node(state_out=[7]), ("an output column is outside 0..2.",)),
    (node(template=template(cost=[0.0, NAN, INF])), ("the cost of x.out is nan.", "the cost of u is inf.")),
    (node(template=template(values=[-1.0, NAN, 1.0])), ("the coefficient at (balance, x.out) is nan.",)),
    (node(template=template(offset=NAN)), ("the objective's constant is nan.",)),
    (node(template=template(col_lower=[-INF, 9.0, 0.0])), ("the bounds of x.out are [9.0, 8.0].",)),
    (node(template=template(col_upper=[INF, NAN, 0.0])), ("the bounds of x.out are [0.0, nan].",)),
    (node(template=template(col_names=("x", "x", "u"))), ("columns are named twice: x.",)),
    (node(template=template(rows=[0, 0, 3])), ("the matrix has a row index outside 0..0.",)),
    (
        node(noise=noise(Target.COST, -1, 5)),
        ("a COST patch names column 5, outside 0..2.",),
    ),
    (
        node(template=template(row_lower=[4.0])),
        ("balance has two sides, [4.0, 5.0]: a right-hand-side patch is ambiguous.",),
    ),
    (
        node(noise=noise(probability=[0.5, 0.6])),
        (
            "noise: expected the probabilities of the openings to sum to 1, got 1.1. Add what is missing, or "
            "scale them.",
        ),
    ),
    (node(noise=noise(probability=[1.5, -0.5])), ("noise: expected probabilities from 0 to 1, got -0.5.",)),
    (node(noise=noise(probability=[NAN, 0.5])), ("noise: expected probabilities from 0 to 1, got nan.",)),
    (
        node(noise=noise(values=np.zeros((0, 1)), probability=[])),
        ("noise: expected at least one opening, got none.",),
    ),
    (node(noise=noise(values=[[4.0]])), ("noise values: expected 2 openings × 1, got 1 × 1.",)),
    (
        node(noise=noise(names=("w",), outcomes=[[1.0]])),
        ("noise outcomes: expected 2 openings × 1, got 1 × 1.",),
    ),
    (
        node(noise=noise(values=[[NAN], [6.0]])),
        ("noise in the right-hand side of row 'balance', opening 0: expected a finite number, got nan.",),
    ),
    (
        node(noise=noise(Target.COST, -1, 2, values=[[1.0], [INF]])),
        ("noise in the cost of column 'u', opening 1: expected a finite number, got inf.",),
    ),
    (
        node(noise=noise(Target.COEFFICIENT, 0, 2, values=[[1.0], [NAN]])),
        (
            "noise in the coefficient of column 'u' in row 'balance', opening 1: expected a finite number, "
            "got nan.",
        ),
    ),
    (
        node(noise=noise(Target.OFFSET, -1, -1, values=[[1.0], [NAN]])),
        ("noise in the objective constant, opening 1: expected a finite number, got nan.",),
    ),
    (
        node(noise=noise(Target.COL_UPPER, -1, 2, values=[[1.0], [NAN]])),
        ("noise in the upper bound of column 'u', opening 1: expected a finite number, got nan.",),
    ),
    (
        node(noise=noise(Target.COL_LOWER, -1, 2, values=[[NAN], [1.0]])),
        ("noise in the lower bound of column 'u', opening 0: expected a finite number, got nan.",),
    ),
    (
        node(noise=noise(Target.ROW_LOWER, 0, -1, values=[[NAN], [1.0]])),
        ("noise in the lower side of row 'balance', opening 0: expected a finite number, got nan.",),
    ),
    (
        node(noise=noise(Target.ROW_UPPER, 0, -1, values=[[NAN], [5.0]])),
        ("noise in the upper side of row 'balance', opening 0: expected a finite number, got nan.",),
    ),
    (
        node(noise=noise(Target.COL_UPPER, -1, 2, values=[[1.0], [-1.0]])),
        ("bounds of column 'u', opening 1: expected the lower not above the upper, got 0.0 to -1.0.",),
    ),
    (
        node(noise=noise(Target.ROW_LOWER, 0, -1, values=[[5.0], [6.0]])),
        ("bounds of row 'balance', opening 1: expected the lower not above the upper, got 6.0 to 5.0.",),
    ),
    (
        node(template=template(**NO_INCOMING), noise=noise(values=[[4.0], [19.0]])),
        (
            "row 'balance', opening 1: expected at least 19.0, got at most 18.0 whatever is decided. Relax "
            "the row or the bounds of its columns.",
        ),
    ),
    (
        node(
            template=template(**NO_INCOMING, row_lower=[-INF], row_upper=[-2.0]),
            noise=Noise.none(),
        ),
        (
            "row 'balance': expected at most -2.0, got at least 0.0 whatever is decided. Relax the row or "
            "the bounds of its columns.",
        ),
    ),
    (
        node(template=EMPTY, state_in=[], state_out=[], noise=Noise.none()),
        (
            "columns: expected at least one, got none. Add a variable or a state.",
            "state_in: expected one column for each of the 1 states, got 0.",
            "state_out: expected one column for each of the 1 states, got 0.",
        ),
    ),
    (
        node(rhs_corrections=RhsCorrections([1.0], [3], [0, 0], [], [], [], [], [])),
        ("the row of a right-hand-side correction is outside 0..0.",),
    ),
]


@pytest.mark.parametrize(("bad", "texts"), NODES, ids=[texts[0][:50] for _, texts in NODES])
def test_bad_nodes_are_explained(bad: Node, texts: tuple[str, ...]) -> None:
    assert findings(bad) == tuple(f"node 'n': {text}" for text in texts)


def test_rows_with_noisy_coefficients_or_floors_are_not_called_impossible() -> None:
    lp = template(**NO_INCOMING, row_lower=[99.0], row_upper=[99.0])
    problem(node(template=lp, noise=noise(Target.COEFFICIENT, 0, 2)))
    lifted = RhsCorrections([0.0], [0], [0, 0], [], [], [0], [0], [-1.0])
    problem(node(template=lp, noise=Noise.none(), rhs_corrections=lifted))


def test_nodes_without_rows_may_have_noise() -> None:
    lp = LpTemplate([0.0, 1.0], [0.0, 0.0], [9.0, 9.0], [], [], [0, 0, 0], [], [])
    problem(node(template=lp, noise=noise(Target.COST, -1, 1)))


def test_infinite_bounds_may_be_noise() -> None:
    problem(node(noise=noise(Target.COL_UPPER, -1, 2, values=[[4.0], [INF]])))


def test_states_are_explained() -> None:
    twice = node(state_in=[0, 2], state_out=[1, 2])
    assert findings(twice, states=(State("x", 1.0), State("x", NAN))) == (
        "state 'x': expected a name of its own, got it twice. Rename one.",
        "state 'x': expected a finite initial value, got nan. Say what the first node receives.",
    )
    assert "got None. Say what" in findings(node(), states=(State("x", None),))[0]  # type: ignore[arg-type]


def test_an_empty_problem_is_explained() -> None:
    assert findings(arcs=[]) == ("nodes: expected at least one, got none. Add a node.",)


def two(**changes: Any) -> tuple[Node, Node]:
    return node("a", **{"theta_lower": 0.0, **changes}), node("b", **{"theta_lower": 0.0, **changes})


@pytest.mark.parametrize(
    ("arcs", "texts"),
    [
        (
            [(ROOT, 0, 0.9), (0, 1, 1.0)],
            (
                "root: expected the probabilities of the arcs that leave it to sum to 1, got 0.9. Every path "
                "starts somewhere.",
            ),
        ),
        (
            [(ROOT, 0, 1.0), (0, 1, 0.7), (0, 0, 0.7)],
            ("node 'a': expected the probabilities of the arcs that leave it to sum to at most 1, got 1.4.",),
        ),
        (
            [(ROOT, 0, 1.0)],
            (
                "node 'b': expected a path from the root, got none. Add an arc to it (of probability 0 if it "
                "is unreachable on purpose), or remove the node.",
            ),
        ),
        (
            [(ROOT, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0)],
            (
                "cycle through 'a', 'b': expected a discount below 1 or a probability of stopping, got "
                "neither. Costs would add up for ever.",
            ),
        ),
        (
            [(ROOT, 0, 1.0), (0, 1, 0.5), (0, 1, 0.5)],
            ("arc 'a' → 'b': expected once, got twice. Add up the probabilities in one arc.",),
        ),
        (
            [(ROOT, 0, 1.0), (0, 2, 1.0), (0, ROOT, 1.0)],
            (
                "arc 0 → 2: expected nodes from 0 to 1 (-1, the root, as a source only). Use the positions "
                "of the nodes.",
                "arc 0 → -1: expected nodes from 0 to 1 (-1, the root, as a source only). Use the positions "
                "of the nodes.",
            ),
        ),
        (
            [(ROOT, 0, NAN), (0, 1, -0.1)],
            (
                "arc root → 'a': expected a probability from 0 to 1, got nan.",
                "arc 'a' → 'b': expected a probability from 0 to 1, got -0.1.",
            ),
        ),
    ],
)
def test_bad_graphs_are_explained(arcs: list[tuple[int, int, float]], texts: tuple[str, ...]) -> None:
    assert findings(*two(), arcs=arcs) == texts


def test_arcs_of_different_lengths_are_explained() -> None:
    assert findings(node(), arcs=Arcs([ROOT], [0, 0], [1.0])) == (
        "arcs: expected source, target and probability of one length, got 1, 2 and 1.",
    )


def test_cycles_with_a_discount_or_a_way_out_are_fine() -> None:
    ring = [(ROOT, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0)]
    assert problem(*two(discount=0.9), arcs=ring).shape.cyclic
    assert problem(*two(), arcs=[*ring[:2], (1, 0, 0.9)]).shape.cyclic


@pytest.mark.parametrize("bound", [None, -INF, NAN])
def test_a_missing_bound_on_the_cost_to_go_is_explained(bound: float | None) -> None:
    arcs = [(ROOT, 0, 1.0), (0, 1, 1.0)]
    first, last = two()
    loose = replace(first, theta_lower=bound)
    assert findings(loose, replace(last, theta_lower=None), arcs=arcs) == (
        f"node 'a': expected a lower bound on the cost to go, got {bound}. Give a finite number that no "
        "policy can beat.",
    )
    assert (
        "expected an upper bound on the reward to go"
        in findings(loose, last, arcs=arcs, sense=Sense.MAXIMISE)[0]
    )


def test_nodes_named_twice_are_explained() -> None:
    assert findings(node(), node(), arcs=[(ROOT, 0, 0.5), (ROOT, 1, 0.5)]) == (
        "node 'n': expected a name of its own, got it twice. Rename one.",
    )


def test_everything_wrong_is_said_at_once() -> None:
    found = findings(
        node("a", discount=2.0, noise=noise(probability=[0.1, 0.1])),
        node("b", template=template(cost=[0.0, NAN, 0.0])),
        arcs=[(ROOT, 0, 0.5)],
        states=(State("x", INF),),
    )
    assert len(found) == 6
