"""The small parts: splits, ordered sums, similarity, the division of the root's work, memory."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sddp_runs import PATIENT

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError
from pycobre.sddp import (
    CVaR,
    Expectation,
    IterationLimit,
    Level1,
    RiskMeasure,
    TrainOptions,
    estimate,
    expectation_and_cvar,
)
from pycobre.sddp.numbers import cut_values, ordered_dot, ordered_sum, spread
from pycobre.sddp.openings import Openings
from pycobre.sddp.plan import Plan, similarity_order
from pycobre.sddp.split import Split
from pycobre.sddp.training.bound import RootWork
from pycobre.testing import problems


@PATIENT
@given(st.integers(0, 60), st.integers(1, 9))
def test_blocks_are_contiguous_balanced_and_owned(total, ranks):
    split = Split(total, ranks)
    assert [i for rank in range(ranks) for i in split.block(rank)] == list(range(total))
    assert max(split.counts) - min(split.counts) <= 1
    assert all(i in split.block(split.owner(i)) for i in range(total))


@PATIENT
@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_sums_go_from_left_to_right(terms):
    total = 0.0
    for term in terms:
        total += term
    assert float(ordered_sum(np.array(terms))) == total


def test_sums_do_not_depend_on_their_neighbours():
    values = np.random.default_rng(1).normal(size=(40, 300))
    whole = ordered_dot(values, values)
    for row in (0, 7, 39):
        assert whole[row] == ordered_dot(values[row : row + 1].copy(), values[row : row + 1].copy())[0]
    slope, intercept = values[:, :17], values[:, 17]
    at_once = cut_values(intercept, slope, values[:9, 20:37])
    for point in range(9):
        piece = cut_values(intercept[5:11], slope[5:11], values[point : point + 1, 20:37])
        assert piece.tobytes() == at_once[point, 5:11].copy().tobytes()


def test_spread_is_exact_on_integers():
    mean, std, half_width = spread(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (mean, std) == (3.0, pytest.approx(float(Fraction(14, 3)) ** 0.5))
    assert half_width == pytest.approx(1.96 * std / 2)
    assert spread(np.array([4.0])) == (4.0, 0.0, 0.0)


def test_neighbouring_openings_are_alike():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=(10, 3)), rng.normal(size=(10, 3)) + 50.0])[rng.permutation(20)]
    values = np.column_stack([values, np.full(20, 7.0)])
    order = similarity_order(values)
    assert sorted(order.tolist()) == list(range(20))
    jumps = np.abs(np.diff(values[order, 0])) > 25
    assert jumps.sum() <= 2
    assert similarity_order(np.zeros((5, 2))).tolist() == [0, 1, 2, 3, 4]
    assert similarity_order(np.zeros((1, 0))).tolist() == [0]


@pytest.mark.parametrize("trajectories", [1, 2, 3, 4, 7, 50])
def test_root_work_covers_every_outcome_once_in_rank_order(trajectories):
    problem = problems.one_stock()
    plan = Plan.of(problem)
    work = RootWork(plan, Openings(LocalBackend(), plan), trajectories)
    covered = [(piece.child, at) for piece in work.pieces for at in range(piece.begin, piece.end)]
    assert covered == [(0, at) for at in range(10)]
    for ranks in (1, 2, 3):
        split = Split(trajectories, ranks)
        owners = [split.owner(piece.trajectory) for piece in work.pieces]
        assert owners == sorted(owners)
        assert sum(work.counts(split)) == 10


def test_nodes_with_the_same_lp_share_one_model():
    plan = Plan.of(problems.reservoir(20))
    assert len({id(node.model) for node in plan.nodes[:-1]}) == 1
    assert plan.linear_order is not None
    assert plan.linear_order.tolist() == list(range(20))


def test_families_are_nodes_with_the_same_children():
    plan = Plan.of(problems.valley())
    assert plan.linear_order is None
    sizes = sorted(len(family.members) for family in plan.families)
    assert sizes == [1, 2]
    for family in plan.families:
        for probability in family.probability.values():
            assert probability.sum() == pytest.approx(1.0)
    loop = Plan.of(problems.reservoir_for_ever())
    assert loop.families[0].probability[0].tolist() == pytest.approx([0.3, 0.3, 0.3, 0.1])


def test_options_are_checked_and_named():
    for wrong, text in (
        ({"forward_passes": 0}, "forward_passes: expected at least 1, got 0"),
        ({"threads": 0}, "threads: expected at least 1, got 0"),
        ({"forward_passes": 2.5}, "forward_passes: expected a whole number, got 2.5"),
        ({"max_depth": 0}, "max_depth: expected at least 1, got 0"),
        ({"persistence": 1.0}, "persistence: expected a probability below 1, got 1.0"),
        ({"persistence": float("nan")}, "persistence: expected a probability below 1, got nan"),
        ({"persistence": "often"}, "persistence: expected a probability below 1, got 'often'"),
        ({"forward_passes": True}, "forward_passes: expected a whole number, got True"),
        ({"seed": 4.5}, "seed: expected a whole number, got 4.5"),
        ({"lazy": 1}, "lazy: expected True or False, got 1"),
        ({"solver": {"threads": 2}}, "solver: expected SolverOptions, got dict"),
        ({"selection": "level1"}, "selection: expected a Selection or None, got str"),
        ({"stopping": 7}, "stopping: expected a StoppingRule, got int"),
        ({"risk": "worst"}, "risk: expected a RiskMeasure, got str"),
    ):
        with pytest.raises(OptionError, match=text):
            TrainOptions(**wrong)
    problem = problems.hydro_thermal()
    name = problem.nodes[1].name
    found = TrainOptions(risk={name: CVaR(0.5)}).measures(problem)
    assert found == {-1: Expectation(), 0: Expectation(), 1: CVaR(0.5), 2: Expectation()}
    with pytest.raises(OptionError, match=r"expected the key of a node .1, 2, 3., got 'nowhere'"):
        TrainOptions(risk={"nowhere": CVaR(0.5)}).measures(problem)


class Twice(RiskMeasure):
    """A measure of one's own that is no dataclass."""

    def __init__(self, share):
        self.share = share

    def weights(self, probability, costs):
        return expectation_and_cvar(self.share, 0.5).weights(probability, costs)


