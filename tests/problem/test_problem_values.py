"""Every known problem has its known value: by its extensive form, and by exact dynamic programming."""

from collections.abc import Callable
from fractions import Fraction

import lattice
import pytest

from pycobre.problem import Problem, ProblemError, extensive_form, solve_extensive_form, solve_lp, tree_size
from pycobre.testing import problems
from pycobre.testing.problems import KnownProblem, known_problems

FINITE = [
    pytest.param(known, id=known.name)
    for known in known_problems()
    if not known.cyclic and known.name != "reservoir 20"
]

BY_DYNAMIC_PROGRAMMING: dict[str, Callable[[], float | Fraction]] = {
    "hydro-thermal": lambda: lattice.hydro_thermal_value(4),
    "hydro-thermal from 0": lambda: lattice.hydro_thermal_value(0),
    "hydro-thermal from 50": lambda: lattice.hydro_thermal_value(1),
    "hydro-thermal from 100": lambda: lattice.hydro_thermal_value(2),
    "hydro-thermal from 150": lambda: lattice.hydro_thermal_value(3),
    "fuel price": lambda: lattice.hydro_thermal_value(4, [Fraction(3, 2), Fraction(1), Fraction(3, 4)]),
    "air conditioners": lambda: lattice.air_conditioners_value((1,)),
    "air conditioners, random start": lambda: lattice.air_conditioners_value((1, 3)),
    "reservoir 2": lambda: lattice.reservoir_value(2),
    "reservoir 4": lambda: lattice.reservoir_value(4),
    "reservoir 20": lambda: lattice.reservoir_value(20),
    "reservoir for ever": lambda: lattice.reservoir_for_ever_value(400),
    "one stock": lambda: lattice.one_stock_value(5),
    "trader": lattice.trader_value,
    "regimes": lattice.regimes_value,
    "seasons": lambda: lattice.seasons_value(150),
}


@pytest.mark.parametrize("known", FINITE)
def test_the_extensive_form_gives_the_known_value(known: KnownProblem) -> None:
    assert solve_extensive_form(known.make()) == pytest.approx(known.value, rel=1e-9)


@pytest.mark.parametrize("name", BY_DYNAMIC_PROGRAMMING)
def test_dynamic_programming_gives_the_known_value(name: str) -> None:
    known = next(known for known in known_problems() if known.name == name)
    assert float(BY_DYNAMIC_PROGRAMMING[name]()) == pytest.approx(known.value, rel=1e-9)


def first_decision(problem: Problem, *names: str) -> list[float]:
    lp = extensive_form(problem)
    primal = solve_lp(lp).primal
    return [float(primal[list(lp.col_names).index(name)]) for name in names]


def test_first_decisions_are_the_published_ones() -> None:
    assert first_decision(problems.air_conditioners(), "1.0/produced", "1.0/stored.out") == pytest.approx(
        [200.0, 100.0]
    )
    assert first_decision(
        problems.stocks_and_bonds(), "1:0.0/stocks.out", "1:0.0/bonds.out"
    ) == pytest.approx([41.479272, 13.520728], rel=1e-7)
    assert first_decision(
        problems.farmer(), "1.0/wheat.out", "1.0/corn.out", "1.0/beet.out"
    ) == pytest.approx([170.0, 80.0, 250.0])


@pytest.mark.parametrize("name", ["reservoir for ever", "constant loop", "free loop", "seasons"])
def test_cyclic_problems_have_no_extensive_form(name: str) -> None:
    known = next(known for known in known_problems() if known.name == name)
    assert known.cyclic
    with pytest.raises(
        ProblemError,
        match=f"extensive form of problem '{name}': expected a graph without cycles, got a cyclic one",
    ):
        extensive_form(known.make())


def test_trees_that_are_too_large_are_refused_with_their_size() -> None:
    problem = problems.reservoir(20)
    assert tree_size(problem) == sum(3**t for t in range(1, 21))
    with pytest.raises(ProblemError, match="expected at most 200000 nodes in the tree, got 5230176600"):
        extensive_form(problem)
    with pytest.raises(ProblemError, match="expected at most 11 nodes in the tree, got 12"):
        extensive_form(problems.reservoir(2), max_vertices=11)


def test_names_of_known_problems_are_distinct() -> None:
    names = [known.name for known in known_problems()]
    assert len(set(names)) == len(names)
