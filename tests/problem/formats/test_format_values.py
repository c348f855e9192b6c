"""Problems in the files of others have the values that are known of them, and that independent programs find."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_files import (
    BLOCKS,
    INDEP,
    msp_lattice,
    msp_problem,
    scenarios,
    sof_newsvendor,
    write_msp,
    write_smps,
)
from scipy.optimize import linprog

from pycobre import train
from pycobre.problem import read, read_validation, solve_extensive_form
from pycobre.sddp import path_costs

SHARED = Path(__file__).parents[4] / "shared" / "msplib"
needs_msplib = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no instances of MSPLib at {SHARED}")


def test_mspformat(tmp_path: Path) -> None:
    problem = read(write_msp(tmp_path))
    assert len(problem.nodes) == 3  # the lattice does not remember: one node for each stage
    assert [node.noise.openings for node in problem.nodes] == [3, 3, 3]
    # Without inflow in the first month the published problem has this value.
    lattice = msp_lattice()
    first = {"stage": 0, "state": {"inflow": 50.0}, "successors": lattice["0"]["successors"]}
    one = {"0": first, **{key: node for key, node in lattice.items() if node["stage"]}}
    assert len(read(write_msp(tmp_path, lattice=one)).nodes) == 3
    assert solve_extensive_form(problem) == pytest.approx(25000 / 3, rel=1e-9)
    assert train(problem, {"iteration_limit": 20}).final_lower_bound == pytest.approx(25000 / 3, rel=1e-9)


def test_mspformat_with_memory(tmp_path: Path) -> None:
    """Where successors depend on the node, every node of the lattice is one of the graph."""
    lattice = msp_lattice()
    lattice["0"]["successors"] = {"3": 1.0}
    problem = read(write_msp(tmp_path, lattice=lattice))
    assert len(problem.nodes) == 3 + 3 + 1  # stage 2 still does not depend on the past
    assert solve_extensive_form(problem) == pytest.approx(tree_value(msp_problem(), lattice), rel=1e-9)


def test_compressed_files(tmp_path: Path) -> None:
    path = write_msp(tmp_path)
    for file in list(tmp_path.iterdir()):
        Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert solve_extensive_form(read(f"{path}.gz")) == pytest.approx(25000 / 3, rel=1e-9)


def test_lags_beyond_one_stage(tmp_path: Path) -> None:
    """What is ordered arrives two stages later: the variable is remembered on the way."""
    variables = [
        {"name": name, "stage": t, "obj": [cost], "lb": [0.0], "ub": [upper], "type": "CONTINUOUS"}
        for t in range(4)
        for name, cost, upper in (("order", 1.0, 9.0), ("short", 10.0, "inf"))
    ]
    rows = [
        {
            "name": "",
            "type": "GEQ",
            "lhs": [
                {"name": "short", "stage": t, "coefficient": [1.0]},
                *([{"name": "order", "stage": t - 2, "coefficient": [1.0]}] if t >= 2 else []),
            ],
            "rhs": ["demand"],
        }
        for t in range(4)
    ]
    problem = {"version": "", "maximize": False, "variables": variables, "constraints": rows}
    lattice = {
        f"{t}{k}": {
            "stage": t,
            "state": {"demand": demand},
            "successors": {f"{t + 1}{j}": 0.5 for j in range(2)} if t < 3 else {},
        }
        for t in range(4)
        for k, demand in enumerate((2.0, 4.0))
    }
    found = solve_extensive_form(read(write_msp(tmp_path, problem, lattice)))
    # Nothing can be ordered for stages 0 and 1 (10 · 3 each); 4 is ordered for each of the others.
    assert found == pytest.approx(2 * 30.0 + 2 * 4.0, rel=1e-9)


def tree_value(problem: dict[str, Any], lattice: dict[str, Any]) -> float:
    """The value by one LP over all paths of the lattice, with variables of its own for every path and stage.

    Paths with the same beginning get equal variables there: an implementation that shares nothing with the reader.
    """
    stages = 1 + max(node["stage"] for node in lattice.values())
    paths: list[tuple[tuple[str, ...], float]] = []
    starts = [key for key, node in lattice.items() if node["stage"] == 0]
    waiting: list[tuple[tuple[str, ...], float]] = [((key,), 1.0 / len(starts)) for key in starts]
    while waiting:
        path, p = waiting.pop()
        if len(path) == stages:
            paths.append((path, p))
            continue
        waiting += [((*path, k), p * q) for k, q in lattice[path[-1]]["successors"].items() if q > 0.0]
    index: dict[tuple[Any, ...], int] = {}
    cost: dict[int, float] = {}
    limits: dict[int, tuple[float, float]] = {}

    def number(value: Any, data: dict[str, float]) -> float:
        if isinstance(value, str):
            return {"inf": math.inf, "-inf": -math.inf}.get(value, data.get(value, 0.0))
        if not isinstance(value, list):
            return float(value)
        if len(value) == 1 and not isinstance(value[0], dict):
            return number(value[0], data)
        total = None
        for step in value:
            ((word, operand),) = step.items()
            x = number(operand, data)
            total = x if total is None else total + x if word == "ADD" else total * x
        return float(total or 0.0)

    def column(path: tuple[str, ...], stage: int, name: str) -> int:
        return index.setdefault((path[: stage + 1], name), len(index))

    for path, p in paths:
        for variable in problem["variables"]:
            stage = variable["stage"]
            data = lattice[path[stage]]["state"]
            j = column(path, stage, variable["name"])
            cost[j] = cost.get(j, 0.0) + p * number(variable["obj"], data)
            limits[j] = (number(variable["lb"], data), number(variable["ub"], data))
    equal, equal_rhs, less, less_rhs = [], [], [], []
    seen = set()
    for path, _ in paths:
        for row, constraint in enumerate(problem["constraints"]):
            stage = max(term["stage"] for term in constraint["lhs"])
            if (path[: stage + 1], row) in seen:
                continue
            seen.add((path[: stage + 1], row))
            data = lattice[path[stage]]["state"]
            left = np.zeros(len(index))
            for term in constraint["lhs"]:
                left[column(path, term["stage"], term["name"])] += number(term["coefficient"], data)
            right = number(constraint["rhs"], data)
            if constraint["type"] == "EQ":
                equal.append(left)
                equal_rhs.append(right)
            else:
                sign = 1.0 if constraint["type"] == "LEQ" else -1.0
                less.append(sign * left)
                less_rhs.append(sign * right)
    sense = -1.0 if problem["maximize"] else 1.0
    solved = linprog(
        sense * np.array([cost[j] for j in range(len(index))]),
        A_ub=np.array(less) if less else None,
        b_ub=less_rhs or None,
        A_eq=np.array(equal) if equal else None,
        b_eq=equal_rhs or None,
        bounds=[limits[j] for j in range(len(index))],
    )
    assert solved.status == 0, solved.message
    return float(sense * solved.fun)


def test_the_other_implementation_knows_the_known_value() -> None:
    assert tree_value(msp_problem(), msp_lattice()) == pytest.approx(25000 / 3, rel=1e-9)


@needs_msplib
@pytest.mark.parametrize(
    ("archive", "stem", "stages"),
    [("Problem_06", "(06_0)_100", 2), ("Problem_14", "(14_0)_50", 3), ("Problem_18", "(18_0)_100", 4)],
)
def test_instances_of_msplib_on_small_lattices(archive: str, stem: str, stages: int, tmp_path: Path) -> None:
    """The first stages of an instance, with two or three nodes in each, against the LP over all paths."""
    with zipfile.ZipFile(SHARED / f"{archive}.zip") as packed:
        names = {Path(name).name: name for name in packed.namelist() if "__MACOSX" not in name}
        problem, lattice = (
            json.loads(packed.read(names[f"{stem}.{part}.json"])) for part in ("problem", "lattice")
        )
    kept: dict[str, Any] = {}
    by_stage = [[key for key in lattice if lattice[key]["stage"] == t][:3] for t in range(stages)]
    for t, keys in enumerate(by_stage):
        following = by_stage[t + 1] if t + 1 < stages else []
        for key in keys:
            successors = dict.fromkeys(following, 1.0 / len(following)) if following else {}
            kept[key] = {**lattice[key], "successors": successors}
    short = {
        **problem,
        "variables": [v for v in problem["variables"] if v["stage"] < stages],
        "constraints": [c for c in problem["constraints"] if max(t["stage"] for t in c["lhs"]) < stages],
    }
    found = read(write_msp(tmp_path, short, kept))
    expected = tree_value(short, kept)
    assert solve_extensive_form(found) == pytest.approx(expected, rel=1e-7)
    trained = train(found, {"iteration_limit": 60, "forward_passes": 4})
    assert trained.final_lower_bound == pytest.approx(expected, rel=1e-6)


def test_stochoptformat(tmp_path: Path) -> None:
    path = tmp_path / "n.sof.json"
    path.write_text(json.dumps(sof_newsvendor()))
    problem = read(path)
    assert [node.noise.openings for node in problem.nodes] == [1, 2]
    assert solve_extensive_form(problem) == pytest.approx(5.0, abs=1e-9)
    trained = train(problem, {"iteration_limit": 20})
    assert trained.final_lower_bound == pytest.approx(5.0, abs=1e-9)
    # 10 papers are bought for 10: demands of 10 and 14 sell all of them for 15, a demand of 9 earns 13.5.
    costs = path_costs(problem, trained.policy, read_validation(path))
    assert costs.tolist() == pytest.approx([5.0, 5.0, 3.5], abs=1e-9)


def test_products_with_random_variables_become_coefficients(tmp_path: Path) -> None:
    document = sof_newsvendor()
    selling = document["subproblems"]["selling"]
    selling["random_variables"].append("price")
    selling["subproblem"]["variables"].append({"name": "price"})
    product = {"variable_1": "price", "variable_2": "sold", "coefficient": 1.0}
    selling["subproblem"]["objective"]["function"] = {
        "type": "ScalarQuadraticFunction",
        "affine_terms": [],
        "quadratic_terms": [product],
        "constant": 0.0,
    }
    realisations = document["nodes"]["sell"]["realizations"]
    realisations[0]["support"]["price"], realisations[1]["support"]["price"] = 3.0, 2.0
    del document["validation_scenarios"]
    path = tmp_path / "n.sof.json"
    path.write_text(json.dumps(document))
    # Another paper above 10 earns 2 with probability 0.6 and costs 1: 14 are bought.
    assert solve_extensive_form(read(path)) == pytest.approx(0.4 * 30 + 0.6 * 28 - 14, abs=1e-9)
    assert read_validation(path) == ()


def smps_value() -> float:
    """The capacity problem by hand: for a capacity, what is not served costs 100."""
    values = []
    for built in np.linspace(1, 20, 20):
        total = 10.0 * built
        for demand in (4, 8):
            total += 0.5 * (min(demand, built) + 100.0 * max(0.0, demand - built))
        for demand, p in ((3, 0.25), (12, 0.75)):
            for price in (2, 6):
                total += 0.5 * p * (price * min(demand, built) + 100.0 * max(0.0, demand - built))
        values.append(total)
    return min(values)


@pytest.mark.parametrize("stoch", [INDEP, BLOCKS, scenarios()], ids=["INDEP", "BLOCKS", "SCENARIOS"])
def test_smps(stoch: str, tmp_path: Path) -> None:
    problem = read(write_smps(tmp_path, stoch))
    assert solve_extensive_form(problem) == pytest.approx(smps_value(), rel=1e-9)
    for name in ("capacity.tim", "capacity.sto"):
        assert solve_extensive_form(read(tmp_path / name)) == pytest.approx(smps_value(), rel=1e-9)
    assert len(problem.nodes) == (3 if "SCENARIOS" not in stoch else 1 + 2 + 8)
    trained = train(problem, {"iteration_limit": 40, "forward_passes": 2})
    assert trained.final_lower_bound == pytest.approx(smps_value(), rel=1e-9)


@pytest.mark.parametrize(("word", "factor"), [("ADD", lambda v, c: v - c), ("MULTIPLY", lambda v, c: v / c)])
def test_smps_changes_of_the_core(word: str, factor: Any, tmp_path: Path) -> None:
    """ADD and MULTIPLY say what a number does to the core's: 5 on both right-hand sides, 2 as the cost of run3."""
    lines = []
    for line in INDEP.replace("DISCRETE", f"DISCRETE {word}").splitlines():
        words = line.split()
        if line.startswith(" "):
            words[2] = repr(float(factor(float(words[2]), 2.0 if words[1] == "cost" else 5.0)))
        lines.append((" " if line.startswith(" ") else "") + " ".join(words))
    problem = read(write_smps(tmp_path, "\n".join(lines) + "\n"))
    assert solve_extensive_form(problem) == pytest.approx(smps_value(), rel=1e-9)


