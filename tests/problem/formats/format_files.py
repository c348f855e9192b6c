"""Small files of every format, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Three months, one reservoir, one thermal plant; inflow 0, 50 or 100. The value is 25000/3.
MONTHS = 3


def _variable(name: str, stage: int, cost: float, upper: float | str) -> dict[str, Any]:
    return {"name": name, "stage": stage, "obj": [cost], "lb": [0.0], "ub": [upper], "type": "CONTINUOUS"}


def _term(name: str, stage: int, coefficient: float = 1.0) -> dict[str, Any]:
    return {"name": name, "stage": stage, "coefficient": [coefficient]}


def msp_problem() -> dict[str, Any]:
    """The reservoir as the problem file of MSPFormat."""
    variables, constraints = [], []
    for t in range(MONTHS):
        variables += [
            _variable("volume", t, 0.0, 200.0),
            _variable("thermal", t, 50.0 * (t + 1), "inf"),
            _variable("turbined", t, 0.0, "inf"),
            _variable("spill", t, 0.0, "inf"),
        ]
        water = [_term("volume", t), _term("turbined", t), _term("spill", t)]
        start = 200.0 if t == 0 else 0.0
        if t > 0:
            water.append(_term("volume", t - 1, -1.0))
        rhs = [{"ADD": "inflow"}, {"ADD": [start]}]
        constraints += [
            {"name": f"water {t}", "type": "EQ", "lhs": water, "rhs": rhs},
            {"name": "", "type": "EQ", "lhs": [_term("turbined", t), _term("thermal", t)], "rhs": [150.0]},
        ]
    return {
        "version": "MSMLP 1.1",
        "name": "reservoir",
        "maximize": False,
        "variables": variables,
        "constraints": constraints,
    }


def msp_lattice() -> dict[str, Any]:
    """Three nodes in every stage, whatever came before."""
    found = {}
    for t in range(MONTHS):
        for k, inflow in enumerate((0.0, 50.0, 100.0)):
            following = {str(3 * (t + 1) + j): 1 / 3 for j in range(3)} if t + 1 < MONTHS else {}
            found[str(3 * t + k)] = {"stage": t, "state": {"inflow": inflow}, "successors": following}
    return found


def write_msp(
    directory: Path, problem: dict[str, Any] | None = None, lattice: dict[str, Any] | None = None
) -> Path:
    """Both files; returns that of the problem."""
    (directory / "x.lattice.json").write_text(json.dumps(msp_lattice() if lattice is None else lattice))
    path = directory / "x.problem.json"
    path.write_text(json.dumps(msp_problem() if problem is None else problem))
    return path


def sof_newsvendor() -> dict[str, Any]:
    """Papers bought for 1, sold for 1.5; demand 10 (0.4) or 14 (0.6). The best is to buy 10: 5."""

    def affine(*terms: tuple[str, float]) -> dict[str, Any]:
        listed = [{"variable": name, "coefficient": value} for name, value in terms]
        return {"type": "ScalarAffineFunction", "terms": listed, "constant": 0.0}

    def at_least(name: str, value: float) -> dict[str, Any]:
        return {
            "function": {"type": "Variable", "name": name},
            "set": {"type": "GreaterThan", "lower": value},
        }

    def at_most(*terms: tuple[str, float]) -> dict[str, Any]:
        return {"function": affine(*terms), "set": {"type": "LessThan", "upper": 0.0}}

    states = {"papers": {"in": "had", "out": "kept"}}
    buying = {
        "version": {"major": 1, "minor": 2},
        "variables": [{"name": "had"}, {"name": "kept"}],
        "objective": {"sense": "max", "function": affine(("kept", -1.0))},
        "constraints": [at_least("kept", 0.0)],
    }
    selling = {
        "version": {"major": 1, "minor": 2},
        "variables": [{"name": name} for name in ("had", "kept", "sold", "demand")],
        "objective": {"sense": "max", "function": affine(("sold", 1.5))},
        "constraints": [
            at_most(("sold", 1.0), ("had", -1.0)),
            at_most(("sold", 1.0), ("demand", -1.0)),
            at_least("sold", 0.0),
        ],
    }
    return {
        "version": {"major": 1, "minor": 0},
        "name": "newsvendor",
        "root": {"state_variables": {"papers": 0.0}, "successors": {"buy": 1.0}},
        "nodes": {
            "buy": {"subproblem": "buying", "successors": {"sell": 1.0}},
            "sell": {
                "subproblem": "selling",
                "realizations": [
                    {"probability": 0.4, "support": {"demand": 10.0}},
                    {"probability": 0.6, "support": {"demand": 14.0}},
                ],
            },
        },
        "subproblems": {
            "buying": {"state_variables": states, "subproblem": buying},
            "selling": {"state_variables": states, "random_variables": ["demand"], "subproblem": selling},
        },
        "validation_scenarios": [
            [{"node": "buy"}, {"node": "sell", "support": {"demand": demand}}] for demand in (10.0, 14.0, 9.0)
        ],
    }


#: Build capacity now (10 a unit), serve demand in two further periods; demand and price are random. Unserved demand
#: costs 100. Capacity that period 3 uses too crosses period 2.
CORE = """\
NAME capacity
* a comment
ROWS
 N cost
 G least
 L serve2
 E meet2
 L serve3
 E meet3
