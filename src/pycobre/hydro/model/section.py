"""How the sections of a case are declared: once each, on their field of `Case`, with the file that holds them."""

from __future__ import annotations

from dataclasses import MISSING, Field, field
from typing import Any, TypeVar

from pycobre._util.frozen import frozen
from pycobre.hydro.model.table import Table

__all__ = ["Section", "section", "section_of", "table"]

T = TypeVar("T", bound=Table)

_PLACE = "section"  # of a field's metadata


@frozen()
class Section:
    """One field of a case and its place on disk."""

    name: str  #: of the field
    file: str  #: relative to the case directory
    key: str  #: of the file's root object; "": the section is the whole file
    required: bool  #: whether the file has to be there
    optional: bool  #: whether the key may be left out
    nullable: bool  #: whether the key may be null, which means its default
    table: type[Table] | None  #: of a Parquet file


def section(
    file: str,
    key: str = "",
    *,
    default: Any = MISSING,
    required: bool = False,
    optional: bool = False,
    nullable: bool = False,
) -> Any:
    """A section in a JSON file, under a key of its root object or all of it."""
    return field(default=default, metadata={_PLACE: (file, key, required, optional, nullable, None)})


def table(file: str, cls: type[T]) -> T:
    """A section that is a Parquet file; without the file it is empty."""
    made: T = field(default_factory=cls.empty, metadata={_PLACE: (file, "", False, False, False, cls)})
    return made


def section_of(each: Field[Any]) -> Section | None:
    """What a field of `Case` was declared as; None for one that is in no file."""
    place = each.metadata.get(_PLACE)
    return None if place is None else Section(each.name, *place)