def test_options_differ_where_objects_of_ones_own_do():
    keys = [TrainOptions(risk=Twice(share)).key()["risk"] for share in (0.25, 0.5, 0.5)]
    assert keys == ["Twice(share=0.25)", "Twice(share=0.5)", "Twice(share=0.5)"]
    assert TrainOptions(np.int64(3)).key() == TrainOptions(3).key()


def test_estimate_counts_cuts_and_openings():
    problem = problems.one_stock()
    options = TrainOptions(forward_passes=3, stopping=IterationLimit(50))
    found = estimate(problem, options)
    assert found.cuts == 4 * 3 * 50 * 2 * 8  # four nodes look ahead, one state and an intercept per cut
    assert found.openings == sum(node.noise.values.nbytes for node in problem.nodes)
    assert estimate(problem, options, ranks=3).starts < found.starts
    assert "cuts after 50 iterations" in str(found)
    assert "once per machine" in str(found)
    # The states at which cuts are compared, where a selection does that: one number per cut here.
    assert found.points == 0
    selecting = estimate(problem, replace(options, selection=Level1()))
    assert selecting.points == 4 * 3 * 50 * 8
    assert selecting.shared_bytes == found.shared_bytes + selecting.points


def test_estimate_counts_nodes_with_the_same_lp_once():
    few, many = (estimate(problems.reservoir(stages), TrainOptions(1)) for stages in (5, 50))
    assert few.lps == many.lps
    assert many.cuts == few.cuts // 4 * 49
