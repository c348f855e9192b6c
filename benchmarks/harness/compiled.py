"""Interpreters that find their modules compiled, as every installation has them from its second start on."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["compiled_modules"]

_FORBIDS, _WHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"


@contextmanager
def compiled_modules() -> Iterator[None]:
    """Let interpreters that are started inside keep what they compile, if need be in a directory of their own.

    An environment that forbids bytecode has every process of a checkout compile all its modules anew, which takes
    longer than loading them and says nothing about the software. Whoever measures starts each kind once before.
    """
    if not sys.dont_write_bytecode:
        yield
        return
    before = {name: os.environ.get(name) for name in (_FORBIDS, _WHERE)}
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        os.environ.pop(_FORBIDS, None)
        os.environ[_WHERE] = directory
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
