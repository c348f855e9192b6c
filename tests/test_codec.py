"""Frozen classes as JSON: everything comes back, nothing else is built, and errors name the place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycobre._util.codec import Codec
from pycobre._util.frozen import frozen
from pycobre._util.suggest import did_you_mean, nearest
from pycobre.errors import OptionError


@frozen()
class Leaf:
    value: float = 0.0
    day: date | None = None


@frozen()
class Tree:
    leaves: tuple[Leaf, ...] = ()
    named: Mapping[str, Leaf] | None = None
    text: str = ""


class Foreign:
    pass


CODEC = Codec(
    {"Leaf": Leaf, "Tree": Tree},
    tag="type",
    root="tree",
    error=OptionError,
    foreign="expected a plant, got {}. Use a plant.",
)
LEAVES = st.builds(Leaf, st.floats(allow_nan=False), st.none() | st.dates())
TREES = st.builds(
    Tree,
    st.lists(LEAVES).map(tuple),
    st.none() | st.dictionaries(st.text(), LEAVES),
    st.text(),
)


@given(TREES)
def test_every_bit_comes_back(tree: Tree) -> None:
    assert CODEC.decode(json.loads(json.dumps(CODEC.encode(tree)))) == tree


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"type": "Leef"}, "tree: expected one of Leaf, Tree, got 'Leef'. Did you mean 'Leaf'?"),
        ({"type": "os.system"}, "tree: expected one of Leaf, Tree, got 'os.system'. Write it again"),
        ({"value": 1.0}, "tree: expected one of Leaf, Tree, got None."),
        (
            {"type": "Tree", "leaves": [{"type": "Leaf"}, {"type": "Leaf", "valeu": 1.0}]},
            "tree.leaves[1].valeu: expected a field of Leaf, got another. Did you mean 'value'?",
        ),
        ({"type": "Leaf", "day": {"type": "date"}}, "tree.day: expected a date, got {'type': 'date'}."),
        ({"type": "Tree", "named": {"type": "mapping", "items": 3}}, "tree.named: expected a mapping"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(data: object, text: str) -> None:
    with pytest.raises(OptionError) as raised:
        CODEC.decode(data)
    assert text in str(raised.value)


def test_objects_of_other_classes_are_refused() -> None:
    with pytest.raises(
        OptionError, match=r"tree\.leaves\[0\]: expected a plant, got Foreign\. Use a plant\."
    ):
        CODEC.encode(Tree(leaves=(Foreign(),)))  # type: ignore[arg-type]


def test_a_class_of_the_same_name_is_another_class() -> None:
    other = frozen()(type("Leaf", (), {"__annotations__": {"value": "float"}}))
    with pytest.raises(OptionError, match="expected a plant, got Leaf"):
        CODEC.encode(other(1.0))


def test_suggestions_do_not_depend_on_the_order_of_names() -> None:
    assert nearest("vlaue", {"value", "valve"}) == nearest("vlaue", ["valve", "value"])
    assert nearest("zzz", ["value"]) is None
    assert did_you_mean("valeu", ["value"]) == " Did you mean 'value'?"
    assert did_you_mean("zzz", ["value"]) == ""
    assert did_you_mean("zzz", ["value"], "There are: value.") == " There are: value."
