"""The mpi backend beyond the conformance suites: bits, sizes, nodes, windows, errors, other communicators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpi_bodies
import numpy as np
import pytest
from mpi_environments import EnvironmentStarter, require_environment, variables

from pycobre.testing import RankGroup, run_ranks

LIBRARIES = ("mpich", "openmpi")
RANKS = 4


@pytest.fixture(scope="module", params=LIBRARIES)
def starter(request: pytest.FixtureRequest) -> EnvironmentStarter:
    require_environment(request.param)
    return EnvironmentStarter(request.param)


@pytest.fixture(scope="module")
def ranks(starter: EnvironmentStarter) -> Iterator[RankGroup]:
    with RankGroup(starter, RANKS) as group:
        yield group


@pytest.mark.parametrize("other", ["shm", "tcp"])
def test_a_random_program_gives_the_same_bits_on_every_backend(ranks: RankGroup, other: str) -> None:
    digests = run_ranks(other, RANKS, mpi_bodies.program, 11, 40)
    assert ranks.run(mpi_bodies.program, 11, 40) == digests


def test_large_sums_are_the_fold_and_bounded_in_memory(ranks: RankGroup) -> None:
    ranks.run(mpi_bodies.slices_and_bounds)


@pytest.mark.parametrize("dtype", ["u1", "f8", "c16", "i2,f8", "M8[s]"])
def test_what_is_too_long_for_one_call_goes_in_pieces(ranks: RankGroup, dtype: str) -> None:
    ranks.run(mpi_bodies.pieces, np.dtype(dtype))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_more_than_two_gigabytes(starter: EnvironmentStarter) -> None:
    run_ranks(starter, 2, mpi_bodies.beyond_two_gigabytes, timeout=800)


def test_ranks_that_give_nothing_are_waited_for(ranks: RankGroup, tmp_path: Path) -> None:
    ranks.run(mpi_bodies.whoever_waits, environ={"MPI_BODIES_DIRECTORY": str(tmp_path)})


def test_several_nodes(ranks: RankGroup) -> None:
    expected = [(rank % 2, 2, rank % 2 == 0, 2.0) for rank in range(RANKS)]
    assert ranks.run(mpi_bodies.several_nodes) == expected


def test_released_windows_are_freed_and_kept_views_stay(ranks: RankGroup) -> None:
    ranks.run(mpi_bodies.reclaimed_windows)


def test_a_backend_on_the_users_communicator(ranks: RankGroup) -> None:
    assert ranks.run(mpi_bodies.users_communicator) == [(RANKS - 1 - rank, RANKS) for rank in range(RANKS)]


def test_what_is_no_communicator(ranks: RankGroup) -> None:
    null, text, info = ranks.run(mpi_bodies.wrong_communicators)[0]
    assert null.startswith("MpiBackend: expected an MPI intracommunicator, got MPI_COMM_NULL.")
    assert "got str" in text
    assert "got Info" in info


def test_collectives_from_another_thread(ranks: RankGroup) -> None:
    assert ranks.run(mpi_bodies.from_another_thread) == [float(RANKS)] * RANKS


def test_the_thread_level_is_the_one_we_ask_for(ranks: RankGroup) -> None:
    assert ranks.run(mpi_bodies.own_thread_level) == [0] * RANKS


def test_nothing_is_left_behind_in_the_process(ranks: RankGroup) -> None:
    assert ranks.run(mpi_bodies.holdings) == [[]] * RANKS


SPECIAL = {
    "ERR_COMM": "InvalidCommunicator",
    "ERR_ROOT": "InvalidRoot",
    "ERR_BUFFER": "InvalidBufferSize",
    "ERR_COUNT": "InvalidBufferSize",
    "ERR_TYPE": "InvalidBufferSize",
}


def test_every_error_class_becomes_an_error_of_the_contract(ranks: RankGroup) -> None:
    found: dict[str, Any] = ranks.run(mpi_bodies.mapped_errors)[0]
    assert {*SPECIAL, "ERR_TRUNCATE", "ERR_OTHER", "ERR_INTERN", "ERR_NO_MEM", "ERR_WIN"} <= set(found)
    for name, (kind, text, allocating, error_class) in found.items():
        assert kind == SPECIAL.get(name, "CollectiveFailed"), name
        assert allocating == ("InvalidCommunicator" if name == "ERR_COMM" else "AllocationFailed"), name
        if kind == "InvalidRoot":
            assert text == "broadcast: expected a root from 0 to 3, got 7"
        else:
            assert text.startswith("broadcast: ")
            assert f"MPI said {name} (code {error_class}): " in text


def test_a_finalised_mpi(starter: EnvironmentStarter) -> None:
    for raised in run_ranks(starter, 2, mpi_bodies.after_finalize):
        assert len(raised) == 4
        assert all("MPI is finalised in this process" in text for text in raised)


def test_a_thread_level_that_is_too_low(starter: EnvironmentStarter) -> None:
    (text,) = run_ranks(starter, 1, mpi_bodies.low_thread_level, connect=False)
    assert "expected MPI_THREAD_SERIALIZED or higher, got MPI_THREAD_SINGLE" in text
    assert "mpi4py.rc.thread_level = 'serialized'" in text


class SmallMountStarter(EnvironmentStarter):
    """Ranks that see a /dev/shm of 64 MiB, as in a container."""

    def job_variables(self) -> dict[str, str]:
        # Nobody else is in that mount, and a directory made for the job would be hidden behind it.
        return variables(self.library)

    def command(self, size: int, worker: list[str]) -> list[list[str]]:
        (command,) = super().command(size, worker)
        mount = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
        return [["unshare", *_UNSHARE, "sh", "-c", mount, "sh", *command]]


_UNSHARE = ("--mount",) if os.getuid() == 0 else ("--mount", "--map-root-user")


def require_mounts() -> None:
    unshare = shutil.which("unshare")
    probe = [unshare, *_UNSHARE, "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"]
    if unshare is None or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("this system does not let us mount a small /dev/shm for the ranks")


@pytest.mark.parametrize("left_bytes", [0, 8192])
def test_a_full_shared_memory_mount(starter: EnvironmentStarter, left_bytes: int) -> None:
    """The library would end by SIGBUS, or wait for ever; also where its control segment alone does not fit."""
    require_mounts()
    for text in run_ranks(SmallMountStarter(starter.library), 2, mpi_bodies.full_mount, left_bytes):
        assert "cannot allocate" in text
        assert "No space left on device in the node's shared memory" in text


def test_a_small_shared_memory_mount(starter: EnvironmentStarter) -> None:
    require_mounts()
    for texts in run_ranks(SmallMountStarter(starter.library), 2, mpi_bodies.small_mount):
        assert len(texts) == (2 if starter.library == "mpich" else 1)
        assert all("cannot allocate 209715200 bytes: No space left on device" in text for text in texts)
        assert all("(/dev/shm). Make it larger (a container's with --shm-size)" in text for text in texts)
