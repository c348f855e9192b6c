"""The selection chain, branch by branch, from dictionaries that stand in for the environment."""

from __future__ import annotations

import errno
import logging
import os
import sys
import types

import numpy as np
import pytest

from pycobre.comm import (
    BackendKind,
    BackendNotAvailable,
    InitializationFailed,
    InvalidBackend,
    LocalBackend,
    MissingConfiguration,
    ShmConfig,
    TcpConfig,
    available_backends,
    create_communicator,
    mpi_launch_detected,
    select,
)
from pycobre.comm.select import BackendStatus

SHM = {"COBRE_SHM_NAME": "x", "COBRE_SHM_RANK": "0", "COBRE_SHM_SIZE": "2"}
TCP = {"COBRE_TCP_COORDINATOR": "head", "COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "2"}
MPI_VARIABLES = (
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
)


class Fake(LocalBackend):
    """A local backend that claims a size and remembers what it was made from."""

    def __init__(self, config=None, size=2):
        super().__init__()
        self.config = config
        self._size = config.size if config is not None else size


@pytest.fixture
def backends(monkeypatch):
    """Every backend available, each replaced by a `Fake` named for its kind."""
    for name, attribute in (("tcp", "TcpBackend"), ("shm", "ShmBackend"), ("mpi", "MpiBackend")):
        module = types.ModuleType(f"pycobre.comm.{name}.backend")
        setattr(module, attribute, type(attribute, (Fake,), {}))
        monkeypatch.setitem(sys.modules, f"pycobre.comm.{name}.backend", module)
    monkeypatch.setattr(select, "_mpi_status", lambda: BackendStatus(True))
    monkeypatch.setattr(select, "_shm_status", lambda: BackendStatus(True))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "LocalBackend"),
        (SHM, "ShmBackend"),
        (TCP, "TcpBackend"),
        (SHM | TCP, "TcpBackend"),
        (SHM | TCP | {"PMI_RANK": "0"}, "MpiBackend"),
        *(({variable: "0"}, "MpiBackend") for variable in MPI_VARIABLES),
        ({"COBRE_COMM_BACKEND": "auto"} | SHM, "ShmBackend"),
        ({"COBRE_COMM_BACKEND": ""} | SHM, "ShmBackend"),
        ({"COBRE_COMM_BACKEND": "local"}, "LocalBackend"),
        ({"COBRE_COMM_BACKEND": "shm"} | SHM | TCP, "ShmBackend"),
        ({"COBRE_COMM_BACKEND": " TCP "} | SHM | TCP, "TcpBackend"),
        ({"COBRE_COMM_BACKEND": "mpi"}, "MpiBackend"),
        ({"COBRE_SHM_NAME": "", "COBRE_TCP_COORDINATOR": ""}, "LocalBackend"),
    ],
)
@pytest.mark.usefixtures("backends")
def test_the_first_line_that_holds_decides(environ, expected):
    assert type(create_communicator(environ=environ)).__name__ == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (BackendKind.LOCAL, "LocalBackend"),
        ("local", "LocalBackend"),
        (BackendKind.SHM, "ShmBackend"),
        ("Shm", "ShmBackend"),
        (BackendKind.TCP, "TcpBackend"),
        (BackendKind.MPI, "MpiBackend"),
        (BackendKind.AUTO, "TcpBackend"),
        (None, "MpiBackend"),
    ],
)
@pytest.mark.usefixtures("backends")
def test_what_the_caller_asks_for_beats_the_environment(kind, expected):
    environ = SHM | TCP | {"COBRE_COMM_BACKEND": "mpi"}
    if expected == "LocalBackend":
        environ = {"COBRE_COMM_BACKEND": "mpi"}
    assert type(create_communicator(kind, environ=environ)).__name__ == expected


@pytest.mark.usefixtures("backends")
def test_a_configuration_object_needs_no_environment():
    tcp = TcpConfig(rank=0, size=3)
    assert create_communicator(tcp, environ={}).config is tcp
    shm = ShmConfig("n", 0, 3)
    assert create_communicator(shm, environ={"COBRE_COMM_BACKEND": "local"}).config is shm


