"""Policies: values, decisions, files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.comm import LocalBackend
from pycobre.errors import OptionError, PolicyError
from pycobre.sddp import DecisionRule, IterationLimit, Level1, Policy, TrainOptions, simulate, train
from pycobre.testing import problems


@pytest.fixture(scope="module")
def hydro():
    problem = problems.hydro_thermal()
    return problem, train(problem, LocalBackend(), TrainOptions(5, IterationLimit(10))).policy


def test_value_is_the_highest_cut_and_its_slope_supports_it(hydro):
    problem, policy = hydro
    cuts = policy.cuts[0]
    for volume in np.linspace(0, 200, 9):
        value, slope, slot = policy.evaluate(problem.nodes[0].name, [volume])
        assert value == pytest.approx(max(0.0, float(np.max(cuts.intercept + cuts.slope[:, 0] * volume))))
        assert slot == -1 or cuts.slope[slot, 0] == slope[0]
        for other in (0.0, 77.0, 200.0):
            assert policy.evaluate(1, [other]).value >= value + slope[0] * (other - volume) - 1e-9
    assert policy.evaluate(3, [10.0]) == (0.0, pytest.approx([0.0]), -1)


def test_the_first_decision_is_the_published_one():
    problem = problems.air_conditioners()
    policy = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(8))).policy
    with DecisionRule(problem, policy) as rule:
        first = rule.decide(1, [0.0])
        assert first.state == pytest.approx([100.0])
        assert first.value == pytest.approx(62500.0)
        assert first.cost + first.cost_to_go == pytest.approx(first.value)
        produced = [name for name in first.names if first[name] == pytest.approx(200.0)]
        assert len(produced) == 1
        with pytest.raises(KeyError, match="has no variable 'nothing'"):
            first["nothing"]
        second = rule.decide(2, first.state, opening=1)
        assert rule.decide(2, first.state, noise=problem.nodes[1].noise.values[1]).value == second.value


def test_a_maximised_problem_is_seen_as_its_author_wrote_it():
    problem = problems.farmer()
    outcome = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(20)))
    assert outcome.lower_bound == pytest.approx(108390.0)
    with DecisionRule(problem, outcome.policy) as rule:
        first = rule.decide(1, [0.0, 0.0, 0.0])
        assert first.value == pytest.approx(108390.0)
        assert first.state == pytest.approx([170.0, 80.0, 250.0])
        assert first.cost < 0 < first.cost_to_go
        assert outcome.policy.evaluate(1, first.state).value == pytest.approx(first.cost_to_go)


def test_decisions_that_make_no_sense_are_refused(hydro):
    problem, policy = hydro
    with DecisionRule(problem, policy) as rule:
        for arguments, text in (
            ({"state": [1.0, 2.0], "opening": 0}, "state: expected 1 values, got 2"),
            ({"state": [1.0]}, "has 3 openings: expected one of them"),
            ({"state": [1.0], "opening": 3}, "expected 0 to 2, got 3"),
            ({"state": [1.0], "noise": [1.0, 2.0]}, "expected 1 values and no opening, got 2 values"),
        ):
            with pytest.raises(OptionError, match=text):
                rule.decide(index=0, **arguments)
        with pytest.raises(PolicyError, match=r"expected the key of a node .1, 2, 3., got 'x'"):
            rule.decide("x", [1.0], opening=0)
    with pytest.raises(PolicyError, match="expected 1 values \\('volume',\\), got 2"):
        policy.evaluate(1, [1.0, 2.0])


def test_nodes_are_named_by_key_and_positions_by_index(hydro):
    """An int is a key like any other: node 1 of a linear graph is its first."""
    problem, policy = hydro
    for key, name, index in ((1, "1", 0), (2, "2", 1), (np.int64(3), "3", 2)):
        expected = policy.evaluate(name, [80.0])
        for found in (policy.evaluate(key, [80.0]), policy.evaluate(index=index, state=[80.0])):
            assert (found.value, found.slot) == (expected.value, expected.slot)
    assert policy.evaluate(1, [80.0]).value != policy.evaluate(2, [80.0]).value
    with DecisionRule(problem, policy) as rule:
        assert rule.decide(2, [80.0], opening=1).node == "2"
        assert rule.decide(index=1, state=[80.0], opening=1).node == "2"
    for arguments, text in (
        ({"node": 0}, "expected the key of a node (1, 2, 3), got 0."),
        ({"node": 4}, "expected the key of a node (1, 2, 3), got 4."),
        ({"index": 3}, "expected an index from 0 to 2, got 3."),
        ({"index": True}, "expected an index from 0 to 2, got True."),
        ({"index": 0, "node": 1}, "expected the key of a node or its index, got both."),
        ({}, "expected the key of a node or its index, got neither."),
    ):
        with pytest.raises(PolicyError) as caught:
            policy.evaluate(state=[1.0], **arguments)
        assert str(caught.value) == f"node of the policy of 'hydro-thermal': {text}"


def test_keys_of_a_markovian_graph_are_pairs():
    problem = problems.valley()
    policy = train(problem, LocalBackend(), TrainOptions(2, IterationLimit(3))).policy
    state = np.full(len(problem.states), 10.0)
    assert policy.evaluate((2, 0), state).value == policy.evaluate("2:0", state).value


def test_files_keep_every_bit(hydro, tmp_path):
    _, policy = hydro
    path = tmp_path / "policy"
    policy.save(path)
    loaded = Policy.load(path)
    assert loaded.digest == policy.digest
    assert loaded.to_bytes() == policy.to_bytes() == path.read_bytes()
    assert loaded.evaluate(1, [50.0]).value == policy.evaluate(1, [50.0]).value
    torn = path.read_bytes()[:-40]
    with pytest.raises(PolicyError, match="truncated or corrupt"):
        Policy.from_bytes(torn)
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 1
    with pytest.raises(PolicyError, match="truncated or corrupt"):
        Policy.from_bytes(bytes(changed))
    with pytest.raises(PolicyError, match="cannot read the policy file"):
        Policy.load(tmp_path / "nowhere")


def test_objects_introduce_themselves_in_one_line(hydro):
    problem, policy = hydro
    assert repr(policy) == "<Policy of 'hydro-thermal': 3 nodes, 1 states, 100 cuts after 10 iterations>"
    assert repr(policy.cuts[0]) == "<Cuts: 50 of 1 states, 50 active>"
    assert policy.digest in policy.summary()
    outcome = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(2)))
    assert repr(outcome).startswith("<TrainingOutcome after 2 iterations (iteration_limit): lower bound ")
    assert repr(simulate(problem, policy, 3, LocalBackend())).startswith(
        "<Simulation of scenarios 0 to 2: 3 deep"
    )


def test_digests_see_every_bit(hydro):
    problem, policy = hydro
    again = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(10))).policy
    assert again.digest == policy.digest
    assert again.cuts[1].intercept.flags.writeable is False
    other = train(problem, LocalBackend(), TrainOptions(5, IterationLimit(10), seed=1)).policy
    assert other.digest != policy.digest
    cuts = again.cuts[1]
    slope = cuts.slope.copy()
    slope[3, 0] = np.nextafter(slope[3, 0], 0)
    from dataclasses import replace

    changed = replace(again, cuts=(again.cuts[0], replace(cuts, slope=slope), again.cuts[2]))
    assert changed.digest != policy.digest


def test_selection_leaves_its_mask_in_the_policy():
    options = TrainOptions(5, IterationLimit(10), selection=Level1(every=5))
    policy = train(problems.one_stock(), LocalBackend(), options).policy
    assert 0 < policy.active_cuts < policy.total_cuts == 200
    for cuts in policy.cuts[:-1]:
        assert np.all(np.isin(cuts.active, (0, 1)))


def test_a_policy_of_another_problem_is_refused(hydro):
    _, policy = hydro
    with pytest.raises(PolicyError, match="expected equal states, got 1 and 2"):
        policy.check(problems.production())
