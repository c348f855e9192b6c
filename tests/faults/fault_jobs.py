"""A real training run on each backend, with the fault of a trial in it: started, conducted, and brought to an end."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

from fault_plan import PATIENCE_S, STARTING, Trial
from fault_problem import options, problem
from fault_system import Hosts, marked_processes

import pycobre
from pycobre.errors import CobreError
from pycobre.launch import launcher as launch

__all__ = ["Conductor", "Ended", "run_programs", "run_user_program", "run_workers", "variables"]

HERE = Path(__file__).parent
PROGRAM = str(HERE / "fault_rank.py")
HANG_S = 600.0
_BURN = """
import os, time
os.sched_setaffinity(0, {%d})
end = time.monotonic() + %f
while time.monotonic() < end: pass
"""


@dataclass(frozen=True)
class Ended:
    """How a run ended for whoever started it."""

    digest: str | None
    text: str = ""  #: of the error
    named: bool = True  #: whether that is one of pycobre's own errors
    time: float = 0.0


class Conductor:
    """Watches a trial from outside: lets stopped ranks go on, burns, cuts, and ends what hangs."""

    def __init__(self, trial: Trial, directory: Path, hosts: Hosts) -> None:
        self.trial = trial
        self.directory = directory
        self.struck_at: float | None = None
        self.hung = False
        self._hosts = hosts
        self._pid = 0
        self._resume_at = float("inf")
        self._deadline = time.monotonic() + HANG_S
        self._burners: list[subprocess.Popen[bytes]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="conductor")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        for burner in self._burners:
            burner.kill()
            burner.wait()
        self._look()

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            if self.struck_at is None:
                self._look()
            now = time.monotonic()
            if now > self._resume_at:
                self._resume_at = float("inf")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGCONT)
            if now > self._deadline:
                self.hung = True
                for pid in marked_processes(str(self.directory)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def _look(self) -> None:
        """Has the fault struck? Then do what is done from outside."""
        path = self.directory / "strike"
        if self.struck_at is not None or not path.exists():
            return
        said = json.loads(path.read_text())
        self.struck_at, self._pid = said["time"], said["pid"]
        if self._done.is_set():
            return
        if self.trial.kind in ("delay", "stop"):
            self._resume_at = time.monotonic() + self.trial.pause_s
        elif self.trial.kind == "cut":
            self._hosts.cut()
        elif self.trial.kind == "starve":
            code = _BURN % (self.trial.cpu, self.trial.pause_s)
            command = [sys.executable, "-I", "-S", "-c", code]
            self._burners = [subprocess.Popen(command, env={}) for _ in range(2)]


def variables(trial: Trial, directory: Path, action: str, mount: str) -> dict[str, str]:
    """What the ranks find in their environment."""
    told = {
        "PYCOBRE_FAULT": trial.order(directory, action, mount),
        "PYTHONPATH": os.pathsep.join([str(HERE / "sabotage"), str(HERE)]),
        "TMPDIR": str(directory / "tmp"),
    }
    if trial.defaults:
        return told
    return {
        **told,
        "COBRE_SHM_TIMEOUT_SECS": str(trial.patience_s),
        "COBRE_TCP_TIMEOUT_SECS": str(trial.patience_s),
        "COBRE_TCP_CONNECT_TIMEOUT_MS": str(int(1000 * PATIENCE_S)),
        "COBRE_MPI_TIMEOUT_SECS": str(trial.patience_s),
        "OPENBLAS_NUM_THREADS": "1",
    }


def run_workers(trial: Trial, output: Path, environ: Mapping[str, str], ranks: int) -> Ended:
    """The run of a Python user: `pycobre.train(…, num_workers=…)` in this process."""
    # Ranks that will not answer are ended soon, all others are given the time that a busy machine may take.
    silent = trial.kind == "stop" or trial.phase in STARTING
    with _environ(environ), patch.object(launch, "GRACE_S", 1.0 if silent else PATIENCE_S):
        try:
            found = pycobre.train(
                problem(),
                options=options(),
                backend=trial.backend,
                num_workers=ranks,
                output=output,
                checkpoint_iterations=1,
            )
        except CobreError as error:
            return Ended(None, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - judged by the caller: nothing else may get out
            return Ended(None, f"{type(error).__name__}: {error}", False)
    return Ended(found.policy_digest)


def run_user_program(
    directory: Path, backend: str, ranks: int, output: Path, environ: dict[str, str]
) -> Ended:
    """A program that calls `pycobre.train` and sets nothing, in a process that can be killed."""
    words = [sys.executable, str(HERE / "fault_program.py"), backend, str(ranks), str(output)]
    return run_programs(directory, [words], [environ])


def run_programs(directory: Path, commands: list[list[str]], environs: list[dict[str, str]]) -> Ended:
    """Processes started by hand or by a launcher; what they say is kept in files."""
    processes = []
    for number, (command, environ) in enumerate(zip(commands, environs, strict=True)):
        with (directory / f"said-{number}").open("wb") as said:
            processes.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, **environ},
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            )
    codes = [process.wait() for process in processes]  # a hang is ended by the conductor
    ended_at = time.monotonic()
    digest = directory / "digest"
    text = "\n".join((directory / f"said-{n}").read_text(errors="replace") for n in range(len(commands)))
    if not any(codes) and digest.exists():
        return Ended(digest.read_text(), time=ended_at)
    return Ended(None, f"exit codes {codes}: {text.strip()}", True, ended_at)


def host_environs(environ: dict[str, str]) -> list[dict[str, str]]:
    """The variables of two tcp ranks on hosts of their own."""
    common = {
        **environ,
        "COBRE_COMM_BACKEND": "tcp",
        "COBRE_TCP_COORDINATOR": "10.78.0.1",
        "COBRE_TCP_BIND_ADDR": "10.78.0.1",
        "COBRE_TCP_SIZE": "2",
        "COBRE_TCP_TOKEN": secrets.token_hex(16),
    }
    return [{**common, "COBRE_TCP_RANK": str(rank)} for rank in range(2)]


def accounts(directory: Path) -> dict[int, dict[str, Any]]:
    """What the ranks wrote down at their end."""
    return {
        int(path.name.partition("-")[2]): json.loads(path.read_text())
        for path in directory.glob("account-*")
        if not path.name.endswith("~")
    }


@contextmanager
def _environ(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
