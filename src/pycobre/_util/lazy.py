"""Names of a package that are loaded when they are first used, so that a package costs what is asked of it.

Workers are started before the modules that their work needs are loaded here, and load them at the same time.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__` for names in modules of it.

    No name may be that of a module of the package: which of the two it is would depend on what was loaded before.
    """
    where = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return load, names
