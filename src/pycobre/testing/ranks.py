"""Run a function on n ranks that are real processes, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pycobre.comm.api import Communicator
from pycobre.errors import WorkerError
from pycobre.testing.leaks import Holdings, session_members
from pycobre.testing.starters import Starter, starter_for
from pycobre.testing.threads import ThreadBackend
from pycobre.testing.worker import Outcome, Released, Task

_START_TIMEOUT_S = 240.0
_END_TIMEOUT_S = 120.0
_SHOWN_STDERR = 4000
_WORKER = "import sys; from pycobre.testing.worker import main; main(sys.argv[1:])"


def run_ranks(
    backend: str | Starter,
    n: int,
    fn: Callable[..., Any],
    *args: Any,
    timeout: float = 120.0,
    environ: Mapping[str, str] | None = None,
    connect: bool = True,
) -> list[Any]:
    """Run `fn(comm, *args)` on n ranks and return their results in rank order.

    `backend` is a name (local, threads, shm, tcp, mpi) or a `Starter`. Ranks are fresh interpreters, except
    that the ranks of threads are threads of this process. `fn`, its arguments and its results are pickled,
    so `fn` must be importable: a function at the top level of a module. `environ` adds to the variables of
    every rank. With `connect` false, `fn` gets the rank's COBRE_* variables instead of a communicator.

    Raises an `ExceptionGroup` with the exception of every rank that failed, in rank order, each with its rank
    and traceback as notes: what `fn` raised, `WorkerError` for a rank that died, `TimeoutError` for one that
    had not ended after `timeout` seconds, `AssertionError` for one that left a file descriptor, thread or
    shared mapping behind. All processes are ended and reaped in every case.
    """
    if backend == "threads":
        if environ or not connect:
            raise ValueError(
                "threads share one environment and are born connected: run on shm or tcp instead"
            )
        return _run_threads(n, fn, args, timeout)
    with RankGroup(backend, n) as group:
        return group.run(fn, *args, timeout=timeout, environ=environ, connect=connect)


class RankGroup:
    """n processes that serve one function after another, so that their start is paid for once.

    Each `run` has a communicator of its own. A run in which a rank dies or is late ends the group; the next
    one starts a new group.
    """

    def __init__(self, backend: str | Starter, size: int) -> None:
        self._starter = starter_for(backend)
        self._size = size
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        self._pids: list[int] = []
        self._directory: Path | None = None

    def run(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float = 120.0,
        environ: Mapping[str, str] | None = None,
        connect: bool = True,
    ) -> list[Any]:
        """Run `fn(comm, *args)` on every rank; see `run_ranks`."""
        payload = _pickle_call(self._starter, fn, args)
        if not self._connections:
            self._start()
        intact = False
        try:
            with self._starter.settings(self._size) as settings:
                for connection, variables in zip(self._connections, settings, strict=True):
                    variables = variables | dict(environ or {})
                    connection.send(Task(payload, variables, connect, timeout, not self._starter.launched))
                answers = _Answers(self._size)
                self._collect(answers, time.monotonic() + timeout)
                intact = answers.complete
                if not intact:
                    self._end()
                answers.system = self._starter.leftovers(settings)
        finally:
            if not intact:
                self._end()
        return answers.results(timeout)

    def close(self) -> None:
        """End the ranks; raise if one does not end by itself, ends badly, or leaves processes behind."""
        if not self._connections:
            return
        for connection in self._connections:
            connection.close()
        problems = []
        deadline = time.monotonic() + _END_TIMEOUT_S
        for process in self._processes:
            try:
                code = process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                problems.append(f"process {process.pid} did not end within {_END_TIMEOUT_S} s")
            else:
                if code:
                    problems.append(f"process {process.pid} ended with code {code}{self._stderr()}")
        strays = session_members({process.pid for process in self._processes})
        problems += [f"process {pid} was left behind" for pid in strays]
        self._end()
        if problems:
            raise AssertionError("; ".join(problems))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._end()

    def _start(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="pycobre-"))
        try:
            self._start_processes(self._directory)
        except BaseException:
            self._end()
            raise

    def _start_processes(self, directory: Path) -> None:
        path = directory / "socket"
        worker = [sys.executable, "-W", "error", "-c", _WORKER, str(path)]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("COBRE_")}
        environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(self._size)
            for number, command in enumerate(self._starter.command(self._size, worker)):
                with (directory / f"stderr-{number}").open("wb") as stderr:
                    self._processes.append(
                        subprocess.Popen(
                            command,
                            stdin=subprocess.DEVNULL,
                            stdout=stderr,
                            stderr=stderr,
                            env=environ,
                            start_new_session=True,
                        )
                    )
            deadline = time.monotonic() + _START_TIMEOUT_S
            arrived: dict[int, tuple[Connection, int]] = {}
            try:
                while len(arrived) < self._size:
                    connection = Connection(self._accept(listener, deadline).detach())
                    rank, pid = connection.recv()
                    arrived[rank] = connection, pid
                    connection.send(sys.path)
            finally:
                self._connections = [arrived[rank][0] for rank in sorted(arrived)]
                self._pids = [arrived[rank][1] for rank in sorted(arrived)]

    def _accept(self, listener: socket.socket, deadline: float) -> socket.socket:
        """The next rank's connection; raises when a process ended instead of connecting."""
        listener.settimeout(0.2)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                ended = [process for process in self._processes if process.poll() is not None]
                if ended:
                    raise WorkerError(
                        self._processes.index(ended[0]),
                        ended[0].returncode,
                        None,
                        f"It never started.{self._stderr()}",
                    ) from None
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"the ranks did not start within {_START_TIMEOUT_S} s{self._stderr()}"
                    ) from None
            else:
                connection.setblocking(True)
                return connection

    def _collect(self, answers: _Answers, deadline: float) -> None:
        """Take messages until every rank has answered, died, or is late."""
        waiting = dict(zip(self._connections, range(self._size), strict=True))
        while waiting:
            ready = wait(list(waiting), max(0.0, deadline - time.monotonic()))
            if not ready:
                for rank in waiting.values():
                    answers.late[rank] = self._stderr(rank)
                return
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = waiting[connection]
                try:
                    message = connection.recv()
                except (EOFError, ConnectionResetError):
                    answers.dead[rank] = self._exit_code(rank), self._stderr(rank)
                    del waiting[connection]
                    continue
                if isinstance(message, Outcome):
                    answers.outcomes[rank] = message
                else:
                    answers.released[rank] = message
                    del waiting[connection]

    def _exit_code(self, rank: int) -> int | None:
        if self._starter.launched:
            return None
        try:
            return self._processes[rank].wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return None

    def _stderr(self, rank: int = 0) -> str:
        """The end of what a rank, or the launcher of all, wrote."""
        if self._directory is None:
            return ""
        number = 0 if self._starter.launched else rank
        with contextlib.suppress(FileNotFoundError):
            text = (self._directory / f"stderr-{number}").read_text(errors="replace")[-_SHOWN_STDERR:]
            return f"\nIt wrote:\n{text}" if text else ""
        return ""

    def _end(self) -> None:
        """Kill and reap whatever is left, and forget it."""
        # The numbers of ranks that are our own children and were reaped may belong to somebody else by now.
        pids = self._pids if self._starter.launched else []
        for pid in {*pids, *session_members({process.pid for process in self._processes})}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            process.kill()
            process.wait()
        for connection in self._connections:
            connection.close()
        if self._directory is not None:
            shutil.rmtree(self._directory)
        self._processes, self._connections, self._pids, self._directory = [], [], [], None


