"""The parent's side of several workers: start the ranks, pass their events on, stop them, collect the report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pycobre._util.frozen import frozen
from pycobre.app.backend import named_backend
from pycobre.app.stop_switch import StopSwitch, catching_signals
from pycobre.app.streams import open_standard_streams
from pycobre.comm import available_backends
from pycobre.comm.select import announced_size
from pycobre.errors import (
    BackendNotAvailable,
    CobreError,
    CommError,
    OptionError,
    WorkerError,
)
from pycobre.events import Event
from pycobre.launch.channel import Kind
from pycobre.launch.event_batcher import decode_batch
from pycobre.launch.launcher import RankGroup

if TYPE_CHECKING:
    from pycobre.app.backend import BackendChoice
    from pycobre.app.report import Report
    from pycobre.app.request import Request

__all__ = ["WorkerInfo", "choose_backend", "run_on_workers", "start_workers"]

T = TypeVar("T")


MAX_WORKERS = 1024
"""Processes that one run starts on one machine; the shm backend knows no more ranks."""


@frozen()
class WorkerInfo:
    """One worker of a finished run."""

    rank: int
    backend: str
    wall_time_ms: float
    pid: int


def choose_backend(backend: BackendChoice, workers: int, environ: Mapping[str, str] | None = None) -> str:
    """The backend that `workers` processes of this machine talk by; raises before anything is started."""
    environ = os.environ if environ is None else environ
    name = named_backend(backend)
    if name is None:
        raise OptionError(
            f"num_workers: expected 1 with a {type(backend).__name__}, got {workers}: it is one rank of a run whose "
            "others are started elsewhere. Give the backend's name to have workers started here."
        )
    if name == "auto" and environ.get("COBRE_COMM_BACKEND", "").strip():
        name = named_backend(environ["COBRE_COMM_BACKEND"]) or "auto"
    if workers > MAX_WORKERS:
        raise OptionError(
            f"num_workers: expected at most {MAX_WORKERS}, got {workers}. Take as many as there are cores."
        )
    announced = announced_size(environ)
    if announced is not None and not announced[0].startswith("COBRE_"):
        raise OptionError(
            f"num_workers: expected 1 under a launcher, got {workers}: {announced[0]} announces {announced[1]} "
            "ranks, each of which would start workers for the same run. Let either start processes, not both."
        )
    if name == "mpi":
        raise OptionError(
            f"num_workers: expected 1 with the mpi backend, got {workers}. "
            f"MPI starts its own processes: `mpiexec -n {workers} pycobre run CASE`."
        )
    if name == "local":
        raise OptionError(
            f"num_workers: expected 1 with the local backend, got {workers}. Choose auto, shm or tcp for several."
        )
    if name not in ("auto", "shm", "tcp"):
        raise OptionError(
            f"num_workers: expected 1 with the {name} backend, got {workers}: how its ranks are started is known to "
            "its package. Choose auto, shm or tcp for workers on this machine."
        )
    status = available_backends()
    if name == "auto":
        name = "tcp" if environ.get("COBRE_TCP_COORDINATOR") or not status["shm"] else "shm"
    if not status[name]:
        usable = tuple(name for name, found in status.items() if found)
        raise BackendNotAvailable(name, usable, status[name].reason)
    return name


def start_workers(workers: int, backend: str) -> RankGroup:
    """So many fresh processes, which load what they need and wait for a request: a context that ends them."""
    open_standard_streams()  # else a socket to a worker could be its standard output
    return RankGroup("pycobre.app.worker", workers, backend)


def run_on_workers(
    request: Request,
    group: RankGroup,
    on_event: Callable[[Event], object] | None,
    switch: StopSwitch,
    on_evicted: Callable[[int], object] | None = None,
) -> tuple[Report, tuple[WorkerInfo, ...]]:
    """Run a request on started workers; raise `WorkerError` when one of them fails.

    A worker that got a SIGTERM ends the run after the iteration, and `on_evicted` is told its rank.

    A true return value of `on_event`, its exception, and a first SIGINT or SIGTERM end the run after the current
    iteration; the exception is raised when the ranks have ended. A second signal ends it at once.
    """
    reports: dict[int, bytes] = {}
    infos: dict[int, WorkerInfo] = {}
    raised: list[Exception] = []
    wishes: list[Event] = []  # events upon which the callback asked to stop

    def deliver(rank: int, payload: bytes) -> None:
        if on_event is None or raised:
            return
        events = _read(rank, "events", lambda: decode_batch(payload))
        try:
            for event in events:
                if on_event(event):
                    wishes.append(event)
        except Exception as error:  # noqa: BLE001 - raised again when the ranks have ended
            raised.append(error)

    def on_message(rank: int, kind: Kind, payload: bytes) -> None:
        if kind is Kind.EVENT:
            deliver(rank, payload)
        elif kind is Kind.QUESTION:
            deliver(rank, payload)
            group.answer(rank, b"stop" if wishes or raised else b"go on")
        elif kind is Kind.RESULT:
            head, _, body = payload.partition(b"\n")
            told = _read(rank, "result", lambda: dict(json.loads(head)))
            infos[rank] = _read(rank, "result", lambda: _info(rank, group.backend, told))
            if on_evicted is not None and told.get("evicted") is True:
                on_evicted(rank)
            reports[rank] = body

    with catching_signals(switch, group.request_stop):
        group.give(request.to_bytes())
        from pycobre.app.report import Report  # meanwhile: loads what a policy needs

        group.run(on_message)
    if raised:
        raise raised[0]
    report = _read(0, "report", lambda: Report.from_bytes(reports[0]))
    return report, tuple(infos[rank] for rank in sorted(infos))


def _info(rank: int, backend: str, head: dict[str, Any]) -> WorkerInfo:
    return WorkerInfo(rank, backend, float(head["wall_time_ms"]), int(head["pid"]))


def _read(rank: int, what: str, parse: Callable[[], T]) -> T:
    """What a worker sent, as `parse` reads it; a message that it cannot read is that worker's failure."""
    try:
        return parse()
    except (KeyError, TypeError, ValueError, RecursionError, CobreError) as error:
        message = (
            f"{what} of worker {rank}: expected the form of this version of pycobre, got another ({error!r})"
        )
        raise WorkerError(rank, None, CommError(message)) from error
