"""A run as an object: started in processes of its own, watched through its directory, stopped, awaited."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.app.backend import named_backend
from pycobre.app.build_request import build_request
from pycobre.app.restarts import Restarts
from pycobre.app.results.control import send_request
from pycobre.app.results.directory import Results, open_results
from pycobre.app.results.event_log import read_events
from pycobre.app.results.layout import default_output
from pycobre.app.results.lock import owner_of
from pycobre.app.results.status import RunStatus, read_status
from pycobre.app.run import Execution
from pycobre.app.stop_switch import StopSwitch
from pycobre.errors import OptionError, OutputError
from pycobre.events import Event

if TYPE_CHECKING:
    from pycobre.app.backend import BackendChoice
    from pycobre.hydro.model import Case
    from pycobre.problem import Problem
    from pycobre.sddp import Policy, TrainOptions

__all__ = ["EventStream", "Run", "start"]

POLL_S = 0.05
"""How often a run of another process is looked at."""


class Run:
    """A run that goes on elsewhere. `await run` waits for its result; cancelling that stops it."""

    def __init__(self, directory: Path, own: _Background | None = None) -> None:
        self.directory = directory
        self._own = own

    @classmethod
    def attach(cls, directory: str | os.PathLike[str]) -> Run:
        """The run that writes, or wrote, into a directory; whoever started it."""
        root = Path(directory)
        if read_status(root) is None:
            raise OutputError(
                f"{root}: expected the directory of a run, got one without a status. Check the path."
            )
        return cls(root)

    def status(self) -> RunStatus:
        """How far it is."""
        found = read_status(self.directory)
        if found is None:
            raise OutputError(
                f"{self.directory}: no run has written a status here. Look at the result instead."
            )
        return found

    def events(self) -> EventStream:
        """Every event from the first on, also those to come, until the run has ended; `for` and `async for` work."""
        return EventStream(self)

    def checkpoint(self) -> None:
        """Ask for a checkpoint at the end of the iteration."""
        send_request(self.directory, "checkpoint")

    def set_iteration_limit(self, limit: int) -> None:
        """Replace the iteration limit, from the end of this iteration on."""
        send_request(self.directory, "iteration_limit", limit)

    def stop(self, after: str = "iteration") -> None:
        """Stop after the iteration, with a checkpoint; or `"now"`, which ends the processes. Both can be resumed."""
        if after not in ("iteration", "now"):
            raise OptionError(f"stop: expected 'iteration' or 'now', got {after!r}.")
        if self._own is not None:
            self._own.stop(now=after == "now")
        elif after == "iteration":
            send_request(self.directory, "stop")
        else:
            self._kill()

    @property
    def running(self) -> bool:
        """Whether it still goes on."""
        return self._own.alive if self._own is not None else self.status().state == "running"

    def result(self, timeout: float | None = None) -> Results:
        """Wait for the end and open the results; an error of the run is raised.

        Raises `TimeoutError` where it still goes on after `timeout` seconds.
        """
        if self._own is not None:
            self._own.wait(timeout)
            return open_results(self.directory)
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.status()).state == "running":
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{self.directory}: the run still goes on after {timeout:g} s")
            time.sleep(POLL_S)  # a process of somebody else tells nobody that it ends
        if status.state == "failed" and status.error is not None:
            raise OutputError(f"{self.directory}: the run failed: {status.error['message']}")
        if status.state == "lost":
            raise OutputError(
                f"{self.directory}: the process of the run is gone. Resume it with resume=True."
            )
        return open_results(self.directory)

    async def _awaited(self) -> Results:
        try:
            return await asyncio.to_thread(self.result)
        except asyncio.CancelledError:
            self.stop()
            raise

    def __await__(self) -> Generator[Any, None, Results]:
        return self._awaited().__await__()

    def _kill(self) -> None:
        owner = owner_of(self.directory)
        if owner is None:
            return
        if owner.host != socket.gethostname():
            raise OutputError(
                f"{self.directory}: the run is on {owner.host}, where its process {owner.pid} has to be ended. "
                "Use stop('iteration') from here."
            )
        os.kill(owner.pid, signal.SIGKILL)


class EventStream:
    """The events of a run as they are written, as dictionaries."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._start = 0
        self._seen: Iterator[tuple[dict[str, Any], int]] = iter(())

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> dict[str, Any]:
        while True:
            ended = not self._run.running  # asked first: what was written before the end is still read
            event = self._take()
            if event is not None:
                return event
            if ended:
                raise StopIteration
            time.sleep(POLL_S)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            ended = not self._run.running
            event = self._take()
            if event is not None:
                yield event
            elif ended:
                return
            else:
                await asyncio.sleep(POLL_S)

    def _take(self) -> dict[str, Any] | None:
        found = next(self._seen, None)
        if found is None:
            self._seen = read_events(self._run.directory, self._start)
            found = next(self._seen, None)
        if found is None:
            return None
        event, self._start = found
        return event


class _Background:
    """The thread that drives a run."""

    def __init__(self, execution: Execution, request: Any) -> None:
        self._execution, self._request = execution, request
        self._switch = StopSwitch()
        self._started = threading.Event()
        self._error: BaseException | None = None
        # A daemon: a program that ends takes its workers with it, and the run can be resumed.
        self._thread = threading.Thread(target=self._drive, name="pycobre-run", daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, *, now: bool) -> None:
        self._switch.set()
        self._execution.stop(now=now)

    def wait(self, timeout: float | None) -> None:
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the run still goes on after {timeout:g} s")
        if self._error is not None:
            raise self._error

    def _drive(self) -> None:
        try:
            with self._execution:
                self._execution.drive(self._request, self._seen, self._switch)
        except BaseException as error:  # noqa: BLE001 - raised by `wait`
            self._error = error
        finally:
            self._started.set()

    def _seen(self, event: Event) -> None:
        self._started.set()  # the directory is locked and has a status


def start(
    case_or_problem: Case | Problem | str | os.PathLike[str],
    config_overrides: Mapping[str, Any] | None = None,
    *,
    backend: BackendChoice = "auto",
    num_workers: int = 1,
    threads: int = 1,
    options: TrainOptions | None = None,
    output: str | os.PathLike[str] | None = None,
    scenarios: int | None = None,
    resume: bool = False,
    warm_start: Policy | str | os.PathLike[str] | None = None,
    checkpoint_iterations: int | None = None,
    checkpoint_minutes: float | None = None,
    restarts: int = 0,
    min_workers: int | None = None,
) -> Run:
    """Start what `pycobre run` does, in processes of its own, and return while it goes on.

    `output` defaults to the directory `output` of a case that is given by its own directory; `scenarios` to the
    case's configuration, of a problem to none. What is wrong with the case or the options is raised here.
    """
    if output is None:
        if not isinstance(case_or_problem, str | os.PathLike):
            raise OptionError("output: expected a directory for the run, got none. Give output=.")
        output = default_output(case_or_problem)
    if named_backend(backend) is None:
        raise OptionError(
            "backend: expected the name of one, since a run's processes are started here, got a "
            f"{type(backend).__name__}. Use train in each rank's own process."
        )
    execution = Execution(backend, num_workers, Restarts(restarts, min_workers), apart=True)
    try:
        request = build_request(
            case_or_problem,
            config_overrides,
            options,
            policy=warm_start,
            output=os.path.abspath(output),
            scenarios=scenarios,
            threads=threads,
            resume=resume,
            checkpoint_iterations=checkpoint_iterations,
            checkpoint_minutes=checkpoint_minutes,
        )
    except BaseException:
        execution.close()
        raise
    return Run(Path(os.path.abspath(output)), _Background(execution, request))
