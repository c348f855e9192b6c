"""Everything needed to go on training bit for bit, as plain arrays.

Random numbers need no state: they are keyed by iteration and scenario. Nothing here depends on the number of
ranks, so a run may be resumed on another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import PolicyError
from pycobre.problem import Problem
from pycobre.sddp.cuts import Cuts
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.stopping import relative_gap
from pycobre.sddp.stored import StoredData, cut_arrays
from pycobre.solver import BasisBlock

__all__ = ["History", "TrainingState"]

Arrays = dict[str, NDArray[Any]]

#: names in the file of `BasisBlock.arrays`, in their order
_BASIS = ("known", "col_status", "row_status", "pool_starts", "pool_slots")


@dataclass
class History:
    """One entry per finished iteration, from the first on, of the minimised problem.

    `lower_bound` is the bound and `upper_bound` the mean cost of the trajectories; as the author of a maximised
    problem sees them, with the other sign, the bound is an upper one.
    """

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

    def arrays(self, iterations: int | None = None) -> Arrays:
        """Columns by name, of the first `iterations` or of all: f64 for amounts and seconds, i64 for counts."""
        return {
            item.name: np.array(
                getattr(self, item.name)[:iterations], np.float64 if "float" in str(item.type) else np.int64
            )
            for item in fields(self)
        }

    @classmethod
    def read(cls, stored: StoredData, iterations: int) -> History:
        """The columns of a checkpoint, each with an entry per iteration."""
        signed = ("lower_bound", "upper_bound")
        return cls.of(
            {
                name: stored.array(
                    f"history/{name}", column.dtype, (iterations,), least=None if name in signed else 0
                )
                for name, column in cls().arrays().items()
            }
        )

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

    def check(self, problem: Problem, options: TrainOptions) -> None:
        """Refuse to go on with another problem or with options that would change the bits."""
        if problem.fingerprint != self.fingerprint:
            raise PolicyError(
                f"resume: expected the problem with fingerprint {self.fingerprint[:12]}…, got "
                f"{problem.fingerprint[:12]}…: the problem has changed. "
                "Train afresh, or warm-start from its policy."
            )
        now = options.key()
        changed = [
            f"{name} was {self.options.get(name, 'not set')}, is {now.get(name, 'not set')}"
            for name in sorted({*self.options, *now})
            if self.options.get(name) != now.get(name)
        ]
        if changed:
            raise PolicyError(
                f"resume: expected the options of the earlier run, got others: {'; '.join(changed)}. "
                "Use those, or warm-start from its policy."
            )
        self._check_sizes(problem, options)

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
            arrays.update(cut_arrays(node, cuts))
        for node, (basis, trial_point) in self.starts.items():
            held: tuple[NDArray[Any], ...] = basis.arrays
            arrays.update({f"starts/{node:06d}/{name}": at for name, at in zip(_BASIS, held, strict=True)})
            arrays[f"starts/{node:06d}/trial_point"] = trial_point
        arrays.update({f"points/{node:06d}": points for node, points in self.points.items()})
        return meta, arrays

    @classmethod
    def from_arrays(
        cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, where: str = "state"
    ) -> TrainingState:
        """Undo `to_arrays`; raises PolicyError where something is missing or inconsistent."""
        stored = StoredData("checkpoint", meta, arrays, where)
        iteration = stored.whole("iteration")
        history = History.read(stored, iteration)
        cuts = {node: stored.cuts(node, None, iteration) for node in stored.nodes("nodes")}
        starts = {node: _read_starts(stored, node, cuts.get(node)) for node in stored.nodes("starts")}
        points = {
            node: stored.array(f"points/{node:06d}", np.float64, (None, None))
            for node in stored.nodes("points")
        }
        stored.finish()
        total = sum(len(each) for each in cuts.values())
        if iteration and history.cuts_total[-1] != total:
            raise stored.refuse("array 'history/cuts_total'", f"{total} at its end", history.cuts_total[-1])
        return cls(stored.text("fingerprint"), stored.texts_by_name("options"), history, cuts, starts, points)

    def _check_sizes(self, problem: Problem, options: TrainOptions) -> None:
        """Refuse arrays that are not of this problem's sizes, whatever the fingerprint says."""
        states, shape = len(problem.states), problem.shape
        followed = [i for i in range(len(problem.nodes)) if len(shape.successors(i)[0])]
        ahead = sorted({*followed, *(i for i, node in enumerate(problem.nodes) if node.boundary is not None)})
        visited = np.flatnonzero(shape.reachable).tolist()
        selecting = options.selection is not None
        passes = {len(basis) for basis, _ in self.starts.values()}
        columns = {i: problem.nodes[i].template.num_cols + (i in ahead) for i in visited}
        for what, expected, got in (
            ("nodes with cuts", ahead, sorted(self.cuts)),
            ("nodes with starting bases", visited, sorted(self.starts)),
            ("nodes with visited states", followed if selecting else [], sorted(self.points)),
            ("trajectories", {options.trajectories_in(max(1, self.iteration))}, passes),
            ("states in cuts", {states}, {each.slope.shape[1] for each in self.cuts.values()} or {states}),
            ("states in starts", {states}, {each.shape[1] for _, each in self.starts.values()} or {states}),
            ("states in points", {states}, {each.shape[1] for each in self.points.values()} or {states}),
            (
                "more visited states than cuts at nodes",
                [],
                [i for i, each in self.points.items() if len(each) > len(self.cuts[i])],
            ),
            ("columns", columns, {i: basis.col_status.shape[1] for i, (basis, _) in self.starts.items()}),
            (
                "rows",
                {i: problem.nodes[i].template.num_rows for i in visited},
                {i: basis.row_status.shape[1] for i, (basis, _) in self.starts.items()},
            ),
        ):
            if expected != got:
                raise PolicyError(
                    f"resume: {what} of the checkpoint: expected {expected}, got {got}. Use an earlier copy."
                )


def _read_starts(stored: StoredData, node: int, cuts: Cuts | None) -> tuple[BasisBlock, F64]:
    prefix = f"starts/{node:06d}/"
    known = stored.array(f"{prefix}known", np.uint8, (None,), most=1)
    count = len(known)
    slots = stored.array(
        f"{prefix}pool_slots", np.int32, (None,), least=0, most=(0 if cuts is None else len(cuts)) - 1
    )
    edges = stored.array(f"{prefix}pool_starts", np.int32, (count + 1,), least=0, most=len(slots))
    if edges[0] != 0 or edges[-1] != len(slots) or (edges[1:] < edges[:-1]).any():
        raise stored.refuse(
            f"array '{prefix}pool_starts'", f"offsets rising from 0 to {len(slots)}", "others"
        )
    basis = BasisBlock(
        known,
        stored.array(f"{prefix}col_status", np.int8, (count, None), least=0, most=4),
        stored.array(f"{prefix}row_status", np.int8, (count, None), least=0, most=4),
        edges,
        slots,
    )
    return basis, stored.array(f"{prefix}trial_point", np.float64, (count, None))
