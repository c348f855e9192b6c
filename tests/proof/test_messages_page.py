"""The page that explains why a run stopped quotes what the code really says, word for word."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pycobre
from pycobre._util import container, files
from pycobre.app import pipeline
from pycobre.app.cli.screen import STOPPING
from pycobre.app.origin import refuse_another_case, write_origin
from pycobre.app.results.lock import DirectoryLock
from pycobre.app.workers import choose_backend
from pycobre.comm import ShmConfig, TcpConfig, create_communicator, failure
from pycobre.comm.mpi import job as mpi_job
from pycobre.comm.mpi import watch as mpi_watch
from pycobre.comm.shm import segment as shm_segment
from pycobre.comm.shm.failure import ALLREDUCE, BARRIER, collective_failed
from pycobre.comm.tcp.failure import CommFailure, FailureKind, explain
from pycobre.errors import (
    BackendNotAvailable,
    CobreError,
    CollectiveFailed,
    SolverError,
    WorkerError,
)
from pycobre.launch.launcher import silent_rank
from pycobre.problem import Graph, Problem, build
from pycobre.sddp import IterationLimit, TrainOptions
from pycobre.testing.problems import reservoir

PAGE = Path(__file__).parents[2] / "docs/guides/why-did-my-run-stop.md"
ADDRESSES = {1: "10.0.0.2:41234"}
FLOAT64 = ord("f") << 8 | 8


def quotes() -> list[str]:
    """Every line of a text block, and the first column of every table of texts."""
    text = PAGE.read_text()
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    tables = re.findall(r"^\| `(.*?)` \|", text, re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()] + tables


def pattern(quote: str) -> re.Pattern[str]:
    """A quote as a regular expression: numbers are any number, and … is anything."""
    escaped = re.escape(quote).replace("…", ".*")
    return re.compile(re.sub(r"\d+", r"\\d+(?:[.]\\d+)?", escaped), re.DOTALL)


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except CobreError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("expected an error")


def of_shm() -> Iterator[CollectiveFailed]:
    dead, left, stalled, aborted, mismatch = 1, 2, 3, 4, 6
    for kind in (dead, stalled):
        yield collective_failed("allgatherv", (kind, 1, 0, 4711, "", None, None), 0, 60.0)
    yield collective_failed("allgatherv", (stalled, 1, 0, 4711, "", None, None), 1, 60.0)
    yield collective_failed("barrier", (left, 1, 0, 4711, "", None, None), 0, 60.0)
    yield collective_failed("allgatherv", (aborted, 2, 2, 4711, "ValueError: no", None, None), 0, 60.0)
    mine, theirs = (BARRIER, 0, 0, 0, 7, 0), (ALLREDUCE, 1, 0, FLOAT64, 7, 4)
    yield collective_failed("barrier", (mismatch, 1, 1, 4711, "", mine, theirs), 0, 60.0)


def of_tcp() -> Iterator[CollectiveFailed]:
    failures = (
        ("allgatherv", CommFailure(FailureKind.DISCONNECTED, 1)),
        ("allgatherv", CommFailure(FailureKind.DISCONNECTED, 1, errno.ETIMEDOUT)),
        ("allgatherv", CommFailure(FailureKind.TIMEOUT, 1)),
        ("barrier", CommFailure(FailureKind.SHUTDOWN, 1, 17)),
        ("barrier", CommFailure(FailureKind.MISMATCH, 1, 0, bytes(128))),
        ("allgatherv", CommFailure(FailureKind.UNAUTHENTIC, 1)),
    )
    for operation, found in failures:
        rank, text = explain(found, 0, ADDRESSES, 60.0)
        yield CollectiveFailed(operation, 0, text, rank=rank)


def of_mpi(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    reports: list[str] = []
    watch = mpi_watch.PeerWatch(0, reports.append)
    watch.start([])
    try:
        watch.latest = "allgatherv", 18
        monkeypatch.setattr(mpi_watch.socket, "gethostname", lambda: "node7")
        yield f"pycobre: {watch._death(mpi_watch.PeerInfo(1, 4711, 0, b''))}"
        monkeypatch.setattr(mpi_watch, "_is_stopped", lambda process: True)
        for _ in range(mpi_watch._CHECKS):
            watch._look_for_stopped({0: mpi_watch.PeerInfo(1, 4711, 0, b"")})
        yield f"pycobre: {reports[-1]}"
    finally:
        watch.leave(18)
    left = CollectiveFailed("barrier", 0, mpi_watch.departure(0, "barrier", 18, 1, 17), rank=1)
    yield f"CollectiveFailed: {left}"
    with monkeypatch.context() as patched:
        patched.setattr(mpi_job, "end_job", lambda mpi, message, code: reports.append(message))
        world = SimpleNamespace(rank=2, size=4)
        mpi = SimpleNamespace(COMM_WORLD=world, Is_initialized=lambda: True, Is_finalized=lambda: False)
        mpi_job._abort_after(mpi, ValueError, "")
        yield f"pycobre: {reports[-1]}"
    yield f"pycobre: {failure.outlived_the_job(0, 2, 1, 10.0)}"
    yield failure.MONITOR_REPORT.format(rank=1, process=4711, host="node7")


def of_starting() -> Iterator[str]:
    name = f"pycobre-page-{os.getpid()}"
    yield raised(lambda: create_communicator("smh"))
    yield f"BackendNotAvailable: {BackendNotAvailable('mpi', ('local',), 'mpi4py is not installed')}"
    yield raised(lambda: TcpConfig.from_env({"COBRE_TCP_COORDINATOR": "host"}))
    yield raised(lambda: create_communicator("local", environ={"OMPI_COMM_WORLD_SIZE": "4"}))
    yield raised(lambda: choose_backend("auto", 2, {"PMI_SIZE": "2"}))
    yield raised(lambda: shm_segment.reserve(1 << 60))
    yield raised(lambda: create_communicator(TcpConfig(rank=0, size=2, port=0)))
    yield raised(lambda: create_communicator(ShmConfig(name, 0, 2, timeout_s=0.05)))
    yield raised(lambda: create_communicator(ShmConfig(name, 1, 2, timeout_s=0.05)))
    alone = TcpConfig(rank=0, size=2, port=0, bind_addr="127.0.0.1", connect_timeout_ms=50)
    yield raised(lambda: create_communicator(alone))
    nobody = TcpConfig(rank=1, size=2, coordinator="127.0.0.1", port=1, connect_timeout_ms=50)
    yield raised(lambda: create_communicator(nobody))


def of_files(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        yield raised(lambda: files.write_atomically(directory / "x", b"x"))
    whole = container.pack(container.Container("policy", 1, {}, {"x": np.zeros(9)}))
    torn = directory / "torn.cobre"
    torn.write_bytes(whole[:-1])
    yield raised(lambda: pycobre.simulate(reservoir(2), torn, 1))
    run = {"output": directory / "out", "resume": True}
    yield raised(lambda: pycobre.train(reservoir(2), options=options(1), output="/proc/x"))
    yield raised(lambda: pycobre.train(reservoir(2), options=options(1), **run))
    pycobre.train(reservoir(2), options=options(1), output=directory / "out")
    lock = DirectoryLock(directory / "out")
    lock.sign("20260101T000000Z-abcdef")
    yield raised(lambda: pycobre.train(reservoir(2), options=options(1), output=directory / "out"))
    lock.release()
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "PreparedProblem", refuse_memory)
        yield raised(lambda: pycobre.train(reservoir(2), options=options(1)))
    yield raised(lambda: pycobre.train(reservoir(3), options=options(2), **run))
    yield raised(lambda: pycobre.train(reservoir(2), options=options(2, forward_passes=3), **run))
    before = {"config": {"training": {"tree_seed": 42}}, "inputs": {"system/hydros.json": "one hash"}}
    after = {"config": {"training": {"tree_seed": 9}}, "inputs": {"system/hydros.json": "another"}}
    write_origin(directory, before)
    yield raised(lambda: refuse_another_case(directory, after))


def refuse_memory(*arguments: object, **more: object) -> None:
    raise MemoryError("Unable to allocate 7.45 GiB for an array")


def options(iterations: int, **given: Any) -> TrainOptions:
    return TrainOptions(stopping=IterationLimit(iterations), **given)


def infeasible() -> Problem:
    def stage(sp: Any, t: int) -> None:
        x = sp.state("x", initial=1.0, lower=0.0, upper=5.0)
        u = sp.variable("u", lower=0.0, upper=1.0)
        sp.add(x.out == x.in_ + u)
        if t == 2:
            sp.add(x.in_ >= 4.0, name="asks_too_much")
        sp.minimise(u)

    return build(Graph.linear(2), stage, lower_bound=0.0, check=False)


@pytest.fixture
def produced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)  # the bundle of the failed LP goes there
    texts = [
        f"WorkerError: {error}" for error in (WorkerError(1, -9, None), WorkerError(2, 1, SolverError("no")))
    ]
    texts += [f"CollectiveFailed: {failure}" for failure in (*of_shm(), *of_tcp())]
    texts.append(f"CollectiveFailed: {silent_rank(1, 4711, 60.0)}")
    texts += of_mpi(monkeypatch)
    texts += of_starting()
    texts += of_files(tmp_path, monkeypatch)
    texts.append(STOPPING)
    texts.append(raised(lambda: pycobre.train(infeasible(), options=options(1))))
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/no/such/python")
        texts.append(raised(lambda: pycobre.train(reservoir(2), options=options(1), num_workers=2)))
    return texts


def test_every_quote_is_what_the_code_says(produced: list[str]) -> None:
    said = quotes()
    assert len(said) > 25
    unknown = [quote for quote in said if not any(pattern(quote).search(text) for text in produced)]
    assert not unknown, f"nothing says: {unknown}\nthis is said: {produced}"


def test_every_produced_message_is_on_the_page(produced: list[str]) -> None:
    """So the page does not fall behind when a sentence changes."""
    absent = [text for text in produced if not any(pattern(quote).search(text) for quote in quotes())]
    assert not absent, absent


def test_a_quote_with_another_word_is_noticed(produced: list[str]) -> None:
    assert not any(pattern("worker 1 was slain by signal 9").search(text) for text in produced)
