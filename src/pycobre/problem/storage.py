"""Problems as bytes: the package's container (see `pycobre._util.container`) of kind "problem".

Every distinct array and list of names is written once, whoever shares it, so that the bytes are a function
of the content alone. Nothing is pickled, so nothing runs on loading; what is read is validated like what is
built.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pycobre._util.container import Container, pack, read, unpack
from pycobre._util.files import write_atomically
from pycobre.errors import ProblemError
from pycobre.problem.api import Arcs, Boundary, Node, Noise, Problem, Sense, State
from pycobre.solver.api import LpTemplate, PatchPlan, RhsCorrections

__all__ = ["from_bytes", "load", "save", "to_bytes"]

KIND = "problem"
VERSION = 1
_FLOAT_FIELDS = {
    "cost", "col_lower", "col_upper", "row_lower", "row_upper", "values", "limit", "coef", "effect_multiplier"
}  # fmt: skip


def to_bytes(problem: Problem) -> bytes:
    """Return the problem in its one byte form."""
    return pack(_encode(problem))


def from_bytes(data: bytes, where: str = "problem") -> Problem:
    """Read what `to_bytes` wrote; raise ProblemError for anything else."""
    return _decode(unpack(data, KIND, VERSION, where=where, error=ProblemError), where)


def save(problem: Problem, path: Path) -> None:
    """Write the problem to a file, which appears whole or not at all."""
    write_atomically(path, to_bytes(problem))


def load(path: Path) -> Problem:
    """Read a file that `save` wrote."""
    return _decode(read(path, KIND, VERSION, error=ProblemError), str(path))


class _Writer:
    """Numbers each distinct array and list of names in order of first use."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.texts: list[list[str]] = []
        self._known: dict[Any, int] = {}

    def array(self, array: NDArray[Any]) -> int:
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append(array)
        return self._known[key]

    def text(self, names: tuple[str, ...]) -> int:
        if names not in self._known:
            self._known[names] = len(self.texts)
            self.texts.append(list(names))
        return self._known[names]

    def record(self, holder: Any) -> dict[str, Any]:
        """Return a data class of the solver as field → number, or the field itself where it is a scalar."""
        return {item.name: self._field(getattr(holder, item.name)) for item in fields(holder)}

    def _field(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.array(value)
        return self.text(value) if isinstance(value, tuple) else value


def _encode(problem: Problem) -> Container:
    writer = _Writer()
    nodes = [
        {
            "name": node.name,
            "stage": node.stage,
            "template": writer.record(node.template),
            "state_in": writer.array(node.state_in),
            "state_out": writer.array(node.state_out),
            "plan": writer.record(node.noise.plan),
            "values": writer.array(node.noise.values),
            "probability": writer.array(node.noise.probability),
            "noise_names": writer.text(node.noise.names),
            "outcomes": writer.array(node.noise.outcomes),
            "discount": float(node.discount),
            "theta_lower": None if node.theta_lower is None else float(node.theta_lower),
            "floors": None if node.rhs_corrections is None else writer.record(node.rhs_corrections),
            **_boundary(writer, node),
        }
        for node in problem.nodes
    ]
    meta = {
        "name": problem.name,
        "sense": problem.sense.value,
        "states": [[state.name, float(state.initial)] for state in problem.states],
        "arcs": writer.record(problem.arcs),
        "nodes": nodes,
        "texts": writer.texts,
    }
    return Container(KIND, VERSION, meta, {str(number): array for number, array in enumerate(writer.arrays)})


def _boundary(writer: _Writer, node: Node) -> dict[str, Any]:
    """Only nodes that have one mention it: problems without keep their bytes."""
    if node.boundary is None:
        return {}
    return {"boundary": [writer.array(node.boundary.intercept), writer.array(node.boundary.slope)]}


class _Reader:
    """Gives back what `_Writer` numbered; templates that are equal become one object again."""

    def __init__(self, content: Container) -> None:
        self._content = content
        self._known: dict[str, Any] = {}

    def array(self, number: int, dtype: DTypeLike, ndim: int = 1) -> NDArray[Any]:
        array = self._content.arrays[str(number)]
        if array.dtype != np.dtype(dtype) or array.ndim != ndim:
            raise ValueError(f"array {number} is {array.dtype} of {array.ndim} dimensions")
        return array

    def text(self, number: int) -> tuple[str, ...]:
        names = self._content.meta["texts"][number]
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"names {number} are not all text")
        return tuple(names)

    def record(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        key = f"{cls.__name__}{sorted(entry.items())}"
        if key not in self._known:
            self._known[key] = cls(**{item.name: self._field(item.name, entry) for item in fields(cls)})
        return self._known[key]

    def _field(self, name: str, entry: dict[str, Any]) -> Any:
        if name == "offset":
            return float(entry[name])
        if name.endswith("_names"):
            return self.text(entry[name])
        if name == "kind":
            return self.array(entry[name], np.int8)
        return self.array(entry[name], np.float64 if name in _FLOAT_FIELDS else np.int32)


def _decode(content: Container, where: str) -> Problem:
    reader, meta = _Reader(content), content.meta
    try:
        arcs = meta["arcs"]
        return Problem(
            states=tuple(State(_text(name), float(initial)) for name, initial in meta["states"]),
            nodes=tuple(_node(reader, entry) for entry in meta["nodes"]),
            arcs=Arcs(
                reader.array(arcs["source"], np.int32),
                reader.array(arcs["target"], np.int32),
                reader.array(arcs["probability"], np.float64),
            ),
            sense=Sense(meta["sense"]),
            name=_text(meta["name"]),
        )
    except ProblemError as cause:
        raise ProblemError(f"{where}: {cause}", cause.findings) from cause
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as cause:
        raise ProblemError(
            f"{where}: expected the content of a problem, got something else "
            f"({type(cause).__name__}: {cause}). Use an earlier copy."
        ) from cause


def _node(reader: _Reader, entry: dict[str, Any]) -> Node:
    theta_lower = entry["theta_lower"]
    return Node(
        name=_text(entry["name"]),
        stage=int(entry["stage"]),
        template=reader.record(LpTemplate, entry["template"]),
        state_in=reader.array(entry["state_in"], np.int32),
        state_out=reader.array(entry["state_out"], np.int32),
        noise=Noise(
            reader.record(PatchPlan, entry["plan"]),
            reader.array(entry["values"], np.float64, 2),
            reader.array(entry["probability"], np.float64),
            reader.text(entry["noise_names"]),
            reader.array(entry["outcomes"], np.float64, 2),
        ),
        discount=float(entry["discount"]),
        theta_lower=None if theta_lower is None else float(theta_lower),
        rhs_corrections=None if entry["floors"] is None else reader.record(RhsCorrections, entry["floors"]),
        boundary=_read_boundary(reader, entry["boundary"]) if "boundary" in entry else None,
    )


def _read_boundary(reader: _Reader, numbers: list[int]) -> Boundary:
    intercept, slope = numbers
    return Boundary(reader.array(intercept, np.float64), reader.array(slope, np.float64, 2))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}")
    return value
