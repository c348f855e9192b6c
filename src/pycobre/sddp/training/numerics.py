"""Warnings about numbers: those of a problem before training, and what solving its LPs took."""

from __future__ import annotations

from pycobre.sddp.plan import Plan
from pycobre.solver import Engine

__all__ = ["numerical_warnings", "recovery_warnings"]


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


def recovery_warnings(retries: int, rejected: int, uncertified: int) -> list[str]:
    """What a person should know of LPs that were not solved at the first attempt."""
    found = []
    if retries:
        found.append(
            f"some LPs did not end optimal at once: {retries} retries were needed (cold, another "
            "simplex, scaled, interior point). Look at the sizes of the problem's numbers."
        )
    if rejected:
        found.append(
            f"HiGHS called {rejected} answers optimal that failed the certificate (feasibility and objective "
            "against the LP's own numbers); they were solved again from scratch."
        )
    if uncertified:
        found.append(
            f"{uncertified} LPs failed the certificate at the last attempt too and were taken as they are: the "
            "results may be less exact than the tolerances say. Look at the sizes of the problem's numbers."
        )
    return found
