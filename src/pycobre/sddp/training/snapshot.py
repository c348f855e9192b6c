"""The state after the last finished iteration, held on rank 0 so that it outlives what comes after it.

A peer may be lost in the middle of the next iteration, and then no rank can be asked for anything. So what rank 0
lacks, where the other ranks' solves start, is sent to it while all are there; the rest only grows, and a snapshot
knows how much of it counts. A snapshot copies next to nothing, and makes a `TrainingState` when one is asked for,
on any thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pycobre._util.arrays import F64, U8
from pycobre._util.frozen import frozen
from pycobre.comm import Communicator
from pycobre.comm.collectives import gather_arrays
from pycobre.errors import CommError
from pycobre.sddp.cuts import StoredCuts
from pycobre.sddp.split import Split
from pycobre.sddp.starts import Starts
from pycobre.sddp.training.state import History, TrainingState
from pycobre.solver.api import BasisBlock

__all__ = ["Snapshot", "StartsOfAll", "gather_starts"]

Scalar = TypeVar("Scalar", bound=np.generic)
WholeStarts = dict[int, tuple[BasisBlock, F64]]


@frozen(eq=False)
class StartsOfAll:
    """The starts of all trajectories as they came from the ranks, taken apart when they are needed."""

    own: Mapping[int, tuple[BasisBlock, F64]]  #: for the sizes of the others'
    split: Split
    packed: U8 | None  #: None where there is one rank: then `own` is all

    @classmethod
    def gather(cls, comm: Communicator, split: Split, starts: Starts) -> StartsOfAll:
        """Send every rank's starts to all (collective)."""
        own = dict(starts.export())
        return cls(own, split, None if comm.size == 1 else gather_arrays(comm, _packed(own)))

    def whole(self) -> WholeStarts:
        """By node."""
        if self.packed is None:
            return dict(self.own)
        parts: dict[int, list[tuple[BasisBlock, F64]]] = {node: [] for node in self.own}
        reader = _Reader(self.packed)
        for count in self.split.counts:
            for node, (basis, point) in self.own.items():
                parts[node].append(_one(reader, count, basis, point))
        reader.finish()
        return {
            node: (
                BasisBlock.join([basis for basis, _ in each]),
                np.concatenate([point for _, point in each]),
            )
            for node, each in parts.items()
        }


def gather_starts(comm: Communicator, split: Split, starts: Starts) -> WholeStarts:
    """The starts of all trajectories, on every rank (collective)."""
    return StartsOfAll.gather(comm, split, starts).whole()


@frozen(eq=False)
class Snapshot:
    """What a `TrainingState` is made of, as far as it counted when this was made."""

    fingerprint: str
    options: dict[str, str]
    iteration: int
    history: History  #: of the run, which goes on
    cuts: dict[int, StoredCuts]
    starts: StartsOfAll
    points: dict[int, F64]  #: by node: views of what never changes

    def state(self) -> TrainingState:
        """The state after that iteration, whatever has happened since."""
        return TrainingState(
            fingerprint=self.fingerprint,
            options=self.options,
            history=History.of(self.history.arrays(self.iteration)),
            cuts={node: stored.cuts() for node, stored in self.cuts.items()},
            starts=self.starts.whole(),
            points=self.points,
        )


def _packed(own: Mapping[int, tuple[BasisBlock, F64]]) -> U8:
    """This rank's starts as bytes: node by node what `_one` reads."""
    blocks: list[NDArray[np.generic]] = []
    for basis, point in own.values():
        sizes = np.diff(basis.cut_starts).astype(np.int32)
        blocks += [basis.known, basis.col_status, basis.row_status, sizes, basis.cut_slots, point]
    return np.concatenate([np.ascontiguousarray(block).reshape(-1).view(np.uint8) for block in blocks])


def _one(reader: _Reader, count: int, like: BasisBlock, point: F64) -> tuple[BasisBlock, F64]:
    """The starts of `count` trajectories at one node, with columns, rows and states as in `like` and `point`."""
    known = reader.take(np.uint8, count)
    columns = reader.take(np.int8, count, like.col_status.shape[1])
    rows = reader.take(np.int8, count, like.row_status.shape[1])
    sizes = reader.take(np.int32, count)
    if (sizes < 0).any():
        raise reader.foreign()
    edges = np.zeros(count + 1, np.int32)
    np.cumsum(sizes, out=edges[1:])
    slots = reader.take(np.int32, int(sizes.sum(dtype=np.int64)))
    basis = BasisBlock(known, columns, rows, edges, slots)
    return basis, reader.take(np.float64, count, point.shape[1])


class _Reader:
    """Takes arrays from bytes of other ranks, one after the other."""

    def __init__(self, data: U8) -> None:
        self._data, self._at = data, 0

    def take(self, kind: type[Scalar], *shape: int) -> NDArray[Scalar]:
        end = self._at + np.dtype(kind).itemsize * math.prod(shape)
        if end > self._data.size:
            raise self.foreign()
        found = self._data[self._at : end].copy().view(kind).reshape(shape)
        self._at = end
        return found

    def finish(self) -> None:
        if self._at != self._data.size:
            raise self.foreign()

    def foreign(self) -> CommError:
        return CommError(
            f"starting bases of all ranks: expected those of this problem, got {self._data.size} other bytes. "
            "Check that all processes of the run have the same version of pycobre."
        )
