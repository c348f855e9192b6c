"""Graphs as people write them, and what is known of them afterwards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycobre.errors import ProblemError
from pycobre.problem import ROOT, Arcs, Graph, Shape


def shape(count: int, *arcs: tuple[int, int, float]) -> Shape:
    packed = Arcs.of(arcs)
    return Shape.of(count, packed.source, packed.target, packed.probability)


def test_linear() -> None:
    graph = Graph.linear(3, discount=0.9)
    assert [(node.key, node.name, node.stage, node.discount) for node in graph.nodes()] == [
        (1, "1", 1, 0.9),
        (2, "2", 2, 0.9),
        (3, "3", 3, 0.9),
    ]
    assert graph.arcs() == [(ROOT, 0, 1.0), (0, 1, 1.0), (1, 2, 1.0)]


def test_cyclic() -> None:
    graph = Graph.cyclic(2, probability=0.8)
    assert graph.arcs() == [(ROOT, 0, 1.0), (0, 1, 1.0), (1, 0, 0.8)]
    known = shape(2, *graph.arcs())
    assert known.cyclic
    assert known.horizon is None
    assert known.stopping.tolist() == pytest.approx([0.0, 0.2])
    assert known.component.tolist() == [0, 0]


def test_markov_keeps_unreachable_states() -> None:
    graph = Graph.markov([[0.6, 0.4], [[0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]])
    assert [(node.key, node.name, node.stage) for node in graph.nodes()] == [
        ((1, 0), "1:0", 1),
        ((1, 1), "1:1", 1),
        ((2, 0), "2:0", 2),
        ((2, 1), "2:1", 2),
        ((2, 2), "2:2", 2),
    ]
    known = shape(5, *graph.arcs())
    assert known.reachable.tolist() == [True, True, True, True, False]
    assert known.connected.all()
    targets, probability = known.successors(1)
    assert (targets.tolist(), probability.tolist()) == ([2, 3], [0.3, 0.7])
    targets, probability = known.successors(ROOT)
    assert (targets.tolist(), probability.tolist()) == ([0, 1], [0.6, 0.4])


@pytest.mark.parametrize(
    ("transitions", "text"),
    [
        (
            [[[1.0]], [[0.5, 0.5], [0.5, 0.5]]],
            "transition matrix of stage 2: expected 1 row, one for each state of the stage before, got 2 × 2",
        ),
        (
            [[[0.5, 0.5]], [[1.0]]],
            "matrix of stage 2: expected 2 rows, one for each state of the stage before, got 1 × 1",
        ),
        ([[[0.5, 0.4]]], "transition matrix of stage 1, row 0: expected a sum of 1, got 0.9"),
        ([[[1.5, -0.5]]], r"transition matrix of stage 1, row 0: expected probabilities, got \[1.5, -0.5\]"),
    ],
)
def test_bad_transitions_are_explained(transitions: list[list[list[float]]], text: str) -> None:
    with pytest.raises(ProblemError, match=text):
        Graph.markov(transitions)


def test_discounts_on_arcs() -> None:
    graph = Graph()
    graph.add_node("a", discount=0.5)
    graph.add_node("b")
    graph.add_node("c")
    graph.add_arc("root", "a")
    graph.add_arc("a", "b", 0.5, discount=0.8)
    graph.add_arc("a", "c", 0.5, discount=0.4)
    assert [node.discount for node in graph.nodes()] == [0.4, 1.0, 1.0]
    assert graph.arcs() == [(ROOT, 0, 1.0), (0, 1, 0.5), (0, 2, 0.25)]


def test_bad_arcs_and_nodes_are_explained() -> None:
    graph = Graph()
    graph.add_node("a")
    with pytest.raises(ProblemError, match="node 'a': expected a key of its own, got it twice"):
        graph.add_node("a")
    with pytest.raises(ProblemError, match="node 'root': expected a key of its own"):
        graph.add_node("root")
    with pytest.raises(ProblemError, match=r"arc 'a' → 'b': expected known nodes, got 'b'\. Add it first"):
        graph.add_arc("a", "b")
    for source in ("a", "root"):
        with pytest.raises(ProblemError, match=f"arc '{source}' → 'root': expected known nodes, got 'root'"):
            graph.add_arc(source, "root")
    with pytest.raises(ProblemError, match="arc 'root' → 'b': expected known nodes, got 'b'"):
        graph.add_arc("root", "b")
    with pytest.raises(ProblemError, match=r"expected a discount of more than 0 and at most 1, got 1\.5"):
        graph.add_arc("a", "a", discount=1.5)
    with pytest.raises(ProblemError, match=r"a discount of 1, because nothing is paid before it, got 0\.5"):
        graph.add_arc("root", "a", discount=0.5)


def reached(count: int, arcs: set[tuple[int, int]], start: int) -> set[int]:
    """Return what a path of at least one arc leads to, by closing the relation (cubic, but plain)."""
    found = {j for i, j in arcs if i == start}
    for _ in range(count):
        found |= {j for i, j in arcs if i in found}
    return found


@given(st.integers(1, 7), st.data())
def test_what_is_known_of_a_random_graph(count: int, data: st.DataObject) -> None:
    pairs = [(i, j) for i in range(-1, count) for j in range(count)]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    weights = data.draw(st.lists(st.sampled_from([0.0, 0.125]), min_size=len(chosen), max_size=len(chosen)))
    known = shape(count, *((i, j, p) for (i, j), p in zip(chosen, weights, strict=True)))
    arcs = {pair for pair, p in zip(chosen, weights, strict=True) if p > 0.0}

    closure = {i: reached(count, arcs, i) for i in range(-1, count)}
    assert set(np.flatnonzero(known.reachable).tolist()) == closure[ROOT]
    assert set(np.flatnonzero(known.connected).tolist()) == reached(count, set(chosen), ROOT)
    assert known.cyclic == any(i in closure[i] for i in range(count))
    assert sorted(known.order.tolist()) == list(range(count))
    for i, j in itertools.combinations(range(count), 2):
        together = j in closure[i] and i in closure[j]
        assert (known.component[i] == known.component[j]) == together
    position = {node: k for k, node in enumerate(known.order.tolist())}
    for i, j in arcs:
        if i != ROOT and known.component[i] != known.component[j]:
            assert position[i] < position[j]
    for i in range(-1, count):
        targets, probability = known.successors(i)
        assert targets.tolist() == sorted(j for k, j in arcs if k == i)
        assert (probability == 0.125).all()
    if not known.cyclic:
        assert known.horizon == longest(arcs, ROOT)


def longest(arcs: set[tuple[int, int]], start: int) -> int:
    return max((1 + longest(arcs, j) for i, j in arcs if i == start), default=0)


def test_long_chains_do_not_exhaust_the_stack() -> None:
    count = 20_000
    known = shape(count, *((i - 1, i, 1.0) for i in range(count)))
    assert known.horizon == count
    assert known.order.tolist() == list(range(count))