def test_explicit_periods(tmp_path: Path) -> None:
    rows = {
        "cost": "now",
        "least": "now",
        "serve2": "second",
        "meet2": "second",
        "serve3": "third",
        "meet3": "third",
    }
    columns = {"build": "now", "run2": "second", "short2": "second", "run3": "third", "short3": "third"}
    lines = ["TIME capacity", "PERIODS EXPLICIT", "ROWS", *(f" {k} {v}" for k, v in rows.items())]
    lines += ["COLUMNS", *(f" {k} {v}" for k, v in columns.items()), "ENDATA", ""]
    problem = read(write_smps(tmp_path, INDEP, time="\n".join(lines)))
    assert solve_extensive_form(problem) == pytest.approx(smps_value(), rel=1e-9)


def test_all_kinds_of_rows_and_bounds_of_mps(tmp_path: Path) -> None:
    """One period, no noise but a certain one: the LP against scipy."""
    core = """NAME kinds
OBJSENSE
 MAX
ROWS
 N profit
 N free
 L upto
 G from
 E even
 L ranged
COLUMNS
 a profit 3 upto 1
 a from 1 even 1
 b profit 2 upto 1
 b even -1 ranged 1
 c profit -1 free 5
 c from 1 ranged 1
RHS
 upto 10 from 2
 even 1 profit 4
 ranged 6
RANGES
 RNG ranged 3 even 2
BOUNDS
 UP BND a 7
 MI BND b
 UP BND b 5
 FX BND c 1.5
ENDATA
"""
    time = "TIME kinds\nPERIODS\n a profit only\nENDATA\n"
    stoch = "STOCH kinds\nINDEP DISCRETE\n RHS upto 10 only 1.0\nENDATA\n"
    for suffix, text in (("cor", core), ("tim", time), ("sto", stoch)):
        (tmp_path / f"kinds.{suffix}").write_text(text)
    # profit = 3a + 2b − c − 4 (the right-hand side of the objective counts negatively)
    solved = linprog(
        [-3, -2, 1],
        A_ub=[[1, 1, 0], [-1, 0, -1], [0, 1, 1], [0, -1, -1], [1, -1, 0], [-1, 1, 0]],
        b_ub=[10, -2, 6, -3, 3, -1],
        bounds=[(0, 7), (None, 5), (1.5, 1.5)],
    )
    assert solve_extensive_form(read(tmp_path / "kinds.cor")) == pytest.approx(-solved.fun - 4.0, rel=1e-9)


def test_every_file_of_a_stem_is_found(tmp_path: Path) -> None:
    for upper, stoch in itertools.product((False, True), (".sto", ".stoch", ".stc")):
        directory = tmp_path / f"{upper}{stoch}"
        directory.mkdir()
        core = write_smps(directory, INDEP)
        (directory / "capacity.sto").rename(directory / f"capacity{stoch.upper() if upper else stoch}")
        assert len(read(core).nodes) == 3
