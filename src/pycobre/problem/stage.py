"""What a person writes down for one node: states, variables, noise, rows and an objective."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pycobre._util.frozen import frozen
from pycobre.errors import ProblemError
from pycobre.problem.expression import Amount, Constraint, Expression, Number, Operand

__all__ = ["Column", "JointNoise", "Row", "Source", "Stage", "StateVariable"]

MAX_OPENINGS = 1_000_000


@frozen(eq=False)
class StateVariable:
    """A state at one node: what came in (given) and what goes out (decided)."""

    name: str
    in_: Expression
    out: Expression


@frozen(eq=False)
class JointNoise:
    """Several quantities of one joint support; take them apart by name, by position or by unpacking."""

    names: tuple[str, ...]
    components: tuple[Expression, ...]

    def __getitem__(self, key: str | int) -> Expression:
        if isinstance(key, int):
            return self.components[key]
        if key not in self.names:
            raise ProblemError(f"noise {key!r}: expected one of {', '.join(self.names)}. Check the spelling.")
        return self.components[self.names.index(key)]

    def __iter__(self) -> Iterator[Expression]:
        return iter(self.components)

    def __len__(self) -> int:
        return len(self.components)


@frozen(eq=False)
class Column:
    name: str
    lower: Amount
    upper: Amount


@frozen(eq=False)
class Row:
    """`lower ≤ Σ coefficient · column ≤ upper`."""

    name: str
    terms: Mapping[int, Amount]
    lower: Amount
    upper: Amount


@frozen(eq=False)
class Source:
    """One independent source of noise: outcomes[k, c] of its named components with probability[k]."""

    names: tuple[str, ...]
    outcomes: NDArray[np.float64]
    probability: NDArray[np.float64]


Rows: TypeAlias = "Sequence[Mapping[str, Number]] | Sequence[Sequence[Number]] | NDArray[np.float64]"


class Stage:
    """The subproblem of one node, filled in by the author's function.

    Every variable and every state is ≥ 0 unless `lower` says otherwise. Bounds, right-hand sides,
    coefficients and costs may be noise, or arithmetic of noise.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self.sources: list[Source] = []
        self.states: dict[str, tuple[float | None, int, int]] = {}
        self.objective: Expression = self._constant(0.0)
        self.sense: str | None = None

    def state(
        self,
        name: str,
        *,
        initial: Number | None = None,
        lower: Operand = 0.0,
        upper: Operand = math.inf,
    ) -> StateVariable:
        """Declare a state; `lower` and `upper` limit what goes out.

        `initial` is what the first node receives; it may be given at one node or, the same, at all.
        """
        if name in self.states:
            raise self.error(f"state {name!r}", "a name of its own, got it twice. Rename one")
        incoming = self._column(f"{name}.in", -math.inf, math.inf)
        outgoing = self._column(f"{name}.out", lower, upper)
        value = None if initial is None else float(initial)
        self.states[name] = (value, len(self.columns) - 2, len(self.columns) - 1)
        return StateVariable(name, incoming, outgoing)

    def variable(
        self, name: str | None = None, *, lower: Operand = 0.0, upper: Operand = math.inf
    ) -> Expression:
        """Declare a decision of this node."""
        return self._column(name or f"_c{len(self.columns)}", lower, upper)

    def variables(
        self, names: Sequence[str], *, lower: Operand = 0.0, upper: Operand = math.inf
    ) -> list[Expression]:
        """Declare several decisions with the same bounds, one for each name."""
        if isinstance(names, str):
            names = names.split()
        return [self.variable(name, lower=lower, upper=upper) for name in names]

    def noise(
        self, values: ArrayLike, probability: ArrayLike | None = None, *, name: str | None = None
    ) -> Expression:
        """Declare a random quantity with the given outcomes, uniform unless `probability` is given.

        Quantities of separate calls are independent: the openings of the node are all combinations. What
        happens together belongs into one `joint_noise`.
        """
        outcomes = np.array(values, dtype=np.float64)
        label = name or f"noise{sum(len(source.names) for source in self.sources)}"
        if outcomes.ndim != 1:
            raise self.error(f"noise {label!r}", f"a list of numbers, got {outcomes.ndim} dimensions")
        return self._source((label,), outcomes[:, None], probability)[0]

    def joint_noise(
        self, rows: Rows, probability: ArrayLike | None = None, *, names: Sequence[str] | None = None
    ) -> JointNoise:
        """Declare several random quantities with one joint support: one row for each outcome.

        A row is a mapping from names to numbers, or a sequence of numbers (then `names` may name them).
        """
        first = next(iter(rows), None)
        if isinstance(first, Mapping):
            labels = tuple(first)
            wrong = [row for row in rows if not isinstance(row, Mapping) or set(row) != set(labels)]
            if wrong:
                raise self.error("joint noise", f"the names {sorted(labels)} in every row, got {wrong[0]}")
            table: Any = [[row[label] for label in labels] for row in rows]
        else:
            table = rows
            if len({len(row) for row in rows}) > 1:
                raise self.error(
                    "joint noise",
                    f"rows of one length, got lengths {sorted({len(row) for row in rows})}",
                )
            start = sum(len(source.names) for source in self.sources)
            width = 0 if first is None else len(first)
            labels = tuple(names or (f"noise{start + k}" for k in range(width)))
            if len(labels) != width:
                raise self.error("joint noise", f"{width} names for {width} columns, got {len(labels)}")
        outcomes = np.array(table, dtype=np.float64).reshape(len(table), len(labels))
        return JointNoise(labels, self._source(labels, outcomes, probability))

    def add(self, constraint: Constraint, name: str | None = None) -> None:
        """Add a row, written as a comparison of two expressions."""
        where = f"row {name or len(self.rows)!r}"
        if not isinstance(constraint, Constraint):
            raise self.error(
                where,
                f"a comparison of expressions, got {constraint!r}. Write `x == y`, `x <= y` or `x >= y` "
                "with a variable in it",
            )
        expression = constraint.expression
        side = (-self._own(expression)).constant
        self._row(
            name,
            where,
            expression,
            Amount.of(-math.inf) if constraint.relation == "<=" else side,
            Amount.of(math.inf) if constraint.relation == ">=" else side,
        )

    def between(
        self, lower: Operand, expression: Expression, upper: Operand, name: str | None = None
    ) -> None:
        """Add the row `lower <= expression <= upper`."""
        where = f"row {name or len(self.rows)!r}"
        shift = self._own(expression).constant
        sides = [self.amount(side, where).combine(shift, np.subtract) for side in (lower, upper)]
        self._row(name, where, expression, *sides)

    def minimise(self, cost: Operand) -> None:
        """Set what this node pays."""
        self._objective(cost, "minimise")

    def maximise(self, reward: Operand) -> None:
        """Set what this node earns."""
        self._objective(reward, "maximise")

    def _objective(self, amount: Operand, sense: str) -> None:
        if self.sense is not None:
            raise self.error("objective", "one, got a second. Add them up")
        self.sense = sense
        self.objective = self._own(self.objective + amount)

    def _column(self, name: str, lower: Operand, upper: Operand) -> Expression:
        where = f"bounds of column {name!r}"
        self.columns.append(Column(name, self.amount(lower, where), self.amount(upper, where)))
        return Expression(self, {len(self.columns) - 1: Amount.of(1.0)}, Amount.of(0.0))

    def _row(
        self, name: str | None, where: str, expression: Expression, lower: Amount, upper: Amount
    ) -> None:
        terms = {column: amount for column, amount in expression.terms.items() if not amount.zero}
        if not terms:
            raise self.error(where, "at least one variable, got none")
        self.rows.append(Row(name or f"_r{len(self.rows)}", terms, lower, upper))

    def _source(
        self, names: tuple[str, ...], outcomes: NDArray[np.float64], probability: ArrayLike | None
    ) -> tuple[Expression, ...]:
        where = f"noise {', '.join(repr(name) for name in names)}"
        count = len(outcomes)
        if not count:
            raise self.error(where, "at least one outcome, got none")
        broken = np.flatnonzero(np.isnan(outcomes).any(axis=1))
        if broken.size:
            raise self.error(
                where, f"numbers in every outcome, got nan in outcome {broken[0]}. Look at the data"
            )
        weights = np.full(count, 1.0 / count) if probability is None else np.array(probability, np.float64)
        if weights.shape != (count,):
            raise self.error(where, f"{count} probabilities for {count} outcomes, got {weights.size}")
        taken = {name for source in self.sources for name in source.names}
        if taken.intersection(names) or len(set(names)) < len(names):
            raise self.error(where, "names of their own, got one twice. Rename one")
        openings = math.prod(len(source.outcomes) for source in self.sources) * count
        if openings > MAX_OPENINGS:
            raise self.error(
                where,
                f"at most {MAX_OPENINGS} combinations of independent outcomes, got {openings}. "
                "Sample a joint support",
            )
        axis = len(self.sources)
        self.sources.append(Source(names, outcomes, weights))
        return tuple(
            Expression(self, {}, Amount((axis,), outcomes[:, column].copy())) for column in range(len(names))
        )

    def amount(self, value: Operand, where: str) -> Amount:
        """Return the amount behind a number or noise; a variable has none."""
        if not isinstance(value, Expression):
            if not isinstance(value, int | float | np.number):
                raise self.error(where, f"a number or noise, got {type(value).__name__}")
            return Amount.of(value)
        if value.terms:
            raise self.error(where, "a number or noise, got a variable. Add a row instead")
        return self._own(value).constant

    def _own(self, expression: Expression) -> Expression:
        return expression + self._constant(0.0)

    def _constant(self, number: float) -> Expression:
        return Expression(self, {}, Amount.of(number))

    def error(self, what: str, expected: str) -> ProblemError:
        """Return an error about this node, for the caller to raise."""
        return ProblemError(f"node {self.name!r}: {what}: expected {expected}.")