class _Answers:
    """What came back from the ranks of one run."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.outcomes: dict[int, Outcome] = {}
        self.released: dict[int, Released] = {}
        self.dead: dict[int, tuple[int | None, str]] = {}
        self.late: dict[int, str] = {}
        self.system: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether every rank answered and released its communicator."""
        return len(self.released) == self.size

    def results(self, timeout: float) -> list[Any]:
        """The values in rank order, or the group of all errors."""
        values: list[Any] = []
        errors: list[BaseException] = []
        for rank in range(self.size):
            for error in self._errors_of(rank, timeout, values):
                error.add_note(f"on rank {rank} of {self.size}")
                errors.append(error)
        if self.system:
            errors.append(AssertionError(f"the ranks left behind: {', '.join(self.system)}"))
        if errors:
            raise BaseExceptionGroup(f"{len(errors)} failures on {self.size} ranks", errors)
        return values

    def _errors_of(self, rank: int, timeout: float, values: list[Any]) -> Iterator[BaseException]:
        outcome = self.outcomes.get(rank)
        if outcome is not None and outcome.error is not None:
            yield pickle.loads(outcome.error)
        elif outcome is not None and outcome.value is not None:
            values.append(pickle.loads(outcome.value))
        if rank in self.dead:
            code, written = self.dead[rank]
            yield WorkerError(rank, code, None, written)
        if rank in self.late:
            doing = "returned but did not close its communicator" if outcome else "did not return"
            yield TimeoutError(f"rank {rank} {doing} within {timeout} s and was killed{self.late[rank]}")
        if rank in self.released and self.released[rank].gained:
            yield AssertionError(f"rank {rank} left behind: {', '.join(self.released[rank].gained)}")


def _pickle_call(starter: Starter, fn: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    if getattr(fn, "__module__", None) == "__main__":
        raise TypeError(f"{fn!r} is defined in __main__, which the ranks cannot import: put it into a module")
    try:
        return pickle.dumps((starter, fn, args))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"{fn!r} and its arguments must be importable by the ranks ({error}): "
            "use a function at the top level of a module"
        ) from error


def _run_threads(n: int, fn: Callable[..., Any], args: tuple[Any, ...], timeout: float) -> list[Any]:
    before = Holdings.now()
    communicators = ThreadBackend.group(n, timeout_s=timeout)
    values: list[Any] = [None] * n
    errors: dict[int, BaseException] = {}

    def serve(comm: Communicator) -> None:
        try:
            with comm:
                values[comm.rank] = fn(comm, *args)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
            error.add_note(f"on rank {comm.rank} of {n}")
            errors[comm.rank] = error

    threads = [threading.Thread(target=serve, args=(comm,), daemon=True) for comm in communicators]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout
    for rank, thread in enumerate(threads):
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            errors[rank] = TimeoutError(
                f"rank {rank} did not return within {timeout} s; a thread cannot be killed"
            )
    if not errors and (gained := before.gained()):
        raise AssertionError(f"the ranks left behind: {', '.join(gained)}")
    if errors:
        raise BaseExceptionGroup(
            f"{len(errors)} failures on {n} ranks", [errors[rank] for rank in sorted(errors)]
        )
    return values
