"""From what people write to data, and what is said to those who wrote something else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pycobre.errors import ProblemError
from pycobre.problem import Graph, Problem, Sense, Stage, build, solve_extensive_form
from pycobre.solver.api import Target

Write = Callable[[Stage, Any], None]


def one_node(write: Callable[[Stage], None], **options: Any) -> Problem:
    return build(Graph.linear(1), lambda sp, t: write(sp), **options)


def refusal(write: Callable[[Stage], None], **options: Any) -> tuple[str, ...]:
    with pytest.raises(ProblemError) as caught:
        one_node(write, **options)
    return caught.value.findings


def test_everything_lands_in_its_place() -> None:
    def write(sp: Stage) -> None:
        x = sp.state("x", initial=1.0, lower=-2.0, upper=9.0)
        u = sp.variable("u", upper=4.0)
        free = sp.variable(lower=-math.inf)
        sp.add(x.out == 2.0 * x.in_ + u - 1.0, "balance")
        sp.add(3.0 * u <= 5.0 + u)
        sp.between(-1.0, free + 1.0, 6.0, "range")
        sp.minimise(7.0 * u + x.out + 8.0)

    node = one_node(write).nodes[0]
    lp = node.template
    assert lp.col_names == ("x.in", "x.out", "u", "_c3")
    assert lp.row_names == ("balance", "_r1", "range")
    assert lp.cost.tolist() == [0.0, 1.0, 7.0, 0.0]
    assert lp.offset == 8.0
    assert lp.col_lower[1:].tolist() == [-2.0, 0.0, -math.inf]
    assert lp.col_upper[1:].tolist() == [9.0, 4.0, math.inf]
    assert lp.row_lower.tolist() == [-1.0, -math.inf, -2.0]
    assert lp.row_upper.tolist() == [-1.0, 5.0, 5.0]
    dense = np.zeros((3, 4))
    dense[lp.rows, np.repeat(np.arange(4), np.diff(lp.starts))] = lp.values
    assert dense.tolist() == [[-2.0, 1.0, -1.0, 0.0], [0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert (node.state_in.tolist(), node.state_out.tolist()) == ([0], [1])
    assert node.noise.openings == 1
    assert node.noise.values.shape == (1, 0)


def test_noise_lands_in_every_kind_of_place() -> None:
    def write(sp: Stage) -> None:
        w = sp.noise([1.0, 3.0], [0.25, 0.75], name="w")
        x = sp.state("x", initial=0.0, upper=w)
        u = sp.variable("u", lower=-w)
        sp.add(x.out == w * u - x.in_ + 2.0 * w, "rhs and coefficient")
        sp.between(w - 5.0, u, 5.0 * w, "sides")
        sp.minimise(w * w * u + 1.0 / w)

    noise = one_node(write).nodes[0].noise
    places = {
        (Target(kind).name, row, col): values
        for kind, row, col, values in zip(
            noise.plan.kind.tolist(),
            noise.plan.row.tolist(),
            noise.plan.col.tolist(),
            noise.values.T.tolist(),
            strict=True,
        )
    }
    assert places == {
        ("COL_UPPER", -1, 1): [1.0, 3.0],
        ("COL_LOWER", -1, 2): [-1.0, -3.0],
        ("RHS", 0, -1): [2.0, 6.0],
        ("COEFFICIENT", 0, 2): [-1.0, -3.0],
        ("ROW_LOWER", 1, -1): [-4.0, -2.0],
        ("ROW_UPPER", 1, -1): [5.0, 15.0],
        ("COST", -1, 2): [1.0, 9.0],
        ("OFFSET", -1, -1): [1.0, 1.0 / 3.0],
    }
    assert noise.probability.tolist() == [0.25, 0.75]
    assert noise.names == ("w",)
    assert noise.outcomes.tolist() == [[1.0], [3.0]]


def test_the_template_holds_the_mean_but_no_vanishing_coefficient() -> None:
    def write(sp: Stage) -> None:
        w = sp.noise([-1.0, 1.0])
        u = sp.variable("u", upper=10.0)
        sp.add(w * u + sp.variable("v") >= 1.0 + w, "row")
        sp.minimise((w + 3.0) * u)

    lp = one_node(write).nodes[0].template
    assert lp.row_lower[0] == 1.0
    assert lp.cost[0] == 3.0
    assert abs(lp.values[0]) == 1.0


def test_what_rounding_leaves_of_a_mean_is_none() -> None:
    def write(sp: Stage) -> None:
        w = sp.noise([0.5, -0.75], [0.6, 0.4])
        u = sp.variable("u", upper=10.0)
        sp.add(w * u + sp.variable("v") >= w, "row")
        sp.minimise(w * u)

    assert 0.5 * 0.6 - 0.75 * 0.4 != 0.0
    lp = one_node(write).nodes[0].template
    assert (lp.row_lower[0], lp.cost[0], lp.values[0]) == (0.0, 0.0, -0.75)


def test_a_bound_that_is_infinite_in_some_opening_stays_infinite() -> None:
    def write(sp: Stage) -> None:
        u = sp.variable("u", upper=sp.noise([5.0, math.inf]))
        sp.minimise(u)

    assert one_node(write).nodes[0].template.col_upper[0] == math.inf


def test_separate_noises_are_independent_and_joint_ones_are_not() -> None:
    def write(sp: Stage) -> None:
        a = sp.noise([1.0, 2.0], [0.25, 0.75], name="a")
        pair = sp.joint_noise([{"b": 10.0, "c": 5.0}, {"c": 6.0, "b": 20.0}], [0.5, 0.5])
        u = sp.variable("u")
        sp.add(u == a + pair["b"], "sum")
        sp.minimise(pair["c"] * u)

    problem = one_node(write)
    noise = problem.nodes[0].noise
    assert noise.names == ("a", "b", "c")
    assert noise.outcomes.tolist() == [[1.0, 10.0, 5.0], [1.0, 20.0, 6.0], [2.0, 10.0, 5.0], [2.0, 20.0, 6.0]]
    assert noise.probability.tolist() == [0.125, 0.125, 0.375, 0.375]
    by_hand = 0.125 * 5 * 11 + 0.125 * 6 * 21 + 0.375 * 5 * 12 + 0.375 * 6 * 22
    assert solve_extensive_form(problem) == pytest.approx(by_hand, rel=1e-12)


def test_rows_of_joint_noise_may_be_plain() -> None:
    sp = Stage("n")
    pair = sp.joint_noise(np.array([[1.0, 2.0], [3.0, 4.0]]), names=["p", "q"])
    assert len(pair) == 2
    assert pair["q"] is pair[1]
    assert [c.constant.values.tolist() for c in pair] == [[1.0, 3.0], [2.0, 4.0]]
    assert sp.joint_noise([(1.0,), (2.0,)]).names == ("noise2",)


def test_maximising_is_minimising_the_negative() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0, upper=2.0)
        price = sp.noise([1.0, 5.0])
        sp.add(x.out <= x.in_ + 1.0)
        sp.maximise(price * x.out - 1.0)

    problem = build(Graph.linear(2), write, upper_bound=50.0)
    assert problem.sense is Sense.MAXIMISE
    assert problem.nodes[0].theta_lower == -50.0
    assert problem.nodes[1].theta_lower is None
    assert problem.nodes[0].template.cost.tolist() == [0.0, -3.0]
    assert problem.nodes[0].template.offset == 1.0
    assert solve_extensive_form(problem) == pytest.approx(7.0, rel=1e-12)
    assert problem.as_seen(-7.0) == 7.0


def test_a_bound_may_depend_on_the_node() -> None:
    def write(sp: Stage, t: Any) -> None:
        sp.minimise(sp.variable("u", lower=float(t)))

    problem = build(Graph.linear(3), write, lower_bound=lambda t: 10.0 * t)
    assert [node.theta_lower for node in problem.nodes] == [10.0, 20.0, None]


def test_both_bounds_are_refused() -> None:
    with pytest.raises(
        ProblemError, match=r"lower_bound \(to minimise\) or upper_bound \(to maximise\), got both"
    ):
        one_node(lambda sp: None, lower_bound=0.0, upper_bound=1.0)


def test_findings_of_all_nodes_come_together() -> None:
    def write(sp: Stage, t: Any) -> None:
        sp.add(True, f"row {t}")  # type: ignore[arg-type]

    with pytest.raises(ProblemError) as caught:
        build(Graph.linear(25), write, lower_bound=0.0)
    assert len(caught.value.findings) == 25
    assert "problem 'problem' has 25 findings:" in str(caught.value)
    assert str(caught.value).endswith("… and 5 more")
    assert caught.value.findings[0].startswith(
        "node '1': row 'row 1': expected a comparison of expressions, got True. Write `x == y`"
    )


def test_states_must_be_everywhere_and_agree() -> None:
    def write(sp: Stage, t: Any) -> None:
        sp.state("x", initial=float(t))
        if t == 1:
            sp.state("y", initial=0.0)
            sp.maximise(1.0)

    with pytest.raises(ProblemError) as caught:
        build(Graph.linear(2), write, lower_bound=0.0)
    assert caught.value.findings == (
        "node '1': objective: expected to minimise, got maximise. Give upper_bound.",
        "node '2': state 'y': expected at every node, got it not here. Declare it with sp.state, and a row "
        "if it is carried on.",
        "state 'x': expected one initial value, got [1.0, 2.0].",
    )


def test_senses_must_agree_without_a_bound_too() -> None:
    def write(sp: Stage, t: Any) -> None:
        u = sp.variable("u", upper=1.0)
        if t == 1:
            sp.minimise(u)
        else:
            sp.maximise(u)

    with pytest.raises(
        ProblemError, match=r"expected to minimise, got maximise\. Give one sense for all nodes"
    ):
        build(Graph.linear(2), write)


def test_a_missing_bound_and_a_missing_initial_value_are_findings() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x")
        sp.minimise(x.out)

    with pytest.raises(ProblemError) as caught:
        build(Graph.linear(2), write)
    assert caught.value.findings == (
        "state 'x': expected a finite initial value, got None. Say what the first node receives.",
        "node '1': expected a lower bound on the cost to go, got None. Give a finite number that no policy "
        "can beat.",
    )


def test_an_initial_value_may_be_given_once() -> None:
    def write(sp: Stage, t: Any) -> None:
        sp.state("x", initial=3.0 if t == 2 else None)

    assert build(Graph.linear(2), write, lower_bound=0.0).initial.tolist() == [3.0]


MISTAKES: list[tuple[Callable[[Stage], object], str]] = [
    (
        lambda sp: [sp.state("x", initial=0.0), sp.state("x", initial=0.0)],
        "state 'x': expected a name of its own",
    ),
    (lambda sp: sp.add(sp.noise([1.0]) <= 3.0), "row 0: expected at least one variable, got none"),
    (
        lambda sp: sp.add(sp.variable("u") * 0.0 <= 3.0, "r"),
        "row 'r': expected at least one variable, got none",
    ),
    (lambda sp: sp.variable("u", upper="much"), "bounds of column 'u': expected a number or noise, got str"),  # type: ignore[arg-type]
    (
        lambda sp: sp.variable("u", upper=sp.variable("v")),
        "bounds of column 'u': expected a number or noise, got a variable. Add a row instead",
    ),
    (lambda sp: [sp.minimise(1.0), sp.minimise(2.0)], "objective: expected one, got a second. Add them up"),
    (lambda sp: sp.noise([[1.0]]), "noise 'noise0': expected a list of numbers, got 2 dimensions"),
    (lambda sp: sp.noise([], name="w"), "noise 'w': expected at least one outcome, got none"),
    (
        lambda sp: sp.noise([1.0], [0.5, 0.5]),
        "noise 'noise0': expected 1 probabilities for 1 outcomes, got 2",
    ),
    (
        lambda sp: [sp.noise([1.0], name="w"), sp.noise([1.0], name="w")],
        "noise 'w': expected names of their own, got one twice. Rename one",
    ),
    (
        lambda sp: sp.joint_noise([{"a": 1.0}, {"b": 1.0}]),
        "joint noise: expected the names ['a'] in every row, got {'b': 1.0}",
    ),
    (
        lambda sp: sp.joint_noise([(1.0, 2.0), (1.0,)]),
        "joint noise: expected rows of one length, got lengths [1, 2]",
    ),
    (
        lambda sp: sp.joint_noise([(1.0, 2.0)], names=["a"]),
        "joint noise: expected 2 names for 2 columns, got 1",
    ),
    (
        lambda sp: [sp.noise(np.arange(101.0)) for _ in range(3)],
        "noise 'noise2': expected at most 1000000 combinations of independent outcomes, got 1030301. "
        "Sample a joint support",
    ),
]


@pytest.mark.parametrize(("write", "text"), MISTAKES, ids=[text[:40] for _, text in MISTAKES])
def test_mistakes_are_explained(write: Callable[[Stage], object], text: str) -> None:
    findings = refusal(lambda sp: write(sp) and None, lower_bound=0.0)
    assert len(findings) == 1
    assert re.match(re.escape(f"node '1': {text}"), findings[0])


def test_an_unknown_noise_is_named() -> None:
    with pytest.raises(ProblemError, match=r"noise 'rain': expected one of snow, sun\. Check the spelling"):
        Stage("n").joint_noise([(0.0, 1.0)], names=["snow", "sun"])["rain"]


def test_problems_without_noise_or_objective_are_fine() -> None:
    assert solve_extensive_form(one_node(lambda sp: sp.variable("u") and None)) == 0.0


def good(sp: Stage, t: Any) -> None:
    x = sp.state("x", initial=1.0, upper=9.0)
    u = sp.variable("u", upper=4.0)
    sp.add(x.out == x.in_ - u + sp.noise([0.0, 1.0]), "balance")
    sp.minimise(u)


def named_twice(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.add(sp.variable("v") <= 1.0, "balance")


def not_a_number(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.variable("v", upper=math.nan)


def noise_without_a_number(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.add(sp.variable("v") >= sp.noise([1.0, math.nan, 2.0], name="inflow"), "second")


def more_than_certain(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.add(sp.variable("v") == sp.noise([1.0, 2.0], [0.5, 0.6]), "second")


def crossing(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.variable("v", lower=2.0, upper=1.0)


def hopeless(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.add(sp.variable("v", upper=1.0) + sp.variable("w", upper=1.0) >= 3.0, "need")


def bottomless(sp: Stage, t: Any) -> None:
    good(sp, t)
    sp.objective = sp.objective - sp.variable("v")


def disconnected() -> Graph:
    graph = Graph.linear(2)
    graph.add_node("island")
    return graph


@pytest.mark.parametrize(
    ("graph", "write", "bound", "text"),
    [
        (Graph.linear(2), named_twice, 0.0, "node '1': rows are named twice: balance."),
        (Graph.linear(2), not_a_number, 0.0, "node '1': the bounds of v are [0.0, nan]."),
        (
            Graph.linear(2),
            noise_without_a_number,
            0.0,
            "node '1': noise 'inflow': expected numbers in every outcome, got nan in outcome 1.",
        ),
        (
            Graph.linear(2),
            more_than_certain,
            0.0,
            "expected the probabilities of the openings to sum to 1, got 1.1",
        ),
        (Graph.linear(2), crossing, 0.0, "node '1': the bounds of v are [2.0, 1.0]."),
        (
            Graph.linear(2),
            hopeless,
            0.0,
            "row 'need': expected at least 3.0, got at most 2.0 whatever is decided",
        ),
        (
            Graph.linear(2),
            bottomless,
            0.0,
            "node '1', opening 0: expected a bounded LP, got one whose cost falls",
        ),
        (disconnected(), good, 0.0, "node 'island': expected a path from the root, got none"),
        (Graph.linear(2), good, None, "node '1': expected a lower bound on the cost to go, got None"),
        (Graph.linear(2), good, math.nan, "node '1': expected a lower bound on the cost to go, got nan"),
        (Graph.cyclic(2), good, 0.0, "cycle through '1', '2': expected a discount below 1"),
    ],
)
def test_what_can_be_known_while_building_is_said_then(
    graph: Graph, write: Write, bound: float | None, text: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        build(graph, write, lower_bound=bound)
    assert any(text in finding for finding in caught.value.findings)


def test_the_good_one_builds() -> None:
    assert build(Graph.linear(2), good, lower_bound=0.0).shape.horizon == 2


def test_what_an_expression_refuses_is_said_with_the_node() -> None:
    def write(sp: Stage, t: Any) -> None:
        x = sp.state("x", initial=0.0)
        sp.minimise(x.in_ * x.out if t == 2 else x.out)

    with pytest.raises(ProblemError) as caught:
        build(Graph.linear(3), write, lower_bound=0.0)
    (finding,) = caught.value.findings
    assert finding.startswith("node '2': product of two variables: ")
