"""Cuts to and from SDDP.jl's JSON file (`SDDP.write_cuts_to_file`, `SDDP.read_cuts_from_file`).

There a cut of a node reads  V(x) ≥ intercept + Σ_i coefficients_i · (x_i − state_i)  (≤ when maximising), with
states by name. Older files have no `state`, which means the origin. Nodes are named by text; where a name is
not ours, a number counts our nodes from 1, as SDDP.jl names the stages of a linear graph.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from pycobre._util.files import write_atomically
from pycobre.errors import PolicyError
from pycobre.problem import Problem
from pycobre.sddp.cuts import Cuts
from pycobre.sddp.policy import Policy

__all__ = ["export_sddp_jl", "import_sddp_jl"]


def export_sddp_jl(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write the active cuts of a policy as a file that SDDP.jl reads."""
    sign = policy.sense.sign
    origin = dict.fromkeys(policy.state_names, 0.0)
    document = []
    for name, cuts in zip(policy.node_names, policy.cuts, strict=True):
        single = [
            {
                "intercept": sign * float(cuts.intercept[slot]),
                "coefficients": dict(
                    zip(policy.state_names, (sign * cuts.slope[slot]).tolist(), strict=True)
                ),
                "state": origin,
            }
            for slot in np.flatnonzero(cuts.active).tolist()
        ]
        document.append({"node": name, "single_cuts": single, "multi_cuts": [], "risk_set_cuts": []})
    write_atomically(path, json.dumps(document).encode())


def import_sddp_jl(path: str | os.PathLike[str], problem: Problem) -> Policy:
    """Read a cut file of SDDP.jl as a policy for `problem`: simulate it, or begin training with it.

    Multi-cuts and states or nodes that the problem does not have raise PolicyError.
    """
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except OSError as cause:
        raise PolicyError(f"{path}: cannot read the cut file: {cause.strerror}. Check the path.") from cause
    except ValueError as cause:
        raise PolicyError(f"{path}: not a JSON file: {cause}") from cause
    if not isinstance(document, list):
        raise PolicyError(
            f"{path}: expected a list of nodes, as SDDP.jl writes it, got {type(document).__name__}."
        )
    found: dict[int, Cuts] = {}
    for entry in document:
        try:
            node = _node(entry["node"], problem, path)
            if entry.get("multi_cuts"):
                raise PolicyError(f"{path}: node {entry['node']!r}: expected single cuts, got multi-cuts.")
            found[node] = _cuts(entry["single_cuts"], problem, f"{path}: node {entry['node']!r}")
        except (KeyError, TypeError, AttributeError) as cause:
            raise PolicyError(f"{path}: an entry lacks or misspells {cause}.") from cause
    none = Cuts.none(len(problem.states))
    cuts = tuple(found.get(index, none) for index in range(len(problem.nodes)))
    return Policy.of(problem, cuts, iterations=0, lower_bound=float("-inf"))


def _node(name: Any, problem: Problem, path: str | os.PathLike[str]) -> int:
    names = [node.name for node in problem.nodes]
    if name in names:
        return names.index(name)
    if str(name).isdigit() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise PolicyError(
        f"{path}: the problem {problem.name!r} has no node {name!r}: its nodes are {names[:10]}."
    )


def _cuts(entries: list[dict[str, Any]], problem: Problem, where: str) -> Cuts:
    sign = problem.sense.sign
    place = {state.name: index for index, state in enumerate(problem.states)}
    count = len(entries)
    intercept, slope = np.zeros(count), np.zeros((count, len(place)))
    for slot, entry in enumerate(entries):
        intercept[slot] = float(entry["intercept"])
        at = entry.get("state", {})
        for name, value in entry["coefficients"].items():
            if name not in place:
                raise PolicyError(
                    f"{where}: the problem has no state {name!r}: its states are {list(place)[:10]}."
                )
            slope[slot, place[name]] = float(value)
            intercept[slot] -= float(value) * float(at.get(name, 0.0))
    numbers = np.arange(count, dtype=np.int32)
    zeros = np.zeros(count, np.int32)
    if not (np.isfinite(intercept).all() and np.isfinite(slope).all()):
        raise PolicyError(f"{where}: expected finite cuts, got NaN or infinity.")
    return Cuts(sign * intercept, sign * slope, zeros, numbers, zeros, np.ones(count, np.uint8))
