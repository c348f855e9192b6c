"""Reading and writing by the name of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pycobre._util.container import MAGIC
from pycobre._util.files import write_atomically
from pycobre.errors import ProblemError, SolverError
from pycobre.problem.api import Problem
from pycobre.problem.bounds import with_derived_bounds
from pycobre.problem.check import check_stages
from pycobre.problem.formats import msp, smps, sof
from pycobre.problem.formats.json_values import read_json
from pycobre.problem.formats.msp_write import msp_documents
from pycobre.problem.formats.sof_write import sof_document

__all__ = ["read", "read_validation", "write"]

SOF = ".sof.json"
_KNOWN = (
    "X.problem.json beside X.lattice.json (MSPFormat), X.sof.json (StochOptFormat), X.cor beside X.tim and X.sto "
    "(SMPS), each JSON also with .gz, or a file that Problem.save wrote"
)


def read(
    path: str | os.PathLike[str],
    *,
    lattice: str | os.PathLike[str] | None = None,
    bound: float | None = None,
    relax: bool = False,
) -> Problem:
    """Read a problem in MSPFormat, StochOptFormat 1.0, SMPS, or as `Problem.save` wrote it.

    Further files of the format are found beside it; `lattice` names the second one of MSPFormat if it is elsewhere.
    `bound` bounds all that follows a node: from below where the problem is minimised, from above where it is
    maximised; without, a bound is derived from the subproblems. `relax` reads integer variables as continuous ones.

    On error: ProblemError with the file, the place in it and what was expected there.
    """
    given = Path(path)
    name = given.name.removesuffix(".gz").lower()
    if name.endswith(msp.LATTICE):
        raise ProblemError(
            f"{given}: expected the problem, got its lattice. Read X{msp.PROBLEM}, which finds it."
        )
    if given.suffix.lower() in (*smps.CORE, *smps.TIME, *smps.STOCH):
        problem = smps.read_smps(given, relax=relax)
    elif name.endswith(SOF):
        problem, _ = sof.read_sof(given, relax=relax)
    elif name.endswith(".json"):
        keys = dict(read_json(given).items()) if not name.endswith(msp.PROBLEM) else {}
        if "subproblems" in keys:
            problem, _ = sof.read_sof(given, relax=relax)
        else:
            problem = msp.read_msp(given, None if lattice is None else Path(lattice), relax=relax)
    elif _is_own(given):
        problem = Problem.load(given)
        return problem if bound is None else _bounded(problem, bound)
    else:
        raise ProblemError(f"{given}: expected {_KNOWN}; got another name.")
    try:
        problem = with_derived_bounds(problem) if bound is None else _bounded(problem, bound)
        check_stages(problem)
    except SolverError as cause:
        raise ProblemError(
            f"{given}: expected numbers of a size that an LP can have, got others. Look at the largest ones."
        ) from cause
    return problem


def read_validation(
    path: str | os.PathLike[str], *, relax: bool = False
) -> Sequence[Sequence[sof.ValidationStep]]:
    """The validation scenarios of a StochOptFormat file; none of files without, and of other formats."""
    given = Path(path)
    if not given.name.removesuffix(".gz").lower().endswith(SOF):
        return ()
    _, scenarios = sof.read_sof(given, relax=relax)
    return scenarios


def write(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a problem as `X.sof.json` (any graph) or as `X.problem.json` and `X.lattice.json` (stage by stage).

    Reading it gives a problem with the same optimal value. Files appear whole or not at all.

    On error: ProblemError for what the format cannot say, OutputError where the file cannot be written.
    """
    given = Path(path)
    if given.name.endswith(SOF):
        write_atomically(given, sof_document(problem))
    elif given.name.endswith(msp.PROBLEM):
        stages, lattice = msp_documents(problem)
        write_atomically(given.with_name(given.name.removesuffix(msp.PROBLEM) + msp.LATTICE), lattice)
        write_atomically(given, stages)
    else:
        raise ProblemError(f"{given}: expected a name X{SOF} or X{msp.PROBLEM}, got another.")


def _bounded(problem: Problem, bound: float) -> Problem:
    nodes = [
        node if node.theta_lower is None else replace(node, theta_lower=problem.as_seen(bound))
        for node in problem.nodes
    ]
    return replace(problem, nodes=tuple(nodes))


def _is_own(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
