"""Samplers: pure functions of (iteration, scenario), with the right frequencies."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.errors import OptionError
from pycobre.sddp import FixedSet, Historical, InSample, OutOfSample, Paths
from pycobre.sddp.sampling import default_depth
from pycobre.testing import problems


def same(left: Paths, right: Paths) -> bool:
    depth = max(left.depth, right.depth)
    return (
        left.lengths.tolist() == right.lengths.tolist()
        and left.nodes[:, :depth].tolist() == right.nodes[:, :depth].tolist()
        and left.openings[:, :depth].tolist() == right.openings[:, :depth].tolist()
    )


@pytest.mark.parametrize("make", [problems.hydro_thermal, problems.valley, problems.reservoir_for_ever])
def test_blocks_and_order_do_not_matter(make):
    sampler = InSample(make(), seed=5)
    whole = sampler.sample(3, 0, 40)
    for first, count in ((0, 7), (7, 13), (20, 20)):
        assert same(sampler.sample(3, first, count), whole.take(range(first, first + count)))
    assert not same(sampler.sample(4, 0, 40), whole)
    assert not same(InSample(make(), seed=6).sample(3, 0, 40), whole)
    assert len(sampler.sample(3, 0, 0)) == 0


def test_frequencies_follow_arcs_and_openings():
    problem = problems.valley()
    paths = InSample(problem, seed=1).sample(1, 0, 4000)
    assert set(paths.lengths.tolist()) == {3}
    names = np.array([node.name for node in problem.nodes])
    visited = names[paths.nodes[:, 1]]
    _, counts = np.unique(visited, return_counts=True)
    assert sorted(counts / 4000) == pytest.approx([0.4, 0.6], abs=0.03)
    assert np.bincount(paths.openings[:, 1]) / 4000 == pytest.approx([1 / 3] * 3, abs=0.03)


def test_loops_end_by_probability_or_at_the_limit():
    problem = problems.reservoir_for_ever()
    lengths = InSample(problem, seed=2).sample(1, 0, 4000).lengths
    assert lengths.mean() == pytest.approx(10.0, rel=0.06)
    assert default_depth(problem) == 100
    assert InSample(problem, seed=2, max_depth=4).sample(1, 0, 500).lengths.max() == 4
    with pytest.raises(OptionError, match="max_depth: expected at least 1, got 0"):
        InSample(problem, seed=2, max_depth=0)


def test_persistence_repeats_openings_that_are_possible():
    problem = problems.reservoir(20)
    often = InSample(problem, seed=1, persistence=0.9).sample(1, 0, 400).openings
    same_again = (often[:, 1:] == often[:, :-1]).mean()
    assert same_again == pytest.approx(0.9 + 0.1 / 3, abs=0.02)
    # The first stage of the newsvendor has one opening, the second two.
    mixed = InSample(problems.newsvendor(), seed=1, persistence=0.9).sample(1, 0, 400).openings
    assert set(mixed[:, 1].tolist()) == {0, 1}
    with pytest.raises(OptionError, match=r"persistence: expected a probability below 1, got 1\.0"):
        InSample(problem, seed=1, persistence=1.0)


def test_fixed_set_repeats_and_history_draws():
    problem = problems.hydro_thermal()
    names = [node.name for node in problem.nodes]
    paths = Paths.of(
        problem, [[(name, k) for name in names] for k in range(3)] + [[(name, [17.5]) for name in names]]
    )
    fixed = FixedSet(paths).sample(9, 2, 4)
    assert fixed.openings[:, 0].tolist() == [2, -1, 0, 1]
    assert fixed.values[0] is not None
    assert fixed.values[0][1].tolist() == [17.5]
    drawn = Historical(paths, 3, probability=[0, 1, 3, 0]).sample(1, 0, 2000).openings[:, 0]
    assert np.bincount(drawn, minlength=3) / 2000 == pytest.approx([0, 0.25, 0.75], abs=0.04)


def test_out_of_sample_asks_for_every_visit():
    problem = problems.hydro_thermal()
    asked = []

    def draw(node, iteration, scenarios, depth):
        asked.append((node, iteration, depth))
        return (1000.0 * depth + scenarios)[:, None]

    paths = OutOfSample(problem, 1, draw).sample(4, 10, 3)
    assert asked == [(0, 4, 0), (1, 4, 1), (2, 4, 2)]
    assert [values[:, 0].tolist() for values in paths.values] == [
        [10, 11, 12],
        [1010, 1011, 1012],
        [2010, 2011, 2012],
    ]
    with pytest.raises(OptionError, match="expected finite values of shape \\(3, 1\\), got shape \\(3,\\)"):
        OutOfSample(problem, 1, lambda node, iteration, scenarios, depth: scenarios).sample(1, 0, 3)


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        ([[]], "path 0: expected at least one node, got none"),
        ([[("nowhere", 0)]], "path 0, depth 0: expected the key of a node .1, 2, 3., got 'nowhere'"),
        ([[(99, 0)]], "path 0, depth 0: expected the key of a node .1, 2, 3., got 99"),
        ([[(1, 3)]], "expected an opening from 0 to 2, got 3"),
        ([[(1, [1.0, 2.0])]], "expected 1 finite patch values, got \\[1.0, 2.0\\]"),
        ([[(1, [np.nan])]], "expected 1 finite patch values, got \\[nan\\]"),
    ],
)
def test_paths_that_make_no_sense_are_refused(paths, text):
    with pytest.raises(OptionError, match=text):
        Paths.of(problems.hydro_thermal(), paths)


def test_empty_sets_are_refused():
    nothing = Paths.of(problems.hydro_thermal(), [])
    with pytest.raises(OptionError, match="expected at least one path, got none"):
        FixedSet(nothing)
    some = Paths.of(problems.hydro_thermal(), [[(1, 0)]])
    with pytest.raises(OptionError, match="expected 1 numbers ≥ 0, not all 0"):
        Historical(some, 1, probability=[0.0])
