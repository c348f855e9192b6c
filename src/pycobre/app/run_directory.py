"""The output directory of a run, as rank 0 keeps it: locked, with one record, and nothing of other runs in it.

What an earlier run left is moved to `previous/ID/` before the new one writes anything, so tables are never beside a
policy that they do not belong to.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from pycobre._util.files import remove_unfinished
from pycobre.app.origin import write_origin, write_study
from pycobre.app.request import Request
from pycobre.app.results.control import ControlFile
from pycobre.app.results.files import read_json, write_json
from pycobre.app.results.layout import CHECKPOINTS, MANIFEST, METADATA, PREVIOUS, RESULTS, RUN, SIMULATION
from pycobre.app.results.lock import DirectoryLock
from pycobre.app.results.record import RunRecord, Session, new_id, read_record, utc
from pycobre.app.study import Study
from pycobre.errors import OutputError
from pycobre.sddp.training.checkpoint import has_checkpoints, latest

__all__ = ["RunDirectory"]


class RunDirectory:
    """The directory of one run while it is written to; `close` releases it.

    `resumes` says whether there is a checkpoint to go on from. `earlier` is the metadata of the training whose
    policy is simulated, where that training is in the same directory.
    """

    def __init__(
        self, request: Request, study: Study, policy_digest: str | None, backend: str, ranks: int
    ) -> None:
        assert request.output is not None
        self.root = Path(request.output)
        self._lock = DirectoryLock(self.root)
        self.resumes = False
        self.warnings: tuple[str, ...] = ()
        self.earlier: dict[str, Any] = {}
        try:
            remove_unfinished(self.root)
            self.record = self._prepare(request, study, policy_digest).begin(
                Session(
                    started=utc(),
                    pid=os.getpid(),
                    host=socket.gethostname(),
                    backend=backend,
                    ranks=ranks,
                    threads=request.threads,
                    train=request.train,
                    simulate=study.simulate and study.scenarios > 0,
                )
            )
            write_study(self.root, study)
            self.control = ControlFile(self.root)
            self.record.write(self.root)
            self._lock.sign(self.record.id)
        except BaseException:
            self._lock.release()
            raise

    def end(self, state: str, *, policy_digest: str | None = None, error: str | None = None) -> None:
        """Write how the session ended."""
        ended = self.record.end(state, error)
        self.record = RunRecord(ended.id, ended.case, policy_digest or ended.policy_digest, ended.sessions)
        self.record.write(self.root)

    def clear_results(self) -> None:
        """Move the results of earlier sessions of a resumed run; what it goes on from stays."""
        _move(self.root, RESULTS, f"{self.record.id}.{len(self.record.sessions) - 1}")

    def close(self) -> None:
        self._lock.release()

    def _prepare(self, request: Request, study: Study, policy_digest: str | None) -> RunRecord:
        found = read_record(self.root)
        if request.train and request.resume:
            self.resumes = has_checkpoints(self.root / CHECKPOINTS)
            if found is not None and self.resumes:
                return found
            if found is None:
                latest(self.root / CHECKPOINTS)  # says that there is nothing to resume
            self.warnings = (
                f"{self.root}: the earlier run ended before its first checkpoint: starting at iteration 1",
            )
        if found is not None:
            if not request.train and policy_digest is not None and self._trained(policy_digest):
                self._clear_simulation(f"{found.id}.{len(found.sessions)}")
                return found
            _move(self.root, RUN, found.id)
        if request.train:
            write_origin(self.root, study.metadata)
        return RunRecord(request.run_id or new_id(), study.name)

    def _clear_simulation(self, name: str) -> None:
        """Make room for another simulation of the policy; the earlier one keeps what was known of the run."""
        if (self.root / "simulation").exists():
            write_json(self.root / PREVIOUS / name / METADATA, self.earlier)
            _move(self.root, SIMULATION, name)
        else:
            (self.root / MANIFEST).unlink(missing_ok=True)  # from here on the results are not complete

    def _trained(self, policy_digest: str) -> bool:
        """Whether the policy is the one that was trained here; remembers the training's metadata."""
        if not (self.root / METADATA).is_file():
            return False
        metadata = read_json(self.root / METADATA)
        if "iterations" not in metadata or metadata.get("policy_digest") != policy_digest:
            return False
        self.earlier = metadata
        return True


def _move(root: Path, parts: tuple[str, ...], name: str) -> None:
    """Move what there is of `parts` to `previous/name`; one that was broken off is taken up again."""
    there = [root / part for part in parts if (root / part).exists()]
    if not there:
        return
    target = root / PREVIOUS / name
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path in there:
            os.rename(path, target / path.name)
    except OSError as cause:
        raise OutputError(
            f"{target}: cannot move the results of the earlier run there: {cause.strerror}. "
            "Move them yourself, or choose another output directory."
        ) from cause
