"""Tables of numbers: a frozen dataclass of equally long columns, sorted by its key.

As with records, the class is both what Python code constructs and the schema of its Parquet file.
"""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util.arrays import F64, I32
from pycobre._util.frozen import frozen

__all__ = ["DAY", "F64", "I32", "NO_ID", "Table", "counts", "dates", "floats", "ids"]

DAY = NDArray[np.datetime64]

NO_ID = -(2**31)
"""An id column's null."""


def ids(*, optional: bool = False, always: bool = False) -> Any:
    """A column of integers; optional ones may be absent or hold nulls (`NO_ID`).

    Columns of nulls are not written, but for those that are `always` there (Cobre wants them).
    """
    return field(
        default=None, metadata={"dtype": "int32", "optional": optional, "null": NO_ID, "always": always}
    )


def counts() -> Any:
    """A column of numbers from 0 on, which files hold without a sign (Cobre reads no other)."""
    return field(
        default=None, metadata={"dtype": "int32", "optional": False, "null": NO_ID, "stored": "uint32"}
    )


def floats(*, optional: bool = False, always: bool = False) -> Any:
    """A column of numbers; optional ones may be absent or hold nulls (NaN); `always` as for ids."""
    return field(
        default=None, metadata={"dtype": "float64", "optional": optional, "null": np.nan, "always": always}
    )


def dates() -> Any:
    """A column of days."""
    return field(default=None, metadata={"dtype": "datetime64[D]", "optional": False, "null": None})


@frozen(eq=False, kw_only=True)
class Table:
    """Base of all tables. Construction converts, checks lengths, sorts by `KEY` and freezes the arrays."""

    KEY: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        columns = {f.name: self._convert(f, getattr(self, f.name)) for f in fields(self)}
        given = {name: c.size for name, c in columns.items() if c is not None}
        length = max(given.values(), default=0)
        wrong = {name: size for name, size in given.items() if size != length}
        if wrong:
            raise ValueError(
                f"{type(self).__name__}: expected columns of {length} rows, got {wrong}. "
                "Give every column one value per row."
            )
        for f in fields(self):
            if columns[f.name] is None:
                if not f.metadata["optional"] and length:
                    raise ValueError(f"{type(self).__name__}: column {f.name} is missing.")
                columns[f.name] = np.full(length, f.metadata["null"] or 0, dtype=f.metadata["dtype"])
        order = np.lexsort([_column(columns[name]) for name in reversed(self.KEY)]) if length else slice(None)
        for name, column in columns.items():
            ordered = _column(column)[order]
            ordered.flags.writeable = False
            object.__setattr__(self, name, ordered)

    @staticmethod
    def _convert(f: Field[Any], values: ArrayLike | None) -> NDArray[Any] | None:
        return None if values is None else np.array(values, dtype=f.metadata["dtype"]).reshape(-1)

    def __len__(self) -> int:
        return int(getattr(self, fields(self)[0].name).size)

    def rows_of(self, first: int) -> slice:
        """The rows whose first key has this value: they stand together, because rows are sorted."""
        column = getattr(self, self.KEY[0])
        key = column.dtype.type(first)  # of the column's own type, or searching would copy it
        return slice(int(column.searchsorted(key)), int(column.searchsorted(key, side="right")))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def empty(cls) -> Self:
        return cls()


def _column(values: NDArray[Any] | None) -> NDArray[Any]:
    assert values is not None
    return values


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
