"""Backends of other packages, found by their entry points: real metadata of a package on the path."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pycobre.comm import (
    Backend,
    BackendKind,
    InitializationFailed,
    InvalidBackend,
    LocalBackend,
    available_backends,
    create_communicator,
)

Connect = Callable[[Mapping[str, str]], object]


class Mirror(LocalBackend):
    """What the package's backend makes; it remembers the environment that it was given."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__()
        self.environ = environ


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a package on the path whose metadata declare one backend, made by a given function."""

    def declare(connect: Connect, name: str = "mirror") -> None:
        info = tmp_path / "mirrors-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mirrors\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pycobre.backends]\n{name} = mirrors_module:connect\n")
        module = types.ModuleType("mirrors_module")
        module.connect = connect  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "mirrors_module", module)
        monkeypatch.syspath_prepend(str(tmp_path))

    return declare


def test_a_backend_of_a_package_is_chosen_by_name(declare: Callable[..., None]) -> None:
    declare(Mirror)
    environ = {"SOME": "thing"}
    with create_communicator("mirror", environ=environ) as comm:
        assert isinstance(comm, Mirror)
        assert comm.environ == environ
    with create_communicator(environ={"COBRE_COMM_BACKEND": "mirror"}) as comm:
        assert isinstance(comm, Mirror)
    assert available_backends()["mirror"] == (True, "of mirrors")


def test_names_of_pycobre_stay_its_own(declare: Callable[..., None]) -> None:
    declare(Mirror, name="local")
    with create_communicator("local", environ={}) as comm:
        assert type(comm) is LocalBackend
    assert list(available_backends()) == ["mpi", "tcp", "shm", "local"]


def test_an_unknown_name_is_told_all_names(declare: Callable[..., None]) -> None:
    declare(Mirror)
    with pytest.raises(InvalidBackend) as caught:
        create_communicator("miror", environ={})
    assert caught.value.available == (*(kind.value for kind in BackendKind), "mirror")


def test_a_package_that_raises_is_named(declare: Callable[..., None]) -> None:
    def connect(environ: Mapping[str, str]) -> object:
        raise KeyError("MIRROR_HOST")

    declare(connect)
    with pytest.raises(
        InitializationFailed, match="mirrors_module:connect: KeyError: 'MIRROR_HOST'"
    ) as caught:
        create_communicator("mirror", environ={})
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_is_no_backend_is_refused(declare: Callable[..., None]) -> None:
    declare(lambda environ: object())
    text = "expected a Communicator that is a SharedMemoryProvider, got object. Derive it from pycobre.comm.Backend"
    with pytest.raises(InitializationFailed, match=text):
        create_communicator("mirror", environ={})


def test_several_ranks_announced_to_it_with_one(declare: Callable[..., None]) -> None:
    declare(Mirror)
    with pytest.raises(InitializationFailed, match="PMI_SIZE announces 4 ranks, but this backend has 1"):
        create_communicator("mirror", environ={"PMI_SIZE": "4"})


def test_every_own_backend_is_a_backend() -> None:
    with create_communicator(environ={}) as comm:
        assert isinstance(comm, Backend)
