"""`pycobre compare A B`: what two runs say of costs, prices, storage and deficits; `--bits`: are they the same?"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pycobre.app.cli import compare_bits
from pycobre.app.results.directory import open_results

if TYPE_CHECKING:
    from pycobre.app.answers.run_records import Quantity

_STAGES = 4  # changes by stage that are shown of each group: the largest
_WIDTH = 99
_TITLES = {
    "cost": "costs, mean of a scenario, discounted",
    "price": "prices, mean over hours",
    "deficit": "deficit",
    "storage": "storage",
    "water": "water",
    "training": "training",
}
_WORDS = {"lolp": "probability of a deficit", "eens_mwh": "energy not served, MWh"}
_TWICE = "stage_cost"  # of all stages: the total cost


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", type=Path, help="result directory")
    parser.add_argument("second", metavar="B", type=Path, help="another one")
    parser.add_argument(
        "--bits", action="store_true", help="whether both are the same, bit by bit; exits with 1 where not"
    )
    parser.add_argument("--format", choices=("human", "json"), default="human", help="for people or programs")
    parser.add_argument(
        "--limit", type=int, default=200, metavar="N", help="most figures in the document of json (200)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the figures of both with their change."""
    first, second = open_results(arguments.first), open_results(arguments.second)
    if arguments.bits:
        return compare_bits.run(first, second)
    from pycobre.app.answers.run_comparison import compare_runs
    from pycobre.app.answers.run_tables import RunTables

    human = arguments.format == "human"
    tables = [RunTables(str(each.directory), each) for each in (first, second)]
    found = compare_runs(tables[0], tables[1], 1_000_000 if human else arguments.limit)
    if not human:
        print(json.dumps(asdict(found), indent=2))
        return 0
    whole = [each for each in found.quantities if each.stage is None]
    _print_table(found.a, found.b, whole)
    _print_stages(found.quantities, dict(tables[0].stages))
    print()
    for text in [*_horizons(tables[0].stages, tables[1].stages), *_closing(whole)]:
        print(textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False))
    print(f"next: pycobre compare {found.a} {found.b} --bits says whether they are the same run")
    return 0


def _print_table(a: str, b: str, whole: Sequence[Quantity]) -> None:
    print(f"A  {a}\nB  {b}\n")
    print(f"{'':42}{'A':>11} {'B':>11} {'change':>11}  {'%':>8}")
    for group, title in _TITLES.items():
        rows = [
            each for each in whole if each.group == group and (each.a or each.b) and each.quantity != _TWICE
        ]
        if rows:
            print(title)
        for each in rows:
            who = f" of {each.entity}" if each.entity else ""
            print(_row(f"{_words(each)}{who}", each))


def _print_stages(quantities: Sequence[Quantity], labels: Mapping[int, str]) -> None:
    """The largest changes of single stages; single reservoirs are left to the document."""
    changed = [
        each
        for each in quantities
        if each.stage is not None
        and each.change
        and (each.group != "storage" or each.entity == "all reservoirs")
    ]
    shown = [
        each for group in _TITLES for each in [each for each in changed if each.group == group][:_STAGES]
    ]
    if shown:
        print(f"\nby stage, the largest changes{f' of {len(changed)}' if len(changed) > len(shown) else ''}")
    for each in shown:
        who = f" of {each.entity}" if each.entity else ""
        print(_row(f"{labels.get(each.stage or 0, each.stage)} {_words(each)}{who}", each))


def _words(each: Quantity) -> str:
    return _WORDS.get(each.quantity, each.quantity.replace("_", " "))


def _row(what: str, each: Quantity) -> str:
    unit = f", {each.unit}" if each.unit and each.unit != "1" else ""
    name = f"  {what}{unit}"
    name = name if len(name) <= 41 else f"{name[:40]}…"
    relative = "" if each.relative is None else f"{100.0 * each.relative:+.2f}"
    mark = {True: " *", False: "", None: ""}[each.significant]
    line = f"{name:42}{_amount(each.a):>11} {_amount(each.b):>11} {_amount(each.change):>11}"
    return f"{line}  {relative:>8}{mark}".rstrip()


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _horizons(a: Sequence[tuple[int, str]], b: Sequence[tuple[int, str]]) -> list[str]:
    """A warning where totals are of different periods."""
    if not a or not b or [label for _, label in a] == [label for _, label in b]:
        return []
    return [
        f"A goes from {a[0][1]} to {a[-1][1]}, B from {b[0][1]} to {b[-1][1]}: totals are of different periods; "
        "stages are compared where both have them."
    ]


def _closing(whole: Sequence[Quantity]) -> list[str]:
    """What the marks mean, and the answer in one sentence."""
    cost = next(
        (each for each in whole if each.quantity == "total cost: mean" and each.error is not None), None
    )
    told = []
    if cost is not None and cost.change is not None and cost.error is not None:
        if not cost.change:
            told.append("The two runs cost the same.")
        else:
            word = "more" if cost.change > 0 else "less"
            sure = (
                "more than chance explains"
                if cost.significant
                else "no more than chance may explain: simulate more scenarios"
            )
            told.append(
                f"B costs {abs(cost.change):.5g} $ {word} (± {1.96 * cost.error:.2g} $, 95 %), {sure}."
            )
    if any(each.significant for each in whole):
        told.append("* beyond 1.96 standard errors of the change.")
    return told
