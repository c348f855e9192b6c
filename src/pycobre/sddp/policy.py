"""A policy: the cuts of every node, and what one can ask of them without an LP."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util import container
from pycobre._util.arrays import F64
from pycobre._util.files import write_atomically
from pycobre._util.frozen import frozen
from pycobre.errors import PolicyError
from pycobre.problem import Problem, Sense
from pycobre.sddp.cuts import Cuts
from pycobre.sddp.node_keys import node_position_or_index
from pycobre.sddp.numbers import cut_values
from pycobre.sddp.plan import NodePlan
from pycobre.sddp.stored import StoredData, cut_arrays

__all__ = ["Policy", "Value", "bound_name", "cuts_of"]


KIND, VERSION = "policy", 1


def bound_name(sense: Sense, *, estimate: bool = False) -> str:
    """On which side of the optimum the bound of a training is, in words."""
    side = "lower bound" if sense.sign > 0 else "upper bound"
    return f"estimate of the {side}" if estimate else side


def cuts_of(node: NodePlan, policy: Policy) -> Cuts:
    """The cuts that a node is solved with: a boundary is the problem's own, whatever a policy holds."""
    return policy.cuts[node.index] if node.boundary is None else Cuts.of_boundary(node.boundary)


class Value(NamedTuple):
    """The cost-to-go at a state, a subgradient of it, and the slot of the tight cut (−1: the bound θ ≥)."""

    value: float
    subgradient: F64
    slot: int


