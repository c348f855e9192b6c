"""What to run, as plain data: it travels to workers once, in one piece, and holds no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util import container
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError

# A parent of workers reads a case and hands it on: what solves it is loaded by them.
if TYPE_CHECKING:
    from pycobre.hydro.model import Case
    from pycobre.problem import Problem
    from pycobre.sddp import TrainOptions

__all__ = ["CaseSource", "ProblemSource", "Request"]

KIND, VERSION = "request", 1


@frozen()
class CaseSource:
    """A case, its configuration as it shall be.

    `identity` is what the case's files say of it (`pycobre.hydro.files.identity`); None: worked out where needed.
    """

    case: Case
    identity: Mapping[str, Any] | None = None


@frozen()
class ProblemSource:
    """A problem built in Python, and how to train it."""

    problem: Problem
    options: TrainOptions


@frozen()
class Request:
    """One run: train and simulate, or one of them.

    `output` is the directory of the results (None: nothing is written), `policy` the bytes of a policy to
    simulate or to start from. Iteration limits are totals, those before a resume included.
    """

    source: CaseSource | ProblemSource
    train: bool = True
    simulate: bool | None = None  #: None: as the case's configuration says
    scenarios: int | None = None  #: None: as the case's configuration says
    threads: int = 1
    output: str | None = None
    resume: bool = False
    policy: bytes | None = None
    checkpoint_iterations: int | None = None
    checkpoint_minutes: float | None = None
    emit_events: bool = True  #: whether events are passed to the caller
    confirm_each_iteration: bool = False  #: whether the end of every iteration waits for the caller's consent
    run_id: str | None = None  #: of a new run; None: one is made
    record: tuple[str, ...] = ()  #: variables of a problem whose simulated values are kept

    def to_bytes(self) -> bytes:
        """The request in one piece."""
        arrays: dict[str, NDArray[Any]] = {}
        if isinstance(self.source, ProblemSource):
            from pycobre.sddp.codec import encode_options

            arrays["problem"] = _bytes(self.source.problem.to_bytes())
            source: dict[str, Any] = {"options": encode_options(self.source.options)}
        else:
            from pycobre.hydro.files import case_to_data, identity

            case, tables = case_to_data(self.source.case)
            source = {"case": case, "identity": dict(self.source.identity or identity(self.source.case))}
            arrays.update({f"case/{name}": column for name, column in tables.items()})
        if self.policy is not None:
            arrays["policy"] = _bytes(self.policy)
        meta = {name: getattr(self, name) for name in _PLAIN}
        meta.update(source=source, record=list(self.record))
        return container.pack(container.Container(KIND, VERSION, meta, arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Request:
        """Undo `to_bytes`."""
        found = container.unpack(data, KIND, VERSION, where="request", error=OptionError)
        meta, arrays = found.meta, found.arrays
        source = meta["source"]
        made: CaseSource | ProblemSource
        if "problem" in arrays:
            from pycobre.problem import Problem
            from pycobre.sddp.codec import decode_options

            problem = Problem.from_bytes(arrays["problem"].tobytes())
            made = ProblemSource(problem, decode_options(source["options"]))
        else:
            from pycobre.hydro.files import case_from_data

            tables = {
                name.removeprefix("case/"): column
                for name, column in arrays.items()
                if name.startswith("case/")
            }
            made = CaseSource(case_from_data(source["case"], tables), source["identity"])
        policy = arrays["policy"].tobytes() if "policy" in arrays else None
        plain = {name: meta[name] for name in _PLAIN}
        return cls(source=made, policy=policy, record=tuple(meta["record"]), **plain)


_PLAIN = (
    "train",
    "simulate",
    "scenarios",
    "threads",
    "output",
    "resume",
    "checkpoint_iterations",
    "checkpoint_minutes",
    "emit_events",
    "confirm_each_iteration",
    "run_id",
)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
