"""Names that are loaded when they are first used: the right object whatever was loaded before."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from pycobre._util.lazy import lazy_names

PACKAGES = ["pycobre.comm", "pycobre.hydro.files", "pycobre.app"]


@pytest.mark.parametrize("name", PACKAGES)
def test_no_lazy_name_is_that_of_a_module(name: str) -> None:
    package = importlib.import_module(name)
    modules = {found.name for found in pkgutil.iter_modules(package.__path__)}
    loaded_at_once = {"write_case"} if name == "pycobre.hydro.files" else set()
    assert set(package.__all__) & modules == loaded_at_once
    for name in loaded_at_once:
        assert callable(getattr(package, name))


@pytest.mark.parametrize("name", PACKAGES)
def test_all_names_are_listed_before_they_are_loaded(name: str) -> None:
    package = importlib.import_module(name)
    assert set(package.__all__) <= set(dir(package))


def test_a_name_is_loaded_once_and_then_an_ordinary_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import pycobre.comm as package

    load, names = lazy_names(
        "pycobre.comm", {"tcp.wire": ("MAGIC_THAT_IS_NOT_THERE",), "region": ("HeapRegion",)}
    )
    monkeypatch.delitem(vars(package), "HeapRegion", raising=False)
    found = load("HeapRegion")
    assert found is vars(package)["HeapRegion"] is package.HeapRegion
    assert "MAGIC_THAT_IS_NOT_THERE" in names()
    with pytest.raises(AttributeError, match=r"module 'pycobre\.comm\.tcp\.wire' has no attribute"):
        load("MAGIC_THAT_IS_NOT_THERE")
    with pytest.raises(AttributeError, match=r"module 'pycobre\.comm' has no attribute 'Nobody'"):
        load("Nobody")
