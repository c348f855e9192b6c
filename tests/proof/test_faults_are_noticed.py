"""Each mechanism of determinism broken on purpose: the very comparison of the matrix must notice.

All runs of a test are broken alike, so what differs is what the matrix varies, and not the mutation itself.
"""

import pytest
from matrix import PLAIN, Way, differences, fingerprint

pytestmark = pytest.mark.timeout(1200)  # up to eight runs each

RANKS = (Way("shm", 2, 1), Way("tcp", 3, 1))
SEEDS = (PLAIN._replace(hash_seed=1), PLAIN._replace(hash_seed=2))


def noticed(mutation: str, ways: tuple[Way, ...], study: str = "markov") -> dict[str, list[str]]:
    expected = fingerprint(study, PLAIN, mutation=mutation)
    return differences(study, ways, expected, mutation=mutation)


def test_without_a_mutation_nothing_differs() -> None:
    assert not noticed("", (*RANKS[:1], *SEEDS[:1]))


def test_sums_per_rank_are_noticed() -> None:
    found = noticed("sum_per_rank", RANKS, "hydro")  # costs of the other are sums without rounding
    assert found
    for names in found.values():
        assert {"upper bound"} <= set(names) <= {"upper bound", "convergence"}, "only that sum is broken"


def test_a_seed_that_depends_on_the_rank_is_noticed() -> None:
    found = noticed("seed_per_rank", RANKS)
    assert len(found) == len(RANKS)
    assert all({"upper bound", "cuts", "policy file"} <= set(names) for names in found.values())


def test_a_hot_start_without_a_reset_is_noticed() -> None:
    assert noticed("hot_start", RANKS)


def test_a_loop_over_a_set_is_noticed() -> None:
    assert not noticed("loop_over_a_set", (PLAIN,)), "the same hash seed gives the same order"
    assert any("policy file" in names for names in noticed("loop_over_a_set", SEEDS).values())
