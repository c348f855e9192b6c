"""Linear expressions that users write in generic constraints.

    expression ::= side [("<=" | ">=" | "==") side]
    side       ::= ["+" | "-"] term (("+" | "-") term)*
    term       ::= factor ("*" factor)*
    factor     ::= number | "@" name | variable "(" id ["," block] ["," "bus" "=" id] ")"

`@name` is a scalar parameter or another expression. A term has at most one variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pycobre._util.frozen import frozen
from pycobre._util.suggest import nearest

__all__ = ["BLOCK_VARIABLES", "STAGE_VARIABLES", "ExpressionError", "Linear", "Term", "Variable", "parse"]

STAGE_VARIABLES = frozenset({"hydro_storage", "hydro_evaporation", "hydro_withdrawal"})
BLOCK_VARIABLES = frozenset(
    {
        "hydro_turbined",
        "hydro_spillage",
        "hydro_diversion",
        "hydro_outflow",
        "hydro_generation",
        "thermal_generation",
        "line_direct",
        "line_reverse",
        "line_exchange",
        "bus_deficit",
        "bus_excess",
        "pumping_flow",
        "pumping_power",
        "contract_import",
        "contract_export",
        "non_controllable_generation",
        "non_controllable_curtailment",
    }
)
_WITH_BUS = frozenset({"hydro_turbined", "hydro_generation"})


class ExpressionError(ValueError):
    """An expression that cannot be read; the text says where and what was expected.

    The checks turn it into a finding; it never leaves this package.
    """


@frozen()
class Variable:
    name: str
    id: int
    block: int | None = None
    bus: int | None = None


@frozen()
class Term:
    """`coefficient` × the parameters named × the variable (None: a constant)."""

    coefficient: float
    parameters: tuple[str, ...] = ()
    variable: Variable | None = None


@frozen()
class Linear:
    """Terms on the left; `relation` and the terms on its right where the expression has one."""

    terms: tuple[Term, ...]
    relation: str | None = None
    right: tuple[Term, ...] = ()


def parse(text: str, parameters: frozenset[str], expressions: Mapping[str, str]) -> Linear:
    """Read an expression. `@name` must be one of the parameters or expressions."""
    return _Parser(text, parameters, expressions, ()).read()


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark><=|>=|==|[-+*(),=@]))"
)


class _Parser:
    def __init__(
        self, text: str, parameters: frozenset[str], expressions: Mapping[str, str], within: tuple[str, ...]
    ) -> None:
        self._text, self._parameters, self._expressions, self._within = text, parameters, expressions, within
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                raise self._error(start, "a number, a name or an operator")
            kind = str(found.lastgroup)
            self._tokens.append((kind, found[kind], found.start(kind)))
            at = found.end()
        self._tokens.append(("end", "the end", len(text)))
        self._at = 0

    def read(self) -> Linear:
        left = self._side()
        if self._peek() in ("<=", ">=", "=="):
            relation = self._take()
            linear = Linear(tuple(left), relation, tuple(self._side()))
        else:
            linear = Linear(tuple(left))
        if self._kind() != "end":
            raise self._error(self._place(), "the end of the expression")
        return linear

    def _side(self) -> list[Term]:
        terms: list[Term] = []
        sign = 1.0
        if self._peek() in ("+", "-"):
            sign = -1.0 if self._take() == "-" else 1.0
        while True:
            terms += [replace(term, coefficient=sign * term.coefficient) for term in self._term()]
            if self._peek() not in ("+", "-"):
                return terms
            sign = -1.0 if self._take() == "-" else 1.0

    def _term(self) -> list[Term]:
        """One product; a named expression in it multiplies out to several terms."""
        product = [Term(1.0)]
        while True:
            place = self._place()
            factor = self._factor()
            joined = [_times(a, b) for a in product for b in factor]
            if any(term is None for term in joined):
                raise self._error(place, "at most one variable in a product")
            product = [term for term in joined if term is not None]
            if self._peek() != "*":
                return product
            self._take()

    def _factor(self) -> list[Term]:
        kind, place = self._kind(), self._place()
        if kind == "number":
            return [Term(float(self._take()))]
        if self._peek() == "@":
            self._take()
            return self._reference(place)
        if kind == "name":
            return [Term(1.0, (), self._variable())]
        raise self._error(place, "a number, a variable or @name")

    def _reference(self, place: int) -> list[Term]:
        if self._kind() != "name":
            raise self._error(self._place(), "a name after @")
        name = self._take()
        if name in self._parameters:
            return [Term(1.0, (name,))]
        if name not in self._expressions:
            raise self._error(place, f"a declared parameter or expression, and @{name} is neither")
        if name in self._within:
            raise self._error(place, f"no expression that needs itself, as @{name} does")
        inner = _Parser(
            self._expressions[name], self._parameters, self._expressions, (*self._within, name)
        ).read()
        if inner.relation is not None:
            raise self._error(place, f"no relation inside @{name}")
        return list(inner.terms)

    def _variable(self) -> Variable:
        place, name = self._place(), self._take()
        if name not in BLOCK_VARIABLES | STAGE_VARIABLES:
            near = nearest(name, BLOCK_VARIABLES | STAGE_VARIABLES)
            hint = f"; did you mean {near}?" if near else ""
            raise self._error(place, f"a known variable, got {name}{hint}", said=True)
        self._need("(")
        found = Variable(name, self._integer())
        while self._peek() == ",":
            self._take()
            if self._kind() == "name" and self._peek() == "bus":
                if name not in _WITH_BUS:
                    raise self._error(self._place(), f"no bus for {name}")
                self._take()
                self._need("=")
                found = replace(found, bus=self._integer())
            elif name in STAGE_VARIABLES:
                raise self._error(self._place(), f"no block for {name}, which belongs to the stage")
            else:
                found = replace(found, block=self._integer())
        self._need(")")
        return found

    def _integer(self) -> int:
        place = self._place()
        if self._kind() != "number" or not self._peek().isdigit():
            raise self._error(place, "an integer id")
        return int(self._take())

    def _need(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._error(self._place(), f"{mark!r}")
        self._take()

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _peek(self) -> str:
        return self._tokens[self._at][1]

    def _place(self) -> int:
        return self._tokens[self._at][2]

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _error(self, place: int, expected: str, *, said: bool = False) -> ExpressionError:
        got = (
            ""
            if said
            else f", got {self._text[place : place + 12]!r}"
            if place < len(self._text)
            else ", got the end"
        )
        return ExpressionError(f"expression {self._text!r}, position {place + 1}: expected {expected}{got}")


def _times(a: Term, b: Term) -> Term | None:
    if a.variable is not None and b.variable is not None:
        return None
    return Term(a.coefficient * b.coefficient, (*a.parameters, *b.parameters), a.variable or b.variable)
