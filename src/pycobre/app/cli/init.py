"""`pycobre init NAME [DIR]`: write a bundled example, or a synthetic system of any size, as a case directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from pycobre._util.files import expect_free
from pycobre.errors import OptionError
from pycobre.hydro.examples import EXAMPLES, example, synthetic
from pycobre.hydro.files import write_case
from pycobre.hydro.model import Case

SYNTHETIC = "synthetic"

#: Sizes of a synthetic system and what they are.
SIZES = {
    "hydros": "hydro plants",
    "cascades": "rivers that share them",
    "lags": "months that inflows remember",
    "thermals": "thermal plants",
    "buses": "buses",
    "sources": "wind or solar parks",
    "blocks": "load blocks per month",
    "stages": "months",
    "openings": "openings per month",
    "seed": "which system of this size",
    "forward_passes": "trajectories per iteration",
    "iterations": "iteration limit",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="an example, or synthetic; none lists them")
    parser.add_argument("directory", metavar="DIR", nargs="?", type=Path, help="where to write it (NAME)")
    sizes = parser.add_argument_group("sizes of a synthetic system")
    for name, meaning in SIZES.items():
        sizes.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Write the case, or say which there are."""
    if arguments.name is None:
        print(_listed())
        return 0
    sizes = {name: value for name in SIZES if (value := getattr(arguments, name)) is not None}
    if arguments.name == SYNTHETIC:
        case, summary, readme, expected = synthetic(**sizes), "a synthetic system", None, None
    else:
        chosen = example(arguments.name)
        if sizes:
            raise OptionError(
                f"init {chosen.name}: --{next(iter(sizes)).replace('_', '-')} is for synthetic systems only. "
                "Leave it out, or use `pycobre init synthetic`."
            )
        case, summary, readme, expected = chosen.build(), chosen.summary, chosen.readme, chosen.lower_bound
    target: Path = arguments.directory or Path(arguments.name)
    expect_free(target)
    write_case(case, target)
    if readme is not None:
        (target / "README.md").write_text(readme, encoding="utf-8")
    print(f"{target}: {summary}\n  {_counts(case)}")
    if expected is not None:
        print(f"  expected: a lower bound of about {expected:,.0f} (see {target / 'README.md'})")
    print(f"next: pycobre run {target}")
    return 0


def _listed() -> str:
    width = max(map(len, [*EXAMPLES, SYNTHETIC]))
    lines = [f"  {e.name:{width}}  {e.summary}" for e in EXAMPLES.values()]
    lines.append(f"  {SYNTHETIC:{width}}  a system of any size: pycobre init {SYNTHETIC} --help")
    return "\n".join(["examples:", *lines, "next: pycobre init one-reservoir"])


def _counts(case: Case) -> str:
    counts = {
        "months": len(case.stages),
        "blocks": len(case.stages[0].blocks),
        "openings": case.stages[0].num_openings or 1,
        "hydros": len(case.hydros),
        "thermals": len(case.thermals),
        "buses": len(case.buses),
        "lines": len(case.lines),
    }
    return " · ".join(
        f"{count} {noun if count != 1 else _one(noun)}" for noun, count in counts.items() if count
    )


def _one(nouns: str) -> str:
    return {"buses": "bus"}.get(nouns, nouns.removesuffix("s"))