@pytest.mark.usefixtures("backends")
def test_settings_come_from_the_environment():
    assert create_communicator("shm", environ=SHM).config == ShmConfig("x", 0, 2)
    assert create_communicator("tcp", environ=TCP).config == TcpConfig(0, 2, "head")


@pytest.mark.parametrize("source", ["argument", "variable"])
def test_an_unknown_name(source):
    kind, environ = ("gloo", {}) if source == "argument" else (None, {"COBRE_COMM_BACKEND": "gloo"})
    with pytest.raises(
        InvalidBackend, match=r"there is no backend 'gloo'\. Choose one of: auto, mpi"
    ) as caught:
        create_communicator(kind, environ=environ)
    assert caught.value.requested == "gloo"
    assert caught.value.available == ("auto", "mpi", "tcp", "shm", "local")


@pytest.mark.parametrize("kind", ["mpi", "shm"])
def test_a_backend_that_is_not_installed(kind, monkeypatch):
    monkeypatch.setattr(select, f"_{kind}_status", lambda: BackendStatus(False, "install this"))
    with pytest.raises(
        BackendNotAvailable, match=f"{kind}.*not available here .install this.*local"
    ) as caught:
        create_communicator(kind, environ=SHM)
    assert caught.value.requested == kind
    assert "local" in caught.value.available
    assert kind not in caught.value.available


def test_missing_variables_are_named_at_once():
    with pytest.raises(MissingConfiguration) as caught:
        create_communicator("tcp", environ={})
    assert caught.value.missing_vars == ("COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_SIZE")


def test_malformed_numbers():
    with pytest.raises(InitializationFailed, match="COBRE_TCP_RANK: expected a whole number, got 'two'"):
        create_communicator(environ=TCP | {"COBRE_TCP_RANK": "two"})


def test_a_rank_beyond_the_size():
    with pytest.raises(InitializationFailed, match="COBRE_TCP_RANK: expected 0 to 1 for 2 ranks, got 2"):
        create_communicator(environ=TCP | {"COBRE_TCP_RANK": "2"})


@pytest.mark.parametrize("error", [OSError("port taken"), ImportError("libmpi.so"), RuntimeError("odd")])
@pytest.mark.usefixtures("backends")
def test_a_backend_that_cannot_start_is_chained_from_its_cause(error, monkeypatch):
    def fail(self, config):
        raise error

    monkeypatch.setattr(sys.modules["pycobre.comm.tcp.backend"].TcpBackend, "__init__", fail)
    with pytest.raises(
        InitializationFailed, match=f"tcp backend could not start: {type(error).__name__}"
    ) as caught:
        create_communicator(environ=TCP)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("environ", "named", "fix"),
    [
        ({"PMI_SIZE": "4"}, "PMI_SIZE announces 4 ranks", "mpi4py is not installed: pip install"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_SIZE announces 2", "COBRE_COMM_BACKEND=mpi"),
        (
            {"MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "0"},
            "MPI_LOCALNRANKS announces 2",
            "unset MPI_LOCALNRANKS",
        ),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "8"}, "SLURM_NTASKS announces 8", "COBRE_COMM_BACKEND=mpi"),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "8"}, "SLURM_NTASKS announces 8", "or COBRE_COMM_BACKEND=tcp"),
        (
            {"SLURM_PROCID": "1", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_ID": "0"},
            "SLURM_STEP_NUM_TASKS announces 3",
            "COBRE_COMM_BACKEND=mpi",
        ),
        ({"COBRE_TCP_SIZE": "3"}, "COBRE_TCP_SIZE announces 3", "COBRE_COMM_BACKEND=tcp"),
        ({"COBRE_SHM_SIZE": "3"}, "COBRE_SHM_SIZE announces 3", "COBRE_COMM_BACKEND=shm"),
    ],
)
@pytest.mark.parametrize("kind", [None, "local"])
def test_a_launcher_with_several_ranks_and_a_backend_with_one(environ, named, fix, kind, monkeypatch):
    monkeypatch.setattr(
        select,
        "_mpi_status",
        lambda: BackendStatus(False, 'mpi4py is not installed: pip install "pycobre[mpi]"'),
    )
    with pytest.raises(InitializationFailed, match=named) as caught:
        create_communicator(kind, environ=environ)
    assert fix in str(caught.value)
    assert "copies of the same run" in str(caught.value)


