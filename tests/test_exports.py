"""Every public name exists, has a docstring, and is documented once, on the page of its package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import pycobre
import pycobre.comm

API = Path(__file__).parent.parent / "docs" / "reference" / "api"
#: Packages that are no library: a command line is used by typing.
NOT_A_LIBRARY = ("pycobre.__main__", "pycobre._", "pycobre.app.cli")

#: What code outside this repository may import.
CONTRACT = [
    "Communicator",
    "SharedMemoryProvider",
    "SharedRegion",
    "ReduceOp",
    "LocalBackend",
    "ShmBackend",
    "TcpBackend",
    "MpiBackend",
    "HeapRegion",
    "ShmRegion",
    "MpiRegion",
    "BackendKind",
    "TcpConfig",
    "ShmConfig",
    "create_communicator",
    "available_backends",
    "mpi_launch_detected",
    "CommError",
    "CollectiveFailed",
    "InvalidBufferSize",
    "InvalidRoot",
    "InvalidCommunicator",
    "AllocationFailed",
    "BackendError",
    "BackendNotAvailable",
    "InvalidBackend",
    "InitializationFailed",
    "MissingConfiguration",
]


def packages() -> list[str]:
    """The packages, and modules beside them at the top, that name what is public in them."""
    found = [info.name for info in pkgutil.iter_modules(pycobre.__path__, "pycobre.")]
    found += [info.name for info in pkgutil.walk_packages(pycobre.__path__, "pycobre.") if info.ispkg]
    libraries = sorted({name for name in found if not name.startswith(NOT_A_LIBRARY)})
    return [name[8:] for name in libraries if hasattr(importlib.import_module(name), "__all__")]


def home_of(value: object, package: str) -> str:
    """The package that defines a public object; constants belong to the package that exports them."""
    module = getattr(value, "__module__", None) or ""
    homes = [name for name in packages() if f"{module}.".startswith(f"pycobre.{name}.")]
    return max(homes, key=len) if homes else package


@pytest.mark.parametrize("package", ["", *packages()])
def test_names_exist_once_and_in_order(package):
    module = importlib.import_module(f"pycobre.{package}".rstrip("."))
    names = list(module.__all__)
    assert len(names) == len(set(names))
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing, f"pycobre.{package} exports {missing} and does not have them"
    assert set(names) <= set(dir(module))


@pytest.mark.parametrize("package", packages())
def test_every_public_name_has_a_docstring(package):
    module = importlib.import_module(f"pycobre.{package}")
    bare = []
    for name in module.__all__:
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)) or home_of(value, package) != package:
            continue
        if not inspect.getdoc(value) or (value.__doc__ or "").startswith(f"{name}("):
            bare.append(name)
    assert not bare, f"pycobre.{package}: no docstring: {bare}"


@pytest.mark.parametrize("package", packages())
def test_every_package_has_one_page_with_all_its_names(package):
    page = API / f"{package.replace('.', '-')}.md"
    assert page.exists(), f"write {page}, like the others: it lists the names by itself"
    everywhere = [
        path.name for path in API.glob("*.md") if f"automodule:: pycobre.{package}\n" in path.read_text()
    ]
    assert everywhere == [page.name]
    assert ":members:\n   :imported-members:" in page.read_text()


def test_every_name_is_public_in_its_home():
    """The page of a package shows what the package defines: a name exported elsewhere only would be on no page."""
    homes = {package: importlib.import_module(f"pycobre.{package}") for package in packages()}
    for package, module in homes.items():
        for name in module.__all__:
            home = home_of(getattr(module, name), package)
            assert home in homes, (
                f"pycobre.{package}.{name} is defined in pycobre.{home}, which exports nothing"
            )
            assert name in homes[home].__all__, f"pycobre.{package}.{name} is not in pycobre.{home}.__all__"


def test_every_name_of_the_contract_is_there():
    assert set(CONTRACT) <= set(pycobre.comm.__all__)
    for name in CONTRACT:
        assert getattr(pycobre.comm, name) is not None


def test_the_facade_is_short():
    assert len(Path(pycobre.__file__).read_text().splitlines()) <= 120
