"""A worker that dies, stalls, raises or cannot start: one `WorkerError`, nobody left, nothing left."""

import os
import signal
import sys
from pathlib import Path

import pytest
from run_helpers import options, problem, segments, workers_alive

import pycobre
from pycobre.errors import CollectiveFailed, InitializationFailed, OutputError, SolverError, WorkerError
from pycobre.events import Event, IterationFinished
from pycobre.launch import launcher as launch
from pycobre.problem import Graph, build


@pytest.fixture(autouse=True)
def _nothing_is_left() -> object:
    yield
    assert workers_alive() == {}
    assert segments() == set()


def signalling(number: int, rank: int) -> object:
    def callback(event: Event) -> None:
        if isinstance(event, IterationFinished) and event.worker_id == 0 and event.iteration == 2:
            os.kill(workers_alive()[rank], number)

    return callback


@pytest.mark.parametrize(("backend", "rank"), [("shm", 1), ("shm", 0), ("tcp", 1), ("tcp", 0)])
def test_a_killed_worker_is_named_with_its_signal(backend: str, rank: int, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=f"worker {rank} was killed by signal 9") as caught:
        pycobre.train(
            problem(),
            options=options(500),
            backend=backend,
            num_workers=2,
            progress_callback=signalling(signal.SIGKILL, rank),
            output=tmp_path,
            checkpoint_iterations=1,
        )
    assert (caught.value.rank, caught.value.exit_code) == (rank, -9)
    # What had been reached is on disk, and goes on from there.
    resumed = pycobre.train(problem(), options=options(4), output=tmp_path, resume=True)
    assert resumed.iterations >= 4


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_stalled_worker_is_named_at_the_timeout(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough for ranks that start, and wait for a turn of the processor, on a busy machine.
    monkeypatch.setenv(f"COBRE_{backend.upper()}_TIMEOUT_SECS", "20")
    monkeypatch.setattr(launch, "GRACE_S", 1.0)
    with pytest.raises(WorkerError, match="worker 1 failed") as caught:
        pycobre.train(
            problem(),
            options=options(500),
            backend=backend,
            num_workers=2,
            progress_callback=signalling(signal.SIGSTOP, 1),
        )
    assert isinstance(caught.value.inner, CollectiveFailed)
    assert caught.value.rank == 1


def test_an_error_inside_a_worker_comes_back_as_itself() -> None:
    def stage(sp: object, t: int) -> None:
        x = sp.state("x", initial=1.0, lower=0.0, upper=5.0)
        u = sp.variable("u", lower=0.0, upper=1.0)
        sp.add(x.out == x.in_ + u)
        # From the second stage on more is asked for than the first stage can have put aside.
        if t == 2:
            sp.add(x.in_ >= 4.0, name="asks_too_much")
        sp.minimise(u)

    broken = build(Graph.linear(2), stage, lower_bound=0.0, check=False)
    with pytest.raises(WorkerError, match="asks_too_much") as caught:
        pycobre.train(broken, options=options(5), num_workers=2)
    assert isinstance(caught.value.inner, SolverError)
    assert caught.value.inner.status == "infeasible"
    with pytest.raises(SolverError, match="asks_too_much"):
        pycobre.train(broken, options=options(5))


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_full_disk_is_blamed_on_the_worker_that_writes(
    backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All ranks raise what rank 0 could not write; rank 0 is made to report last."""
    (tmp_path / "sitecustomize.py").write_text(
        "import errno, os\n"
        "def full(descriptor): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\n"
        "os.fsync = full\n"
        f"rank = os.environ.get('COBRE_{backend.upper()}_RANK')\n"
        "if rank is not None:\n"
        "    import pycobre.launch.channel as c, threading\n"
        "    from pathlib import Path\n"
        f"    said = [Path({str(tmp_path)!r}, f'said-{{r}}') for r in range(3)]\n"
        "    send = c.Channel.send\n"
        "    def late(self, kind, payload):\n"
        "        while kind == c.Kind.ERROR and rank == '0' and not all(p.exists() for p in said[1:]):\n"
        "            threading.Event().wait(0.005)\n"
        "        send(self, kind, payload)\n"
        "        if kind == c.Kind.ERROR: said[int(rank)].touch()\n"
        "    c.Channel.send = late\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(WorkerError, match=r"worker 0 .*No space left on device") as caught:
        pycobre.train(
            problem(),
            options=options(5),
            backend=backend,
            num_workers=3,
            output=tmp_path / "out",
            checkpoint_iterations=1,
        )
    assert isinstance(caught.value.inner, OutputError)
    assert caught.value.rank == 0


def test_an_interpreter_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(InitializationFailed, match=r"rank 0 could not be started: .*No such file"):
        pycobre.train(problem(), options=options(2), num_workers=2)


def test_a_worker_that_dies_at_once_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nif os.environ.get('COBRE_SHM_RANK') == '1': os._exit(9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # Rank 0 waits for rank 1 much longer than this: it is ended, and has no failure of its own to report.
    monkeypatch.setattr(launch, "GRACE_S", 1.0)
    with pytest.raises(WorkerError, match="worker 1 ended with exit code 9"):
        pycobre.train(problem(), options=options(2), num_workers=2)
