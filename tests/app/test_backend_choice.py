"""What `train`, `simulate` and `start` take as a backend."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pycobre import simulate, start, train
from pycobre.app.workers import choose_backend
from pycobre.comm import BackendKind, Communicator, InvalidBackend, LocalBackend, ShmConfig, TcpConfig
from pycobre.errors import CobreError, OptionError
from pycobre.problem import Problem
from pycobre.sddp import TrainOptions
from pycobre.testing import run_ranks
from pycobre.testing.problems import reservoir

OPTIONS = {"iteration_limit": 3, "forward_passes": 2}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return reservoir(4)


@pytest.fixture(scope="module")
def digest(problem: Problem) -> str:
    return train(problem, OPTIONS).policy_digest


def segment() -> str:
    return f"pycobre-test-{os.getpid()}-{os.urandom(6).hex()}"


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        (BackendKind.LOCAL, "local"),
        ("Local", "local"),
        (BackendKind.AUTO, "local"),
        (TcpConfig(rank=0, size=1, port=0, bind_addr="127.0.0.1"), "tcp"),
        (ShmConfig(segment(), 0, 1), "shm"),
    ],
    ids=["kind", "name", "auto", "TcpConfig", "ShmConfig"],
)
def test_every_way_to_name_one(problem: Problem, digest: str, backend: Any, name: str) -> None:
    result = train(problem, OPTIONS, backend=backend)
    assert result.policy_digest == digest
    assert result.metadata["backend"] == name


def test_a_communicator_that_was_given_stays_open(problem: Problem, digest: str) -> None:
    with LocalBackend() as comm:
        for _ in range(2):
            assert train(problem, OPTIONS, backend=comm).policy_digest == digest
        comm.barrier()


def train_and_simulate(comm: Communicator, problem: bytes) -> tuple[str, int, float, list[str]]:
    """On every rank: digest and iterations of the training, mean cost and tables of the simulation."""
    given = Problem.from_bytes(problem)
    trained = train(given, OPTIONS, backend=comm)
    simulated = simulate(given, trained.policy, 5, backend=comm, options=TrainOptions(seed=3))
    history = trained.convergence_history
    return trained.policy_digest, history.num_rows, simulated.mean_cost, list(simulated.tables)


def test_every_rank_of_a_communicator_has_the_result(problem: Problem, digest: str) -> None:
    """The tables of a simulation are on rank 0."""
    first, second = run_ranks("shm", 2, train_and_simulate, problem.to_bytes())
    assert first[:3] == second[:3]
    assert first[:2] == (digest, 3)
    alone = simulate(problem, train(problem, OPTIONS).policy, 5, options=TrainOptions(seed=3))
    assert first[2:] == (alone.mean_cost, list(alone.tables))
    assert second[3] == []


@pytest.mark.parametrize(
    ("backend", "workers", "text"),
    [
        (LocalBackend(), 2, "expected 1 with a LocalBackend, got 2: it is one rank of a run"),
        (ShmConfig("x", 0, 2), 2, "expected 1 with a ShmConfig, got 2"),
        (7, 1, "backend: expected a name, a TcpConfig, a ShmConfig or a communicator that is a"),
        (7, 2, "backend: expected a name, a TcpConfig, a ShmConfig or a communicator that is a"),
        (object, 1, "SharedMemoryProvider, got type"),
    ],
)
def test_what_cannot_be_one(problem: Problem, backend: Any, workers: int, text: str) -> None:
    with pytest.raises(OptionError) as caught:
        train(problem, OPTIONS, backend=backend, num_workers=workers)
    assert text in str(caught.value)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_unknown_name_is_the_same_error_everywhere(problem: Problem, workers: int, tmp_path: Path) -> None:
    texts = set()
    for use in (
        lambda: train(problem, OPTIONS, backend="nonsense", num_workers=workers),
        lambda: start(problem, OPTIONS, backend="nonsense", num_workers=workers, output=tmp_path),
    ):
        with pytest.raises(InvalidBackend) as caught:
            use()
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_started_needs_a_name(problem: Problem, tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match="expected the name of one, since a run's processes are started here"
    ):
        start(problem, OPTIONS, backend=LocalBackend(), output=tmp_path)


@pytest.mark.parametrize(
    ("backend", "environ", "text"),
    [
        ("nonsense", {"OMPI_COMM_WORLD_SIZE": "3"}, "there is no backend 'nonsense'"),
        ("mpi", {"OMPI_COMM_WORLD_SIZE": "3"}, "expected 1 under a launcher"),
        ("mpi", {}, "expected 1 with the mpi backend"),
        ("local", {}, "expected 1 with the local backend"),
        ("auto", {"COBRE_COMM_BACKEND": "nonsense"}, "there is no backend 'nonsense'"),
        ("auto", {"COBRE_COMM_BACKEND": "local"}, "expected 1 with the local backend"),
    ],
)
def test_what_is_said_first_about_workers(backend: str, environ: dict[str, str], text: str) -> None:
    with pytest.raises(CobreError) as caught:
        choose_backend(backend, 2, environ)
    assert text in str(caught.value)


def test_what_is_asked_for_beats_the_environment() -> None:
    assert choose_backend("shm", 2, {"COBRE_COMM_BACKEND": "nonsense"}) == "shm"
    assert choose_backend("auto", 2, {"COBRE_COMM_BACKEND": " TCP "}) == "tcp"
