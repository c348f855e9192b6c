"""Everything needed to go on training bit for bit, as plain arrays.

Random numbers need no state: they are keyed by iteration and scenario. Nothing here depends on the number of
ranks, so a run may be resumed on another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.comm import Communicator
from pycobre.errors import PolicyError
from pycobre.problem import Problem
from pycobre.sddp.cuts import Cuts
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.stopping import relative_gap
from pycobre.solver import BasisBlock

__all__ = ["History", "TrainingState", "gather_rows", "gather_starts"]

Arrays = dict[str, NDArray[Any]]

_CUTS = ("intercept", "slope", "iteration", "trajectory", "depth", "active")
#: names in the file of `BasisBlock.arrays`, in their order
_BASIS = ("known", "col_status", "row_status", "pool_starts", "pool_slots")


@dataclass
class History:
    """One entry per finished iteration, from the first on. Costs are minimised."""

    lower_bound: list[float] = field(default_factory=list)
    upper_bound: list[float] = field(default_factory=list)
    upper_bound_std: list[float] = field(default_factory=list)
    upper_bound_half_width: list[float] = field(default_factory=list)
    cuts_added: list[int] = field(default_factory=list)
    cuts_total: list[int] = field(default_factory=list)
    cuts_active: list[int] = field(default_factory=list)
    lp_solves: list[int] = field(default_factory=list)
    simplex_iterations: list[int] = field(default_factory=list)
    elapsed_s: list[float] = field(default_factory=list)  #: of each iteration

    def __len__(self) -> int:
        return len(self.lower_bound)

    @property
    def final_lower_bound(self) -> float:
        """The bound of the last iteration; results, events and policies take it from here."""
        return self.lower_bound[-1]

    @property
    def final_upper_bound(self) -> float:
        """The mean cost of the last iteration's trajectories."""
        return self.upper_bound[-1]

    @property
    def final_gap(self) -> float:
        return relative_gap(self.lower_bound[-1], self.upper_bound[-1])

    def arrays(self) -> Arrays:
        """Columns by name: f64 for amounts and seconds, i64 for counts."""
        return {
            item.name: np.array(
                getattr(self, item.name), np.float64 if "float" in str(item.type) else np.int64
            )
            for item in fields(self)
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> History:
        return cls(**{item.name: arrays[item.name].tolist() for item in fields(cls)})


@frozen(eq=False, repr=False)
class TrainingState:
    """A training run after a finished iteration. The same on every rank."""

    fingerprint: str  #: of the problem
    options: dict[str, str]  #: `TrainOptions.key()`
    history: History
    cuts: dict[int, Cuts]  #: by node
    starts: dict[int, tuple[BasisBlock, F64]]  #: by node, of all trajectories
    points: dict[int, F64]  #: by node: states visited, where a selection needs them

    def __repr__(self) -> str:
        cuts = sum(len(each) for each in self.cuts.values())
        return f"<TrainingState after {self.iteration} iterations, {cuts} cuts>"

    @property
    def iteration(self) -> int:
        return len(self.history)

    def check(self, problem: Problem, options: Mapping[str, str]) -> None:
        """Refuse to go on with another problem or with options that would change the bits."""
        if problem.fingerprint != self.fingerprint:
            raise PolicyError(
                f"resume: expected the problem with fingerprint {self.fingerprint[:12]}…, got "
                f"{problem.fingerprint[:12]}…: the problem has changed. "
                "Train afresh, or warm-start from its policy."
            )
        changed = [
            f"{name} was {self.options.get(name, 'not set')}, is {options.get(name, 'not set')}"
            for name in sorted({*self.options, *options})
            if self.options.get(name) != options.get(name)
        ]
        if changed:
            raise PolicyError(
                f"resume: expected the options of the earlier run, got others: {'; '.join(changed)}. "
                "Use those, or warm-start from its policy."
            )

    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """JSON values and named arrays that hold everything."""
        meta: dict[str, Any] = {
            "fingerprint": self.fingerprint,
            "options": self.options,
            "iteration": self.iteration,
            "nodes": sorted(self.cuts),
            "starts": sorted(self.starts),
            "points": sorted(self.points),
        }
        arrays: Arrays = {f"history/{name}": array for name, array in self.history.arrays().items()}
        for node, cuts in self.cuts.items():
            arrays.update({f"cuts/{node:06d}/{part}": getattr(cuts, part) for part in _CUTS})
        for node, (basis, trial_point) in self.starts.items():
            held: tuple[NDArray[Any], ...] = basis.arrays
            arrays.update({f"starts/{node:06d}/{name}": at for name, at in zip(_BASIS, held, strict=True)})
            arrays[f"starts/{node:06d}/trial_point"] = trial_point
        arrays.update({f"points/{node:06d}": points for node, points in self.points.items()})
        return meta, arrays

    @classmethod
    def from_arrays(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TrainingState:
        """Undo `to_arrays`; raises KeyError where something is missing."""
        history = {
            name.removeprefix("history/"): a for name, a in arrays.items() if name.startswith("history/")
        }
        return cls(
            fingerprint=meta["fingerprint"],
            options=dict(meta["options"]),
            history=History.of(history),
            cuts={node: Cuts(**{p: arrays[f"cuts/{node:06d}/{p}"] for p in _CUTS}) for node in meta["nodes"]},
            starts={
                node: (
                    BasisBlock(*(arrays[f"starts/{node:06d}/{p}"] for p in _BASIS)),
                    arrays[f"starts/{node:06d}/trial_point"],
                )
                for node in meta["starts"]
            },
            points={node: arrays[f"points/{node:06d}"] for node in meta["points"]},
        )


def gather_starts(comm: Communicator, split: Split, starts: Starts) -> dict[int, tuple[BasisBlock, F64]]:
    """The starts of all trajectories, on every rank (collective)."""
    whole = dict(starts.export())
    if comm.size == 1:
        return whole
    gathered = {}
    for node, (basis, trial_point) in whole.items():
        sizes = np.diff(basis.cut_starts).astype(np.int32)
        every_size = gather_rows(comm, sizes, split.counts)
        pool_starts = np.concatenate([[0], np.cumsum(every_size)]).astype(np.int32)
        slots = tuple(
            int(pool_starts[first + count] - pool_starts[first])
            for first, count in zip(split.firsts, split.counts, strict=True)
        )
        gathered[node] = (
            BasisBlock(
                gather_rows(comm, basis.known, split.counts),
                gather_rows(comm, basis.col_status, split.counts),
                gather_rows(comm, basis.row_status, split.counts),
                pool_starts,
                gather_rows(comm, basis.cut_slots, slots),
            ),
            gather_rows(comm, trial_point, split.counts),
        )
    return gathered


def gather_rows(comm: Communicator, own: NDArray[Any], counts: tuple[int, ...]) -> NDArray[Any]:
    """Every rank's rows (`counts` of them per rank) in rank order; any dtype, any axes (collective)."""
    width = math.prod(own.shape[1:])
    sizes = tuple(count * width for count in counts)
    displs = tuple(sum(sizes[:rank]) for rank in range(len(sizes)))
    everything = np.empty((sum(counts), *own.shape[1:]), own.dtype)
    comm.allgatherv(np.ascontiguousarray(own), everything, sizes, displs)
    return everything
