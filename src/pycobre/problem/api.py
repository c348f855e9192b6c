"""What a multistage linear problem is made of: data only, immutable, nothing but names and arrays.

    Problem ─┬─ states   State(name, initial)                      what a node hands to the next
             ├─ nodes    Node(name, template, state_in, state_out, noise, …)   one LP per node
             └─ arcs     Arcs(source, target, probability)         where to go from a node

At node i, with the incoming state x and the opening w of its noise, the value is

    V_i(x, w) = min  c_w·y + discount_i · θ     over y in the polyhedron of node i patched with w,
                     y[state_in] = x,   θ = Σ_j p_ij Σ_w' q_jw' V_j(y[state_out], w'),   θ ≥ theta_lower_i

and the problem's value is Σ_j p_root,j Σ_w q_jw V_j(x₀, w). Where the arcs that leave a node sum to less than
one, a path stops there with the rest. Everything inside is minimised: a problem that its author maximises
holds negated costs, and `Problem.sense` converts what people see.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from dataclasses import field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pycobre._util.frozen import frozen
from pycobre.problem.graph import ROOT, Shape
from pycobre.problem.validate import require_valid
from pycobre.solver.api import LpTemplate, PatchPlan, RhsCorrections

__all__ = ["ROOT", "Arcs", "Boundary", "Node", "Noise", "Problem", "Sense", "State"]


def _frozen(values: ArrayLike, dtype: DTypeLike, ndim: int) -> NDArray[Any]:
    """Return the values as a read-only C-contiguous array: a copy, unless they already are one."""
    array = np.asarray(values, dtype=dtype)
    if array.flags.writeable or array.ndim != ndim or not array.flags.c_contiguous:
        array = np.array(array, order="C", ndmin=ndim)
        array.flags.writeable = False
    return array


def _freeze(holder: Any) -> None:
    """Make the arrays of a solver's data class read-only in place, so that nodes may share one."""
    for item in fields(holder):
        value = getattr(holder, item.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(holder, item.name, _frozen(value, value.dtype, value.ndim))


class Sense(enum.Enum):
    """Which way the author looks at costs. Inside, everything is minimised."""

    MINIMISE = "minimise"
    MAXIMISE = "maximise"

    @property
    def sign(self) -> int:
        """What turns an internal (minimised) amount into the author's, and back."""
        return 1 if self is Sense.MINIMISE else -1


@frozen()
class State:
    """A quantity that every node receives and hands on; `initial` is what the first node receives."""

    name: str
    initial: float


@frozen(eq=False, repr=False)
class Noise:
    """The finite support of what a node observes before it decides.

    Opening k happens with `probability[k]` and writes `values[k]` to the places that `plan` lists. A node
    without noise has one opening of width zero. Values are of the internal (minimised) LP.

    `names` and `outcomes[k]` are the quantities as their author named them, for tables of results only.
    """

    plan: PatchPlan
    values: NDArray[np.float64]
    probability: NDArray[np.float64]
    names: tuple[str, ...] = ()
    outcomes: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        _freeze(self.plan)
        object.__setattr__(self, "values", _frozen(self.values, np.float64, 2))
        object.__setattr__(self, "probability", _frozen(self.probability, np.float64, 1))
        object.__setattr__(self, "names", tuple(self.names))
        outcomes = self.outcomes if self.names else np.zeros((len(self.probability), 0))
        object.__setattr__(self, "outcomes", _frozen(outcomes, np.float64, 2))

    @classmethod
    def none(cls) -> Noise:
        """The noise of a node where nothing is uncertain."""
        return cls(PatchPlan.empty(), np.zeros((1, 0)), np.ones(1))

    @property
    def openings(self) -> int:
        return len(self.probability)

    def __repr__(self) -> str:
        return f"<Noise: {self.openings} openings, {len(self.plan)} places>"


@frozen(eq=False, repr=False)
class Boundary:
    """What lies beyond the graph: the largest of the linear functions intercept + slope·x of the state handed on.

    Costs to be minimised, as everything inside; worth `discount` of the node that they belong to.
    """

    intercept: NDArray[np.float64]  #: [functions]
    slope: NDArray[np.float64]  #: [functions, states]

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", _frozen(self.intercept, np.float64, 1))
        object.__setattr__(self, "slope", _frozen(self.slope, np.float64, 2))

    def __len__(self) -> int:
        return len(self.intercept)

    def __repr__(self) -> str:
        return f"<Boundary: {len(self)} linear functions of {self.slope.shape[1]} states>"


@frozen(eq=False, repr=False)
class Node:
    """One decision: an LP, how the state enters and leaves it, and the noise it sees.

    `state_in[i]` and `state_out[i]` are the columns of state i (they may be the same column: a state merely
    carried on). The bounds of an incoming column are ignored, those of an outgoing one are the limits of the
    state. The cost-to-go column is not in `template`: whoever solves appends it with cost `discount` and
    lower bound `theta_lower` (None where no arc leaves). A node that no arc leaves may have a `boundary`, whose
    value is then its cost-to-go, from `theta_lower` on.
    """

    name: str
    template: LpTemplate
    state_in: NDArray[np.int32]
    state_out: NDArray[np.int32]
    noise: Noise = field(default_factory=Noise.none)
    discount: float = 1.0
    theta_lower: float | None = None
    rhs_corrections: RhsCorrections | None = None
    stage: int = 1
    boundary: Boundary | None = None

    def __post_init__(self) -> None:
        _freeze(self.template)
        if self.rhs_corrections is not None:
            _freeze(self.rhs_corrections)
        object.__setattr__(self, "state_in", _frozen(self.state_in, np.int32, 1))
        object.__setattr__(self, "state_out", _frozen(self.state_out, np.int32, 1))

    def __repr__(self) -> str:
        lp = self.template
        return (
            f"<Node {self.name!r}: {lp.num_cols} columns, {lp.num_rows} rows, {self.noise.openings} openings>"
        )


@frozen(eq=False)
class Arcs:
    """Where to go next: from node `source[k]` (ROOT for the start) to `target[k]` with `probability[k]`.

    An arc of probability zero is allowed: a node may belong to the graph although no path reaches it.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    probability: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _frozen(self.source, np.int32, 1))
        object.__setattr__(self, "target", _frozen(self.target, np.int32, 1))
        object.__setattr__(self, "probability", _frozen(self.probability, np.float64, 1))

    @classmethod
    def of(cls, arcs: Sequence[tuple[int, int, float]]) -> Arcs:
        """Build from (source, target, probability) triples."""
        return cls(
            np.array([arc[0] for arc in arcs], dtype=np.int32),
            np.array([arc[1] for arc in arcs], dtype=np.int32),
            np.array([arc[2] for arc in arcs], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.probability)


@frozen(eq=False, repr=False)
class Problem:
    """A whole multistage problem. Construction validates and raises ProblemError with every finding.

    Every node has every state, in the order of `states`.
    """

    states: tuple[State, ...]
    nodes: tuple[Node, ...]
    arcs: Arcs
    sense: Sense = Sense.MINIMISE
    name: str = "problem"

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        require_valid(self)

    def __repr__(self) -> str:
        return (
            f"<Problem {self.name!r}: {self.sense.value}, {len(self.nodes)} nodes, {len(self.states)} states, "
            f"{sum(node.noise.openings for node in self.nodes)} openings>"
        )

    @cached_property
    def initial(self) -> NDArray[np.float64]:
        """The state that the first node receives, f64[n_states]."""
        return _frozen([state.initial for state in self.states], np.float64, 1)

    @cached_property
    def shape(self) -> Shape:
        """What can be known of the graph alone: successors, order, cycles, reachability."""
        return Shape.of(len(self.nodes), self.arcs.source, self.arcs.target, self.arcs.probability)

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(
            f"problem {self.name!r} has no node {name!r}: its nodes are {[n.name for n in self.nodes]}"
        )

    def as_seen(self, amount: float) -> float:
        """Turn an internal (minimised) amount into what the author expects to see, or back."""
        return self.sense.sign * amount

    def to_bytes(self) -> bytes:
        """Return the problem in its one byte form: equal problems give equal bytes."""
        from pycobre.problem.storage import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Problem:
        """Read what `to_bytes` wrote; torn, tampered or foreign data raise ProblemError."""
        from pycobre.problem.storage import from_bytes

        return from_bytes(data)

    def save(self, path: str | Path) -> None:
        """Write `to_bytes()` to a file, which appears whole or not at all."""
        from pycobre.problem.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Problem:
        """Read a file that `save` wrote."""
        from pycobre.problem.storage import load

        return load(Path(path))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of `to_bytes()`: what a stored policy or checkpoint refers to."""
        return hashlib.sha256(self.to_bytes()).hexdigest()