@frozen(eq=False, repr=False)
class Policy:
    """What training leaves behind. Amounts that methods return are as the problem's author sees them.

    `cuts[i]` belong to node i and bound its cost-to-go from below, as costs to be minimised:
    θ_i(x) ≥ intercept + slope·x with x the state that node i hands on. Nodes that nothing follows have none.
    """

    problem_name: str
    fingerprint: str  #: of the problem it was trained for
    sense: Sense
    state_names: tuple[str, ...]
    node_names: tuple[str, ...]
    theta_lower: F64  #: [nodes], −inf where nothing follows
    cuts: tuple[Cuts, ...]  #: [nodes]
    iterations: int
    lower_bound: float  #: of the minimised problem; as its author sees a maximised one, an upper bound

    @classmethod
    def of(cls, problem: Problem, cuts: tuple[Cuts, ...], iterations: int, lower_bound: float) -> Policy:
        """A policy of these cuts for this problem."""
        return cls(
            problem_name=problem.name,
            fingerprint=problem.fingerprint,
            sense=problem.sense,
            state_names=tuple(state.name for state in problem.states),
            node_names=tuple(node.name for node in problem.nodes),
            theta_lower=np.array(
                [
                    node.theta_lower
                    if node.theta_lower is not None
                    and (len(problem.shape.successors(index)[0]) or node.boundary is not None)
                    else -np.inf
                    for index, node in enumerate(problem.nodes)
                ]
            ),
            cuts=cuts,
            iterations=iterations,
            lower_bound=lower_bound,
        )

    def __repr__(self) -> str:
        return (
            f"<Policy of {self.problem_name!r}: {len(self.node_names)} nodes, {len(self.state_names)} states, "
            f"{self.total_cuts} cuts after {self.iterations} iterations>"
        )

    @property
    def total_cuts(self) -> int:
        return sum(len(cuts) for cuts in self.cuts)

    @property
    def active_cuts(self) -> int:
        return sum(int(np.count_nonzero(cuts.active)) for cuts in self.cuts)

    def summary(self) -> str:
        """The policy in a few lines: for which problem, how good, how many cuts where."""
        counts = [
            len(cuts) for cuts, floor in zip(self.cuts, self.theta_lower, strict=True) if floor > -np.inf
        ]
        spread = f"{min(counts)} to {max(counts)} per node" if counts else "no node looks ahead"
        return "\n".join(
            (
                f"policy of {self.problem_name!r} ({self.sense.value})",
                f"  nodes        {len(self.node_names)}",
                f"  states       {len(self.state_names)}",
                f"  iterations   {self.iterations}",
                f"  {bound_name(self.sense):<12} {self.sense.sign * self.lower_bound:.10g}",
                f"  cuts         {self.total_cuts} ({self.active_cuts} active), {spread}",
                f"  digest       {self.digest}",
            )
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the policy's content: equal policies, and only they, have equal digests."""
        digest = hashlib.sha256()
        head = [self.fingerprint, self.sense.value, str(self.iterations), self.lower_bound.hex()]
        for text in (*head, *self.state_names, *self.node_names):
            digest.update(f"{len(text)}:{text};".encode())
        for _, array in self._arrays():
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(f"{little.dtype.str}{little.shape};".encode())
            digest.update(little.data.cast("B") if little.size else b"")
        return digest.hexdigest()

    def index(self, node: Hashable | None = None, *, index: int | None = None) -> int:
        """The position of a node given by its key, as in the graph (`1` and `"1"` are the same), or by `index`."""
        where = f"node of the policy of {self.problem_name!r}"
        return node_position_or_index(self.node_names, node, index, where, PolicyError)

    def evaluate(
        self, node: Hashable | None = None, state: ArrayLike = (), *, index: int | None = None
    ) -> Value:
        """The cost-to-go that a node expects after handing on `state`, by the active cuts.

        `node` is its key; `index`, instead, its position in the problem's list of nodes.
        """
        index = self.index(node, index=index)
        x = np.asarray(state, dtype=np.float64).reshape(1, -1)
        if x.shape[1] != len(self.state_names):
            raise PolicyError(
                f"state: expected {len(self.state_names)} values {self.state_names}, got {x.shape[1]}."
            )
        cuts, floor, sign = self.cuts[index], float(self.theta_lower[index]), self.sense.sign
        if floor == -np.inf:
            return Value(0.0, np.zeros(x.shape[1]), -1)
        values = np.where(cuts.active != 0, cut_values(cuts.intercept, cuts.slope, x)[0], -np.inf)
        slot = int(np.argmax(values)) if len(values) else -1
        if slot < 0 or values[slot] < floor:
            return Value(sign * floor, np.zeros(x.shape[1]), -1)
        return Value(sign * float(values[slot]), sign * cuts.slope[slot], slot)

    def check(self, problem: Problem) -> None:
        """Refuse a problem with other states or nodes than those of this policy."""
        states = tuple(state.name for state in problem.states)
        nodes = tuple(node.name for node in problem.nodes)
        for what, mine, its in (("states", self.state_names, states), ("nodes", self.node_names, nodes)):
            if mine != its:
                missing = [name for name in mine if name not in its]
                extra = [name for name in its if name not in mine]
                raise PolicyError(
                    f"policy of {self.problem_name!r} and problem {problem.name!r}: expected equal {what}, "
                    f"got {len(mine)} and {len(its)} (only the policy: {missing[:5]}, only the problem: "
                    f"{extra[:5]}). Train a policy for this problem."
                )
        if self.sense is not problem.sense:
            raise PolicyError(
                f"policy of {self.problem_name!r} and problem {problem.name!r}: expected the same sense, got "
                f"{self.sense.value} and {problem.sense.value}."
            )

    def to_bytes(self) -> bytes:
        """The policy as one file: save → load → save gives the same bytes."""
        return container.pack(self._content())

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str = "policy") -> Policy:
        """Read what `to_bytes` wrote; truncated, changed or inconsistent data raise PolicyError."""
        return cls._of(container.unpack(data, KIND, VERSION, where=where, error=PolicyError), where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file, which appears whole or not at all."""
        write_atomically(path, container.pack_blocks(self._content()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a file that `save` wrote."""
        return cls._of(container.read(path, KIND, VERSION, error=PolicyError), str(path))

    def _content(self) -> container.Container:
        return container.Container(KIND, VERSION, self._meta(), dict(self._arrays()))

    def _meta(self) -> dict[str, Any]:
        return {
            "problem": self.problem_name,
            "fingerprint": self.fingerprint,
            "sense": self.sense.value,
            "states": list(self.state_names),
            "nodes": list(self.node_names),
            "iterations": self.iterations,
            "lower_bound": self.lower_bound,
        }

    def _arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "theta_lower", self.theta_lower
        for index, cuts in enumerate(self.cuts):
            yield from cut_arrays(index, cuts).items()

    @classmethod
    def _of(cls, content: container.Container, where: str) -> Policy:
        stored = StoredData(KIND, content.meta, content.arrays, where)
        states, nodes, iterations = stored.names("states"), stored.names("nodes"), stored.whole("iterations")
        sense = stored.text("sense")
        if sense not in [each.value for each in Sense]:
            raise stored.refuse("'sense'", " or ".join(each.value for each in Sense), repr(sense))
        theta_lower = stored.array("theta_lower", np.float64, (len(nodes),), open_below=True)
        cuts = tuple(stored.cuts(index, len(states), iterations) for index in range(len(nodes)))
        for name, floor, own in zip(nodes, theta_lower, cuts, strict=True):
            if floor == -np.inf and len(own):
                raise stored.refuse(f"node {name!r}", "no cuts, because nothing follows it", f"{len(own)}")
        stored.finish()
        return cls(
            problem_name=stored.text("problem"),
            fingerprint=stored.text("fingerprint"),
            sense=Sense(sense),
            state_names=states,
            node_names=nodes,
            theta_lower=theta_lower,
            cuts=cuts,
            iterations=iterations,
            lower_bound=stored.bound("lower_bound"),
        )
