"""Small random multistage problems for property tests: every one solvable, none of them nice.

`random_problem(recipe, seed)` needs NumPy only; `problems()` is a Hypothesis strategy over recipes and seeds,
which shrinks to few stages, states and kinds of noise. Numbers are multiples of 1/4, so that a difference of
1e-9 between two solutions is a bug and not rounding.

Why there is always a solution (relatively complete recourse): the state equation of every node has slacks
with a cost in both directions, all other rows hold with every control at zero, and every node's cost is
bounded below whatever comes in. So a valid bound on the cost to go follows from the graph alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pycobre.problem import Graph, Problem, Stage, build
from pycobre.problem.graph import ROOT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Recipe", "problems", "random_problem"]

Place = Literal["rhs", "bound", "cost", "coefficient", "constant"]
PLACES: tuple[Place, ...] = ("rhs", "bound", "cost", "coefficient", "constant")
Kind = Literal["linear", "markov", "tree", "ring"]


@dataclass(frozen=True)
class Recipe:
    """What kind of problem to make; `noise` lists the places where it may be, all at once."""

    graph: Kind = "linear"
    stages: int = 2
    states: int = 1
    controls: int = 1
    openings: int = 2
    noise: frozenset[Place] = frozenset({"rhs"})
    first_stage_noise: bool = False
    free_states: bool = False
    maximise: bool = False
    discount: float = 1.0


def problems(
    *, graphs: tuple[Kind, ...] = ("linear", "markov", "tree"), max_stages: int = 3, max_states: int = 2
) -> SearchStrategy[Problem]:
    """Return a Hypothesis strategy of random problems; `"ring"` among `graphs` gives cyclic ones too."""
    from hypothesis import strategies as st

    recipes = st.builds(
        Recipe,
        graph=st.sampled_from(graphs),
        stages=st.integers(1, max_stages),
        states=st.integers(1, max_states),
        controls=st.integers(1, 2),
        openings=st.integers(1, 3),
        noise=st.frozensets(st.sampled_from(PLACES)),
        first_stage_noise=st.booleans(),
        free_states=st.booleans(),
        maximise=st.booleans(),
        discount=st.sampled_from([1.0, 0.75]),
    )
    return st.builds(random_problem, recipes, st.integers(0, 2**32 - 1))


def random_problem(recipe: Recipe, seed: int) -> Problem:
    """Make the problem of a recipe and a seed; the same problem on every machine."""
    rng = np.random.default_rng(seed)
    graph = _graph(recipe, rng)
    numbers = {node.key: _Numbers.draw(recipe, node.stage, rng) for node in graph.nodes()}
    initial = _quarters(rng, -4, 8, recipe.states)
    theta = _cost_to_go_bounds(graph, {key: drawn.least_cost() for key, drawn in numbers.items()})

    def stage(sp: Stage, key: Hashable) -> None:
        numbers[key].write(sp, initial, recipe.maximise)

    def bound(key: Hashable) -> float:
        return -theta[key] if recipe.maximise else theta[key]

    side = {"upper_bound" if recipe.maximise else "lower_bound": bound}
    return build(graph, stage, name=f"random {seed}", check=False, **side)


def _quarters(rng: np.random.Generator, low: int, high: int, size: Any = None) -> NDArray[np.float64]:
    return np.asarray(rng.integers(4 * low, 4 * high, size, endpoint=True) / 4.0)


def _distribution(rng: np.random.Generator, count: int, zeros: bool) -> NDArray[np.float64]:
    """Return probabilities in sixteenths; with `zeros` some may be nothing."""
    while True:
        weights = rng.integers(0 if zeros else 1, 4, count, endpoint=True).astype(np.float64)
        if weights.sum() > 0.0:
            return np.asarray(weights / weights.sum())


def _graph(recipe: Recipe, rng: np.random.Generator) -> Graph:
    if recipe.graph == "linear":
        return Graph.linear(recipe.stages, discount=recipe.discount)
    if recipe.graph == "ring":
        return Graph.cyclic(recipe.stages, probability=0.5, discount=recipe.discount)
    if recipe.graph == "markov":
        widths = [1, *rng.integers(1, 3, recipe.stages, endpoint=True).tolist()]
        chain = [
            np.array([_distribution(rng, after, zeros=True) for _ in range(before)])
            for before, after in pairwise(widths)
        ]
        return Graph.markov(chain, discount=recipe.discount)
    return _tree(recipe, rng)


def _tree(recipe: Recipe, rng: np.random.Generator) -> Graph:
    """Return an acyclic graph with arcs of several lengths and discounts, and paths that stop early."""
    graph = Graph()
    count = recipe.stages + 1
    for i in range(count):
        graph.add_node(f"n{i}", stage=i + 1, discount=recipe.discount)
    for i in range(-1, count - 1):
        reach = range(i + 1, min(i + 3, count))
        weights = _distribution(rng, len(reach), zeros=True) * (1.0 if i == ROOT else 0.75)
        for j, p in zip(reach, weights, strict=True):
            discount = 1.0 if i == ROOT else float(rng.choice([1.0, 0.5]))
            graph.add_arc("root" if i == ROOT else f"n{i}", f"n{j}", float(p), discount=discount)
    return graph


def _cost_to_go_bounds(graph: Graph, least: dict[Hashable, float]) -> dict[Hashable, float]:
    """Solve θ = P (least + D θ), less a margin: no policy's expected cost to go is below.

    Subtracting 1 keeps the bound off the optimum, where it would hide a wrong cost to go.
    """
    nodes = graph.nodes()
    arcs = np.zeros((len(nodes), len(nodes)))
    for source, target, p in graph.arcs():
        if source != ROOT:
            arcs[source, target] = p
    costs = np.array([least[node.key] for node in nodes])
    discount = np.array([node.discount for node in nodes])
    theta = np.linalg.solve(np.eye(len(nodes)) - arcs * discount, arcs @ costs)
    return {node.key: float(bound) - 1.0 for node, bound in zip(nodes, theta, strict=True)}


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The data of one node. Arrays over openings have them first; without noise they hold one."""

    recipe: Recipe
    probability: NDArray[np.float64]
    carry: NDArray[np.float64]  # [opening, state, state]
    effect: NDArray[np.float64]  # [opening, state, control]
    arrival: NDArray[np.float64]  # [opening, state]
    control_lower: NDArray[np.float64]  # [opening, control]
    control_upper: NDArray[np.float64]  # [opening, control]
    control_cost: NDArray[np.float64]  # [opening, control]
    constant: NDArray[np.float64]  # [opening]
    limit: NDArray[np.float64]  # [opening]
    slack_cost: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    weight: NDArray[np.float64]  # of the outgoing state

    @classmethod
    def draw(cls, recipe: Recipe, stage: int, rng: np.random.Generator) -> _Numbers:
        noisy = recipe.noise if stage > 1 or recipe.first_stage_noise else frozenset()
        k = recipe.openings if noisy else 1
        n, m = recipe.states, recipe.controls

        def numbers(place: Place, low: int, high: int, *shape: int) -> NDArray[np.float64]:
            """Draw for every opening if the place is noisy, else once for all."""
            drawn = _quarters(rng, low, high, (k if place in noisy else 1, *shape))
            return np.broadcast_to(drawn, (k, *shape))

        lower = _quarters(rng, -4, 0, n)
        return cls(
            recipe=recipe,
            probability=_distribution(rng, k, zeros=True),
            carry=numbers("coefficient", -1, 1, n, n),
            effect=numbers("coefficient", -2, 2, n, m),
            arrival=numbers("rhs", -3, 3, n),
            control_lower=numbers("bound", -2, 0, m),
            control_upper=numbers("bound", 0, 4, m),
            control_cost=numbers("cost", -3, 3, m),
            constant=numbers("constant", -2, 2),
            limit=numbers("rhs", 0, 4),
            slack_cost=_quarters(rng, 1, 6, (2, n)),
            lower=lower,
            upper=lower + _quarters(rng, 0, 8, n),
            weight=_quarters(rng, -2, 2, n),
        )

    def least_cost(self) -> float:
        """Return a number that the node's expected cost is not below, whatever comes in."""
        control = np.minimum(
            self.control_cost * self.control_lower, self.control_cost * self.control_upper
        ).sum(axis=1)
        state = 0.0
        if not self.recipe.free_states:
            state = float(np.minimum(self.weight * self.lower, self.weight * self.upper).sum())
        return float((control + self.constant) @ self.probability) + state

    def write(self, sp: Stage, initial: NDArray[np.float64], maximise: bool) -> None:
        n, m, k = self.recipe.states, self.recipe.controls, len(self.probability)
        opening = sp.joint_noise(np.eye(k), self.probability, names=[f"opening{i}" for i in range(k)])

        def by_opening(values: NDArray[np.float64]) -> Any:
            """Make a number of what is the same in every opening, and noise of what is not."""
            if (values == values[0]).all():
                return float(values[0])
            return sum(float(value) * chosen for value, chosen in zip(values, opening, strict=True))

        free = self.recipe.free_states
        states = [
            sp.state(
                f"x{i}",
                initial=float(initial[i]),
                lower=-np.inf if free else float(self.lower[i]),
                upper=np.inf if free else float(self.upper[i]),
            )
            for i in range(n)
        ]
        controls = [
            sp.variable(
                f"u{j}",
                lower=by_opening(self.control_lower[:, j]),
                upper=by_opening(self.control_upper[:, j]),
            )
            for j in range(m)
        ]
        cost: Any = by_opening(self.constant)
        cost += sum(by_opening(self.control_cost[:, j]) * controls[j] for j in range(m))
        for i, state in enumerate(states):
            more, less = sp.variables([f"more{i}", f"less{i}"])
            carried = sum(by_opening(self.carry[:, i, j]) * states[j].in_ for j in range(n))
            moved = sum(by_opening(self.effect[:, i, j]) * controls[j] for j in range(m))
            sp.add(state.out == carried + moved + by_opening(self.arrival[:, i]) + more - less, f"state{i}")
            cost += float(self.slack_cost[0, i]) * more + float(self.slack_cost[1, i]) * less
            if free:
                distance = sp.variable(f"distance{i}")
                sp.add(distance >= state.out - float(self.upper[i]), f"above{i}")
                sp.add(distance >= float(self.lower[i]) - state.out, f"below{i}")
                cost += abs(float(self.weight[i])) * distance
            else:
                cost += float(self.weight[i]) * state.out
        limit = by_opening(self.limit)
        sp.add(sum(controls, start=0.0 * controls[0]) <= limit, "together")
        if m > 1:
            sp.between(-limit - 1.0, controls[0] - controls[1], limit, "apart")
        if maximise:
            sp.maximise(-cost)
        else:
            sp.minimise(cost)
