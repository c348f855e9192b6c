"""The model of larger machines: what must hold whatever the numbers are."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cluster_model import Line, Nodes, Shared, Star, Work, _dealt, predict

WORK = Work(
    forward_s=np.array([0.010, 0.014]),
    chain_s=np.array([0.001, 0.003]),
    call_s=0.0002,
    forward_call_s=0.001,
    shared_s=0.0001,
    stages=6,
    record_bytes=40,
)
FREE = Star(Line(0.0, 0.0), 0.0)
INSIDE = Shared(Line(3e-6, 1e-10), 2e-7, 2e11)
STAR = Star(Line(3e-5, 1e-9), 5e-6)
NODES = Nodes(INSIDE, Line(2e-6, 1e-10), per_node=4)


def test_one_rank_does_all_the_work_and_meets_nobody():
    even = replace(WORK, forward_s=np.array([0.01]), chain_s=np.array([0.002]))
    found = predict(even, STAR, 1, 8)
    solves = 8 * 0.01 + 5 * 8 * 0.002 + 0.002
    calls = 0.001 + 6 * 0.0002
    assert found.seconds == pytest.approx(solves + calls + 7 * 0.0001)
    assert found.wait_s == 0.0
    assert found.communicate_s == 0.0


def test_equal_trajectories_without_fixed_costs_scale_perfectly():
    even = Work(np.array([0.01]), np.array([0.002]), 0.0, 0.0, 0.0, 6, 40)
    one = predict(even, FREE, 1, 64)
    for ranks in (2, 8, 64):
        found = predict(even, FREE, ranks, 64)
        assert found.seconds == pytest.approx(one.seconds / ranks, rel=1e-12)
        assert found.wait_s == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("network", [FREE, INSIDE, STAR, NODES], ids=lambda n: type(n).__name__)
def test_no_number_of_ranks_beats_its_share_of_the_solves(network):
    alone = predict(replace(WORK, call_s=0.0, forward_call_s=0.0, shared_s=0.0), FREE, 1, 24)
    for ranks in (1, 2, 3, 7, 24, 40):
        assert predict(WORK, network, ranks, 24).seconds >= alone.seconds / min(ranks, 24) * (1 - 1e-9)


def test_the_parts_add_up_to_the_whole():
    for ranks in (1, 3, 16):
        found = predict(WORK, STAR, ranks, 16)
        assert found.solve_s + found.wait_s + found.communicate_s == pytest.approx(found.seconds)


def test_trajectories_that_do_not_divide_make_the_others_wait():
    even = replace(WORK, forward_s=np.array([0.01]), chain_s=np.array([0.002]))
    assert predict(even, FREE, 4, 8).wait_s == pytest.approx(0.0, abs=1e-12)
    assert predict(even, FREE, 4, 9).wait_s > 0.0


def test_spread_makes_ranks_wait_and_many_ranks_wait_longer():
    shares = [predict(WORK, FREE, ranks, ranks) for ranks in (1, 4, 32)]
    assert 0.0 == shares[0].wait_s < shares[1].wait_s < shares[2].wait_s


def test_ranks_that_share_a_table_wait_for_half_a_trajectory_at_most_each():
    """Fixed blocks wait for the luck of a whole block; a table for what is left when the last was taken."""
    backward = replace(WORK, forward_s=np.array([0.0]), forward_call_s=0.0, call_s=0.0, shared_s=0.0)
    free_table = Shared(Line(0.0, 0.0), 0.0, 1e30)
    blocks, table = (predict(backward, network, 4, 64) for network in (FREE, free_table))
    assert table.wait_s < blocks.wait_s / 2
    steps = backward.stages  # the bound's included
    assert table.wait_s <= steps * backward.chain_s.max()
    assert table.seconds < blocks.seconds


def test_ranks_of_one_machine_deal_and_machines_do_not():
    """Two machines, the trajectories of the first three times as hard: only its own ranks share them."""
    drawn = np.array([3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    own = np.array([3, 1, 2, 2])
    assert _dealt(drawn, own, 2).tolist() == [6.0, 6.0, 2.0, 2.0]
    assert _dealt(drawn, own, 4).tolist() == [4.0, 4.0, 4.0, 4.0]
    assert _dealt(drawn[:3], np.array([1, 1, 1, 0]), 2).tolist() == [3.0, 3.0, 3.0, 0.0]


@pytest.mark.parametrize("network", [INSIDE, STAR, NODES], ids=lambda n: type(n).__name__)
def test_a_gather_costs_nothing_alone_and_never_less_with_more_ranks_or_bytes(network):
    assert network.gather_s(1, 1e6) == 0.0
    by_ranks = [network.gather_s(ranks, 1e4) for ranks in (2, 3, 4, 5, 8, 64, 256)]
    assert by_ranks == sorted(by_ranks)
    by_bytes = [network.gather_s(16, nbytes) for nbytes in (0.0, 8.0, 1e3, 1e6)]
    assert by_bytes == sorted(by_bytes)


def test_the_star_carries_the_square_of_the_ranks():
    pure = Star(Line(0.0, 1e-9), 0.0)
    assert pure.gather_s(257, 100.0) == pytest.approx(4 * pure.gather_s(129, 100.0))


def test_the_same_seed_gives_the_same_prediction():
    assert predict(WORK, STAR, 5, 16) == predict(WORK, STAR, 5, 16)
