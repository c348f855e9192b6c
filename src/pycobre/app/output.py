"""The output directory of a run as all ranks see it: rank 0 writes, and its errors are raised on every rank.

Without an output directory nothing is written and the methods do nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from pycobre.app.backend import backend_name
from pycobre.app.failures import error_document
from pycobre.app.request import Request
from pycobre.app.rescue import Rescue
from pycobre.app.results.files import write_json, write_manifest, write_table
from pycobre.app.results.layout import CHECKPOINTS, METADATA, policy_file
from pycobre.app.results.record import FAILED, FINISHED, INTERRUPTED
from pycobre.app.results.schemas import TABLES
from pycobre.app.run_directory import RunDirectory
from pycobre.app.run_log import RunLog
from pycobre.app.steering import Steering
from pycobre.app.study import Study
from pycobre.comm import Communicator
from pycobre.comm.collectives import broadcast_result
from pycobre.errors import CobreError, OutputError
from pycobre.events import CheckpointWritten, Event, Listener
from pycobre.sddp import Policy, StoppingRule
from pycobre.sddp.training.checkpoint import Checkpoints, iteration_of

__all__ = ["Output"]

Columns = dict[str, NDArray[Any]]
_TABLES = {table.name: table for table in TABLES}
#: Of a simulation's own metadata, beside a training's in the same directory.
_OF_SESSION = ("backend", "ranks", "threads", "started", "elapsed_s", "input_hash", "config_hash")


class Output:
    """Use as a context (collective): leaving it with an error writes the error into the status and the record.

    `resumes` says whether there is a checkpoint to go on from, `warnings` what the state of the directory means.
    """

    def __init__(
        self, comm: Communicator, request: Request, study: Study, policy: Policy | None, rescue: Rescue
    ) -> None:
        self._comm = comm
        self.rescue = rescue
        self._directory: RunDirectory | None = None
        self._log: RunLog | None = None
        self.resumes = False
        self.warnings: tuple[str, ...] = ()
        self.root = None if request.output is None else Path(request.output)
        if self.root is None:
            return

        def open_directory() -> bytes:
            digest = None if policy is None or request.train else policy.digest
            directory = RunDirectory(request, study, digest, backend_name(comm), comm.size)
            try:
                self._log = RunLog(directory, study.name)
            except BaseException:
                directory.close()
                raise
            self._directory = directory
            return json.dumps([directory.resumes, directory.warnings]).encode()

        self.resumes, warnings = json.loads(broadcast_result(comm, open_directory))
        self.warnings = tuple(warnings)

    @property
    def run(self) -> str | None:
        """The id of the run, on rank 0."""
        return None if self._directory is None else self._directory.record.id

    def listener(self, emit: Listener | None) -> Listener | None:
        """`emit` and the log of the run, as one listener."""
        return emit if self._log is None else _Logging(self._log, emit)

    def checkpoints(self, study: Study, request: Request) -> Checkpoints | None:
        """Where checkpoints go, on rank 0."""
        if self._directory is None:
            return None
        checkpoints = Checkpoints(
            self._directory.root / CHECKPOINTS,
            iterations=study.checkpoint_iterations,
            minutes=request.checkpoint_minutes,
        )
        self.rescue.watch(checkpoints)
        return checkpoints

    def steering(
        self, rule: StoppingRule, checkpoints: Checkpoints | None, emit: Listener | None
    ) -> Steering | None:
        """What applies the requests of other processes, on rank 0."""
        if self._directory is None or checkpoints is None or emit is None:
            return None
        return Steering(rule, self._directory.control, checkpoints, emit)

    def clear_results(self) -> None:
        """Move what the earlier sessions of a resumed run left, now that it is known to be the same run."""

        def clear(root: Path) -> None:
            assert self._directory is not None
            self._directory.clear_results()

        self._do(clear)

    def tables(self, tables: Mapping[str, Columns]) -> None:
        def write(root: Path) -> None:
            for name, columns in tables.items():
                write_table(root, _TABLES[name], columns)

        self._do(write)

    def model(self, tables: Callable[[], Mapping[str, Columns]]) -> None:
        """Write the tables of what is random; rank 0 alone makes them."""

        def write(root: Path) -> None:
            for name, columns in tables().items():
                write_table(root, _TABLES[name], columns)

        self._do(write)

    def policy(self, policy: Policy) -> None:
        def write(root: Path) -> None:
            path = policy_file(root)
            path.parent.mkdir(parents=True, exist_ok=True)
            policy.save(path)

        self._do(write)

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write metadata and manifest, then say in the record and the status that the run has ended."""

        def write(root: Path) -> None:
            assert self._directory is not None
            assert self._log is not None
            write_json(root / METADATA, self._merged(metadata))
            write_manifest(root)
            state = INTERRUPTED if metadata.get("termination_reason") == "interrupted" else FINISHED
            self._directory.end(state, policy_digest=metadata.get("policy_digest"))
            self._log.finish(state, _result(metadata))

        self._do(write)

    def _merged(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """A simulation of the policy that was trained here adds to what the training wrote."""
        assert self._directory is not None
        earlier = self._directory.earlier
        if not earlier:
            return dict(metadata)
        own = {name: metadata[name] for name in _OF_SESSION if name in metadata}
        return {**earlier, "simulation": {**metadata.get("simulation", {}), **own}}

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is None or self._log is None:
            return
        try:
            if error is not None and not self._log.ended:
                self._save(error)
                document = error_document(error)
                try:
                    self._directory.end(FAILED, error=document["message"])
                    self._log.fail(document)
                except (OutputError, OSError) as second:  # the first error is the one to raise
                    error.add_note(f"its record could not be written: {second}")
        finally:
            self._directory.close()

    def _save(self, error: BaseException) -> None:
        """Write the state of the last finished iteration; what could not be written is not tried again."""
        if not isinstance(error, Exception) or isinstance(error, OutputError):
            return
        begin = time.monotonic()
        try:
            self.rescue.save()
            receipt = self.rescue.receipt
            if receipt is not None and self._log is not None:
                self._log(
                    CheckpointWritten(
                        iteration=iteration_of(receipt.path),
                        path=receipt.path,
                        size_bytes=receipt.size_bytes,
                        elapsed_s=time.monotonic() - begin,
                    )
                )
        except (CobreError, OSError, MemoryError) as second:
            error.add_note(f"the state of the last iteration could not be written: {second}")

    def _do(self, write: Callable[[Path], None]) -> None:
        root = self.root
        if root is None:
            return

        def produce() -> bytes:
            try:
                write(root)
            except OSError as cause:  # not of a file's content, which says it itself, but of a directory
                raise OutputError(
                    f"{root}: cannot write the results: {cause.strerror}. Free some space or choose another "
                    "directory; `--resume` goes on from the last checkpoint."
                ) from cause
            return b""

        broadcast_result(self._comm, produce)


class _Logging:
    """The log, and a listener beside it if there is one: events that neither wants are not made."""

    def __init__(self, log: RunLog, emit: Listener | None) -> None:
        self._log, self._emit = log, emit

    def wants(self, kind: type[Event]) -> bool:
        return (self._emit is not None and not kind.on_request) or self._log.wants(kind)

    def __call__(self, event: Event) -> object:
        self._log(event)
        return None if self._emit is None or event.on_request else self._emit(event)


_RESULT = (
    "iterations",
    "lower_bound",
    "upper_bound",
    "gap",
    "termination_reason",
    "total_cuts",
    "policy_digest",
)


def _result(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that a status ends with."""
    found = {name: metadata[name] for name in (*_RESULT, "simulation") if name in metadata}
    return {**found, "elapsed_s": metadata["elapsed_s"]}