COLUMNS
 build cost 10 least 1
 build serve2 -1 serve3 -1
 run2 cost 1 serve2 1
 run2 meet2 1
 short2 cost 100 meet2 1
 run3 cost 2 serve3 1
 run3 meet3 1
 short3 cost 100 meet3 1
RHS
 RHS least 1 meet2 5
 RHS meet3 5
BOUNDS
 UP BND build 20
ENDATA
"""
TIME = "TIME capacity\nPERIODS LP\n build cost now\n run2 serve2 second\n run3 serve3 third\nENDATA\n"
INDEP = """\
STOCH capacity
INDEP DISCRETE
 RHS meet2 4 second 0.5
 RHS meet2 8 second 0.5
 RHS meet3 3 third 0.25
 RHS meet3 12 third 0.75
 run3 cost 2 third 0.5
 run3 cost 6 third 0.5
ENDATA
"""
#: The same distribution as INDEP, written as blocks (a later realisation lists what differs from the first).
BLOCKS = """\
STOCH capacity
BLOCKS DISCRETE
 BL second second 0.5
 RHS meet2 4
 BL second second 0.5
 RHS meet2 8
 BL third third 0.125
 RHS meet3 3
 run3 cost 2
 BL third third 0.125
 run3 cost 6
 BL third third 0.375
 RHS meet3 12
 BL third third 0.375
 RHS meet3 12
 run3 cost 6
ENDATA
"""


def scenarios() -> str:
    """The same again as a tree of eight scenarios."""
    lines = ["STOCH capacity", "SCENARIOS DISCRETE"]
    name = 0
    for d2 in (4, 8):
        first = None
        for d3, p3 in ((3, 0.25), (12, 0.75)):
            for price in (2, 6):
                parent = first or ("ROOT" if name == 0 else "S0")
                period = "third" if first else "second"
                lines.append(f" SC S{name} {parent} {0.5 * p3 * 0.5} {period}")
                lines += [f" RHS meet2 {d2}"] if first is None else []
                lines += [f" RHS meet3 {d3}", f" run3 cost {price}"]
                first = first or f"S{name}"
                name += 1
    return "\n".join([*lines, "ENDATA", ""])


def write_smps(directory: Path, stoch: str, core: str = CORE, time: str = TIME) -> Path:
    """The three files; returns the core's."""
    (directory / "capacity.tim").write_text(time)
    (directory / "capacity.sto").write_text(stoch)
    path = directory / "capacity.cor"
    path.write_text(core)
    return path
