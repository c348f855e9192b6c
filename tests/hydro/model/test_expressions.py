"""The language of generic constraints."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycobre.hydro.model.expressions import ExpressionError, Linear, Term, Variable, parse

NONE: dict[str, str] = {}


def test_terms_with_signs_coefficients_and_arguments() -> None:
    found = parse(
        "2.5 * thermal_generation(5) - hydro_generation(3, 1) + 1e2*hydro_turbined(7, bus=2)",
        frozenset(),
        NONE,
    )
    assert found == Linear(
        (
            Term(2.5, (), Variable("thermal_generation", 5)),
            Term(-1.0, (), Variable("hydro_generation", 3, block=1)),
            Term(100.0, (), Variable("hydro_turbined", 7, bus=2)),
        )
    )


def test_relations_parameters_and_named_expressions() -> None:
    found = parse("@p * line_exchange(0) >= 2 * @q - 1", frozenset({"p", "q"}), NONE)
    assert found.relation == ">="
    assert found.terms == (Term(1.0, ("p",), Variable("line_exchange", 0)),)
    assert found.right == (Term(2.0, ("q",)), Term(-1.0))
    nested = {"sum": "bus_deficit(0) + bus_deficit(1)", "twice": "2 * @sum"}
    assert parse("-@twice", frozenset(), nested).terms == (
        Term(-2.0, (), Variable("bus_deficit", 0)),
        Term(-2.0, (), Variable("bus_deficit", 1)),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("thermal_generation(5) +", r"position 24: expected a number, a variable or @name, got the end"),
        (
            "thermal_generatoin(5)",
            r"expected a known variable, got thermal_generatoin; did you mean thermal_generation\?",
        ),
        ("hydro_storage(1, 0)", r"expected no block for hydro_storage"),
        ("thermal_generation(1, bus=2)", r"expected no bus for thermal_generation"),
        ("thermal_generation(x)", r"expected an integer id, got 'x\)'"),
        ("thermal_generation(1) * thermal_generation(2)", r"expected at most one variable in a product"),
        ("@nobody", r"expected a declared parameter or expression, and @nobody is neither"),
        ("@loop", r"expected no expression that needs itself"),
        ("bus_excess(0) <= 1 <= 2", r"expected the end of the expression, got '<= 2'"),
        ("bus_excess(0) % 2", r"position 15: expected a number, a name or an operator, got '% 2'"),
        ("", r"expected a number, a variable or @name, got the end"),
        ("bus_excess 0", r"expected '\(', got '0'"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        parse(text, frozenset(), {"loop": "2 * @loop"})


@given(st.text(alphabet="@+-*()=<>,. 0123456789abus_excessline", max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        parse(text, frozenset({"a"}), {"b": "bus_excess(0)"})