def test_mpi_that_does_not_see_its_launcher(backends, monkeypatch):
    closed = []

    class Alone(Fake):
        def __init__(self):
            super().__init__(size=1)

        def _close(self):
            closed.append(True)

    monkeypatch.setattr(sys.modules["pycobre.comm.mpi.backend"], "MpiBackend", Alone)
    with pytest.raises(InitializationFailed, match="mpi4py must be built for the MPI whose launcher"):
        create_communicator(environ={"PMI_RANK": "0", "PMI_SIZE": "4"})
    assert closed == [True]


@pytest.mark.parametrize(
    "environ",
    [
        {"PMI_SIZE": "1", "PMI_RANK": "0"},
        {"PMI_SIZE": "many"},
        {"SLURM_NTASKS": "8"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77"},
    ],
)
def test_one_process_is_one_process(environ):
    """The last one is a batch script: Slurm starts it once, whatever the number of tasks of the job."""
    assert create_communicator("local", environ=environ).size == 1


@pytest.mark.usefixtures("backends")
def test_the_choice_and_its_reason_are_logged(caplog):
    with caplog.at_level(logging.INFO, "pycobre.comm"):
        create_communicator(environ=SHM)
        create_communicator(environ={"COBRE_COMM_BACKEND": "local"})
        create_communicator("mpi", environ={})
    assert caplog.messages == [
        "communicator: shm, rank 0 of 2 (auto: COBRE_SHM_NAME is set)",
        "communicator: local, rank 0 of 1 (COBRE_COMM_BACKEND=local)",
        "communicator: mpi, rank 0 of 2 (asked for by the caller)",
    ]


@pytest.mark.parametrize("variable", MPI_VARIABLES)
def test_an_mpi_launcher_is_recognised_by_any_of_its_variables(variable):
    assert mpi_launch_detected({variable: "0"})
    assert not mpi_launch_detected({"PATH": "/bin"})


def test_every_backend_has_a_status_and_local_and_tcp_are_always_there():
    statuses = available_backends()
    assert list(statuses) == ["mpi", "tcp", "shm", "local"]
    assert statuses["local"] == BackendStatus(True)
    assert statuses["tcp"]
    assert all(status.available or status.reason for status in statuses.values())


def test_shm_without_its_native_module_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycobre._native.shm", None)
    status = available_backends()["shm"]
    assert not status
    assert "pycobre._native.shm is missing" in status.reason
    assert "C compiler" in status.reason


def test_shm_on_a_system_without_pidfds(monkeypatch):
    def refuse(pid):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    status = available_backends()["shm"]
    assert not status
    assert "refuses pidfds" in status.reason


def test_shm_without_a_mount(monkeypatch):
    monkeypatch.setattr(os.path, "isdir", lambda path: path != "/dev/shm")
    assert "there is no shared-memory mount /dev/shm" in available_backends()["shm"].reason


def test_shm_on_another_system(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert available_backends()["shm"] == BackendStatus(False, "it needs Linux, this is darwin: use tcp")


def test_mpi_without_mpi4py(monkeypatch):
    monkeypatch.setattr(select.importlib.util, "find_spec", lambda name: None)
    assert available_backends()["mpi"] == BackendStatus(
        False, 'mpi4py is not installed: pip install "pycobre[mpi]"'
    )


def test_the_default_environment_is_the_process_environment():
    """Without arguments it reads os.environ; the suite itself runs under no launcher."""
    comm = create_communicator("local")
    recv = np.zeros(1)
    comm.broadcast(recv)
    assert comm.size == 1
