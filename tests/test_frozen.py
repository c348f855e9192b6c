"""Frozen classes behave as the standard library's frozen dataclasses do."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from pycobre._util.frozen import frozen


@frozen()
class Point:
    """A point."""

    x: int
    y: float = 2.0
    tags: tuple[str, ...] = field(default_factory=tuple)
    note: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True)
class Standard:
    x: int
    y: float = 2.0
    tags: tuple[str, ...] = field(default_factory=tuple)
    note: str = field(default="", repr=False, compare=False)


@frozen(kw_only=True)
class Named:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("negative")


@frozen(kw_only=True)
class Longer(Named):
    b: int = 3


@frozen(eq=False, repr=False)
class Bare:
    a: int


@pytest.mark.parametrize(
    "given", [((1,), {}), ((1, 3.0, ("a",)), {"note": "n"}), ((), {"x": 5, "tags": ("b",)})]
)
def test_it_is_made_compared_hashed_and_shown_as_a_dataclass(given: tuple[Any, dict[str, Any]]) -> None:
    values, named = given
    mine, theirs = Point(*values, **named), Standard(*values, **named)
    assert asdict(mine) == asdict(theirs)  # type: ignore[call-overload]
    assert repr(mine) == repr(theirs).replace("Standard", "Point")
    assert mine == Point(*values, **named)
    assert mine == replace(mine, note="not compared")  # type: ignore[type-var]
    assert mine != replace(mine, x=-1)  # type: ignore[type-var]
    assert mine != theirs
    assert hash(mine) == hash(Point(*values, **named))
    assert [f.name for f in fields(mine)] == [f.name for f in fields(theirs)]  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(mine)) == copy.deepcopy(mine) == mine
    assert dataclasses.is_dataclass(mine)


def test_nothing_can_be_changed() -> None:
    point = Point(1)
    for change in (
        lambda: setattr(point, "x", 2),
        lambda: delattr(point, "x"),
        lambda: setattr(point, "z", 2),
    ):
        with pytest.raises(FrozenInstanceError):
            change()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Point(), "expected a value for 'x'"),
        (lambda: Point(1, z=2), "there is no 'z'"),
        (lambda: Point(1, x=2), "'x' is given twice"),
        (lambda: Point(1, 2.0, (), "", 5), "at most 4 positional values, got 5"),
        (lambda: Named(1), "at most 0 positional values, got 1"),
    ],
)
def test_wrong_calls_are_type_errors(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_fields_are_inherited_and_checks_run() -> None:
    assert Longer(a=1) == Longer(a=1, b=3) != Longer(a=2)
    with pytest.raises(ValueError, match="negative"):
        Longer(a=-1)


def test_without_comparison_it_is_itself_alone() -> None:
    assert Bare(1) != Bare(1)
    assert hash(Bare(1)) != 0
    assert "object at" in repr(Bare(1))


def test_help_shows_the_signature() -> None:
    shown = str(inspect.signature(Point))
    assert shown.startswith("(x: int, y: float = 2.0, tags: tuple[str, ...] = ")
    assert str(inspect.signature(Longer)) == "(*, a: int, b: int = 3)"
    assert Point.__doc__ == "A point."
