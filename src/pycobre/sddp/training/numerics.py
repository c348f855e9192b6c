"""The numbers of a problem before training: warnings that a person should see before waiting for results."""

from __future__ import annotations

from pycobre.sddp.plan import Plan
from pycobre.solver import Engine

__all__ = ["numerical_warnings"]


def numerical_warnings(plan: Plan, engine: Engine) -> tuple[str, ...]:
    """What the solver's numerical reports warn of, each warning once, with the first node that has it."""
    by_model: dict[int, tuple[str, ...]] = {}
    nodes: dict[str, list[str]] = {}
    for node in plan.nodes:
        if id(node.model) not in by_model:
            by_model[id(node.model)] = engine.report(node.model).warnings
        for warning in by_model[id(node.model)]:
            nodes.setdefault(warning, []).append(node.name)
    return tuple(
        f"node {names[0]!r}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {warning}."
        for warning, names in nodes.items()
    )
