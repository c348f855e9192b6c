"""Linear expressions whose numbers may be random: `x.out == x.in_ - h + inflow`, `price * g`.

One class serves variables, noise and everything made of them. A coefficient is an `Amount`: a number, or an
array with one axis for each independent source of noise it depends on, so that any arithmetic of noises is
done once, by broadcasting, and means the same in every opening.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError

__all__ = ["Amount", "Constraint", "Expression", "Number"]

Number: TypeAlias = "int | float | np.number[Any]"
Operation: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@frozen(eq=False)
class Amount:
    """A number that may depend on the noise: `values` has one axis for each source in `axes` (ascending)."""

    axes: tuple[int, ...]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, number: Number) -> Amount:
        return cls((), np.array(float(number)))

    @property
    def random(self) -> bool:
        return bool(self.axes)

    @property
    def zero(self) -> bool:
        return not self.values.any()

    def combine(self, other: Amount, operation: Operation) -> Amount:
        axes = tuple(sorted({*self.axes, *other.axes}))
        return Amount(axes, operation(self._along(axes), other._along(axes)))

    def over(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Return the value in every opening of the product of all sources, the first source slowest."""
        return np.broadcast_to(self._along(tuple(range(len(sizes)))), tuple(sizes)).reshape(-1)

    def _along(self, axes: tuple[int, ...]) -> NDArray[np.float64]:
        lengths = dict(zip(self.axes, self.values.shape, strict=True))
        return self.values.reshape([lengths.get(axis, 1) for axis in axes])


class Constraint:
    """`expression (==, <=, >=) 0`, waiting for `Stage.add`."""

    __slots__ = ("expression", "relation")

    def __init__(self, expression: Expression, relation: str) -> None:
        self.expression = expression
        self.relation = relation

    def __bool__(self) -> NoReturn:
        raise ProblemError(
            "a constraint has no truth value: `a <= x <= b` and `if x == y` do not work on variables. "
            "Use `sp.between(a, x, b)`, or add one constraint for each side."
        )


class Expression:
    """Σ coefficient · variable + constant, made by `Stage` and by arithmetic.

    Products are allowed while one side holds no variable; comparing two expressions gives a Constraint.
    """

    __slots__ = ("constant", "owner", "terms")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy scalars leave the arithmetic to us

    def __init__(self, owner: object, terms: Mapping[int, Amount], constant: Amount) -> None:
        self.owner = owner
        self.terms = terms
        self.constant = constant

    def __repr__(self) -> str:
        return f"<expression of {len(self.terms)} variable{'' if len(self.terms) == 1 else 's'}>"

    def __add__(self, other: Operand) -> Expression:
        return self._sum(other, operator.add)

    def __radd__(self, other: Operand) -> Expression:
        return self._sum(other, operator.add)

    def __sub__(self, other: Operand) -> Expression:
        return self._sum(other, operator.sub)

    def __rsub__(self, other: Operand) -> Expression:
        return (-self)._sum(other, operator.add)

    def __neg__(self) -> Expression:
        return self._scaled(Amount.of(-1.0), operator.mul)

    def __pos__(self) -> Expression:
        return self

    def __mul__(self, other: Operand) -> Expression:
        factor = self._operand(other)
        if self.terms and factor.terms:
            raise ProblemError(
                "product of two variables: expected a linear expression, got a quadratic one. "
                "Multiply variables by numbers and noise only."
            )
        variables, amount = (self, factor) if self.terms else (factor, self)
        product = variables._scaled(amount.constant, operator.mul)
        return Expression(self._joined(factor), product.terms, product.constant)

    def __rmul__(self, other: Operand) -> Expression:
        return self * other

    def __truediv__(self, other: Operand) -> Expression:
        divisor = self._operand(other)
        if divisor.terms:
            raise ProblemError(
                "division by a variable: expected a linear expression, got a fraction. "
                "Divide by numbers and noise only."
            )
        if not divisor.constant.values.all():
            raise ProblemError("division by zero: expected a divisor that is not 0 in any opening, got 0.")
        quotient = self._scaled(divisor.constant, operator.truediv)
        return Expression(self._joined(divisor), quotient.terms, quotient.constant)

    def __rtruediv__(self, other: Operand) -> Expression:
        return self._operand(other) / self

    def __eq__(self, other: Operand) -> Constraint:  # type: ignore[override]
        return Constraint(self - other, "==")

    def __le__(self, other: Operand) -> Constraint:
        return Constraint(self - other, "<=")

    def __ge__(self, other: Operand) -> Constraint:
        return Constraint(self - other, ">=")

    def _operand(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            return other
        if isinstance(other, int | float | np.number):
            return Expression(None, {}, Amount.of(other))
        raise ProblemError(
            f"expression: expected a number, a variable or noise, got {type(other).__name__}. "
            "Combine arrays element by element."
        )

    def _joined(self, other: Expression) -> object:
        if self.owner is not None and other.owner is not None and self.owner is not other.owner:
            raise ProblemError(
                "expression: expected variables and noise of one node, got them of two. "
                "Carry values between nodes with states."
            )
        return other.owner if self.owner is None else self.owner

    def _sum(self, other: Operand, operation: Operation) -> Expression:
        right = self._operand(other)
        terms = dict(self.terms)
        zero = Amount.of(0.0)
        for column, amount in right.terms.items():
            terms[column] = terms.get(column, zero).combine(amount, operation)
        return Expression(self._joined(right), terms, self.constant.combine(right.constant, operation))

    def _scaled(self, factor: Amount, operation: Operation) -> Expression:
        terms = {column: amount.combine(factor, operation) for column, amount in self.terms.items()}
        return Expression(self.owner, terms, self.constant.combine(factor, operation))


Operand: TypeAlias = "Expression | Number"
