"""How the classes of a case are declared: frozen, keyword-only, and the schema of their own file section.

The same class is what Python code constructs and what a JSON section must look like (`pycobre.hydro.files`).
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from pycobre._util.frozen import frozen

__all__ = ["RECORDS", "Tagged", "file_key", "record"]

T = TypeVar("T")

RECORDS: dict[str, type[Any]] = {}
"""Every record by its name."""


def file_key(name: str) -> str:
    """The key of a field in a file: `lambda_` and `from_` stand for words that Python keeps to itself."""
    return name.removesuffix("_")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen keyword-only dataclass that can be read from JSON."""
    made = frozen(kw_only=True)(cls)
    RECORDS[cls.__name__] = made
    return made


class Tagged:
    """Marks a union whose members differ by the value of one key: `Annotated[A | B, Tagged("method")]`."""

    def __init__(self, key: str) -> None:
        self.key = key
