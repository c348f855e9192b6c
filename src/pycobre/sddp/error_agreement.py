"""Agreement on errors: every collective of the algorithm carries a status, so that a failure reaches all ranks.

A rank that fails between two collectives defers its error, still takes part in the next one, and reports it
there. Then all ranks raise: of several errors the one with the lowest scenario, whose class, fields and text
travel as a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pycobre._util.arrays import F64
from pycobre.comm import Communicator
from pycobre.comm.collectives import broadcast_bytes, broadcast_error, displacements
from pycobre.errors import CommError, OptionError, PolicyError
from pycobre.sddp.timing import Ledger

__all__ = ["AgreedError", "CheckedCollectives", "collective_section"]


_NO_SCENARIO = 2.0**40
"""Error codes from here on belong to no scenario: code − this = rank."""


class AgreedError(Exception):
    """Carries an error that all ranks raise together; never leaves this package."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def collective_section(comm: Communicator) -> Iterator[None]:
    """Around what all ranks do: agreed errors come out as themselves, and no rank leaves the others waiting.

    Arguments that make no sense are refused by every rank alike, and the communicator's own errors are known to
    all. Anything else that gets here happened on this rank alone, an interrupt for instance: abort the others.
    """
    try:
        yield
    except AgreedError as agreed:
        raise agreed.error from agreed.error.__cause__
    except (CommError, OptionError, PolicyError):
        raise
    except BaseException as error:
        if comm.size > 1:
            comm.abort(f"{type(error).__name__}: {error}")
        raise


class CheckedCollectives:
    """A communicator whose gathers carry a status word."""

    def __init__(self, comm: Communicator, ledger: Ledger) -> None:
        self.comm = comm
        self.ledger = ledger
        self._deferred: Exception | None = None
        self._layouts: dict[tuple[tuple[int, ...], int], tuple[tuple[int, ...], tuple[int, ...]]] = {}

    @contextmanager
    def deferred_errors(self) -> Iterator[None]:
        """Run a piece of work that may fail on this rank alone; its error is raised at the next gather.

        Errors of the communicator itself pass at once: there will be no next collective.
        """
        try:
            yield
        except CommError:
            raise
        except Exception as error:  # noqa: BLE001 - deferred, and raised on every rank at the next gather
            if self._deferred is None:
                self._deferred = error

    @property
    def failed(self) -> bool:
        """Whether this rank has deferred an error, so that further work is pointless."""
        return self._deferred is not None

    def retract(self) -> None:
        """Forget the error that all ranks have just raised: all of them do the work again in another way."""
        self._deferred = None

    def gather(self, rows: F64, counts: tuple[int, ...]) -> F64:
        """Every rank's rows, in rank order; raises `AgreedError` on all ranks when any has deferred an error.

        `counts` are the rows of each rank. A rank that failed may pass anything of the right shape.
        """
        if self.comm.size == 1:
            if self._deferred is not None:
                raise AgreedError(self._deferred)
            return rows
        width = rows.shape[1]
        sizes, displs = self._layout(counts, width)
        send = np.empty(sizes[self.comm.rank])
        send[0] = self._code()
        send[1:] = rows.reshape(-1)
        received = np.empty(displs[-1] + sizes[-1])
        with self.ledger.communicating():
            self.comm.allgatherv(send, received, sizes, displs)
        codes = received[list(displs)]
        if codes.any():
            raise AgreedError(self._agree(codes))
        parts = [received[at + 1 : at + size] for at, size in zip(displs, sizes, strict=True)]
        return np.concatenate(parts).reshape(-1, width)

    def require_same(self, text: str, what: str) -> None:
        """Refuse, on all ranks, where the texts differ: their results could not be combined."""
        own = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8).astype(np.float64)
        gathered = self.gather(own[None], (1,) * self.comm.size)
        differing = [rank for rank in range(self.comm.size) if np.any(gathered[rank] != gathered[0])]
        if differing:
            raise OptionError(
                f"train: expected the same {what} on every rank, got others than rank 0's on ranks {differing}. "
                "Start all ranks with the same arguments."
            )

    def broadcast_text(self, text: str) -> str:
        """Rank 0's text, on every rank."""
        return broadcast_bytes(self.comm, text.encode()).decode(errors="replace")

    def _layout(self, counts: tuple[int, ...], width: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        found = self._layouts.get((counts, width))
        if found is None:
            sizes = tuple(1 + count * width for count in counts)
            found = self._layouts[counts, width] = (sizes, displacements(sizes))
        return found

    def _code(self) -> float:
        if self._deferred is None:
            return 0.0
        scenario = getattr(self._deferred, "scenario", None)
        return 1.0 + scenario if scenario is not None else _NO_SCENARIO + self.comm.rank

    def _agree(self, codes: F64) -> BaseException:
        """Choose one error, the same on every rank, and let its owner broadcast it."""
        owner = int(np.argmin(np.where(codes > 0.0, codes, np.inf)))
        return broadcast_error(self.comm, self._deferred if owner == self.comm.rank else None, owner)
