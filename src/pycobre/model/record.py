"""How the nouns of this room are declared: frozen, keyword-only, and the schema of their own file section.

The same class is what Python code constructs and what a JSON section must look like. Reading is strict
(unknown keys, wrong types and non-finite numbers are errors); the validation library is imported only when
a file is read.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from pycobre.frozen import frozen

__all__ = ["RECORDS", "Tagged", "record"]

T = TypeVar("T")

RECORDS: dict[str, type[Any]] = {}
"""Every record by its name."""


def _key(name: str) -> str:
    """The key of a field in a file: `lambda_` and `from_` stand for words that Python keeps to itself."""
    return name.removesuffix("_")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen keyword-only dataclass that can be read from JSON."""
    made = frozen(kw_only=True)(cls)
    made.__pydantic_config__ = {  # type: ignore[attr-defined]
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "alias_generator": _key,
    }
    RECORDS[cls.__name__] = made
    return made


class Tagged:
    """Marks a union whose members differ by the value of one key: `Annotated[A | B, Tagged("method")]`."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from typing import Annotated

        from pydantic import Field

        return handler.generate_schema(Annotated[source, Field(discriminator=self.key)])
