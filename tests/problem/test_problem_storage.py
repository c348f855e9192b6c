"""Problems on disk: the same bytes from the same content, and nothing believed unchecked."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pycobre._util.container import MAGIC, Container, pack, unpack
from pycobre.errors import OutputError, ProblemError
from pycobre.problem import ROOT, Arcs, Node, Noise, Problem, State, solve_extensive_form
from pycobre.solver.api import LpTemplate, RhsCorrections
from pycobre.testing.problems import KnownProblem, hydro_thermal, known_problems, valley
from pycobre.testing.random_problems import problems


@pytest.mark.parametrize("known", known_problems(), ids=lambda known: known.name)
def test_saving_loading_and_saving_gives_the_same_bytes(known: KnownProblem, tmp_path: Path) -> None:
    problem = known.make()
    problem.save(tmp_path / "first.problem")
    loaded = Problem.load(tmp_path / "first.problem")
    loaded.save(tmp_path / "second.problem")
    assert (tmp_path / "first.problem").read_bytes() == (tmp_path / "second.problem").read_bytes()
    assert loaded.fingerprint == problem.fingerprint
    assert loaded.sense is problem.sense
    assert [node.name for node in loaded.nodes] == [node.name for node in problem.nodes]


@given(problems(graphs=("linear", "markov", "tree", "ring")))
@settings(max_examples=25, deadline=None)
def test_random_problems_come_back_whole(problem: Problem) -> None:
    data = problem.to_bytes()
    loaded = Problem.from_bytes(data)
    assert loaded.to_bytes() == data
    for before, after in zip(problem.nodes, loaded.nodes, strict=True):
        assert before.noise.values.tobytes() == after.noise.values.tobytes()
        assert before.template.values.tobytes() == after.template.values.tobytes()
        assert before.noise.names == after.noise.names
        assert before.theta_lower == after.theta_lower


def test_a_loaded_problem_gives_the_same_bits() -> None:
    problem = valley()
    assert solve_extensive_form(problem) == solve_extensive_form(Problem.from_bytes(problem.to_bytes()))


def test_another_process_writes_the_same_bytes() -> None:
    script = "from pycobre.testing.problems import valley; print(valley().fingerprint)"
    for seed in ("0", "1"):
        other = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            timeout=250,
            env={"PYTHONHASHSEED": seed},
        )
        assert other.stdout.strip() == valley().fingerprint


def test_sharing_changes_no_byte_and_comes_back() -> None:
    def lp() -> LpTemplate:
        return LpTemplate([1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [], [], [0, 0, 0], [], [])

    def problem(first: LpTemplate, second: LpTemplate) -> Problem:
        nodes = (
            Node("a", first, np.array([1]), np.array([0]), theta_lower=0.0),
            Node("b", second, np.array([1]), np.array([0])),
        )
        return Problem((State("x", 0.0),), nodes, Arcs.of([(ROOT, 0, 1.0), (0, 1, 1.0)]))

    shared = lp()
    assert problem(shared, shared).to_bytes() == problem(lp(), lp()).to_bytes()
    loaded = Problem.from_bytes(problem(lp(), lp()).to_bytes())
    assert loaded.nodes[0].template is loaded.nodes[1].template


def test_floors_come_back() -> None:
    lp = LpTemplate([0.0, 0.0], [0.0, 0.0], [9.0, 9.0], [1.0], [1.0], [0, 1, 2], [0, 0], [1.0, 1.0])
    floors = RhsCorrections([0.5], [0], [0, 1], [0], [2.0], [0], [0], [-1.0])
    node = Node("a", lp, np.array([1]), np.array([0]), Noise.none(), rhs_corrections=floors)
    problem = Problem((State("x", 0.0),), (node,), Arcs.of([(ROOT, 0, 1.0)]))
    loaded = Problem.from_bytes(problem.to_bytes())
    assert loaded.nodes[0].rhs_corrections is not None
    assert loaded.nodes[0].rhs_corrections.coef.tolist() == [2.0]
    assert loaded.to_bytes() == problem.to_bytes()


def test_torn_and_changed_files_are_refused(tmp_path: Path) -> None:
    data = hydro_thermal().to_bytes()
    path = tmp_path / "p.problem"
    for position in range(0, len(data), 97):
        path.write_bytes(data[:position])
        with pytest.raises(ProblemError, match=r"p\.problem"):
            Problem.load(path)
        path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(ProblemError, match=r"p\.problem"):
            Problem.load(path)


def test_missing_files_and_directories_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"none\.problem: cannot read the problem file: No such file"):
        Problem.load(tmp_path / "none.problem")
    with pytest.raises(OutputError, match="cannot write: No such file or directory"):
        hydro_thermal().save(tmp_path / "no" / "p.problem")


def forged(change: Any) -> bytes:
    """Return a file with a right checksum and a wrong content."""
    content = unpack(hydro_thermal().to_bytes(), "problem", 1, where="", error=ProblemError)
    arrays = dict(content.arrays)
    change(content.meta, arrays)
    return pack(Container("problem", 1, content.meta, arrays))


def set_node(key: str, value: Any) -> Any:
    def change(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        meta["nodes"][0][key] = value

    return change


FORGERIES: dict[str, Any] = {
    "no nodes": lambda meta, arrays: meta.pop("nodes"),
    "nodes are a number": lambda meta, arrays: meta.update(nodes=3),
    "a node is a list": lambda meta, arrays: meta.update(nodes=[[]]),
    "an unknown sense": lambda meta, arrays: meta.update(sense="sideways"),
    "a name that is a number": lambda meta, arrays: meta.update(name=3),
    "an array of another kind": lambda meta, arrays: arrays.update({"0": arrays["0"].astype(complex)}),
    "a number for an array that is not there": set_node("values", 99),
    "a list for an array": set_node("values", [1]),
    "a template that is nothing": set_node("template", None),
    "names that are numbers": lambda meta, arrays: meta.update(texts=[[1, 2]] * 9),
    "a huge stage": set_node("stage", float("inf")),
    "a discount in words": set_node("discount", "much"),
    "states that are not pairs": lambda meta, arrays: meta.update(states=[["x"]]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_content_with_a_right_checksum_is_refused(name: str) -> None:
    with pytest.raises(ProblemError, match="problem: expected the content of a problem, got something else"):
        Problem.from_bytes(forged(FORGERIES[name]))


def test_forged_numbers_meet_the_same_validation_as_built_ones() -> None:
    with pytest.raises(ProblemError, match="problem: problem 'hydro-thermal' has 1 finding") as caught:
        Problem.from_bytes(forged(set_node("discount", 7.0)))
    assert caught.value.findings == ("node '1': discount: expected more than 0 and at most 1, got 7.0.",)


def test_a_header_nested_too_deep_is_refused() -> None:
    header = b"[" * 100_000 + b"]" * 100_000
    body = MAGIC + struct.pack("<Q", len(header)) + header
    with pytest.raises(ProblemError, match="problem: the header is not readable"):
        Problem.from_bytes(body + hashlib.sha256(body).digest())


def test_files_of_another_kind_or_version_are_named() -> None:
    with pytest.raises(ProblemError, match="expected a pycobre problem file, got a policy file"):
        Problem.from_bytes(pack(Container("policy", 1, {}, {})))
    with pytest.raises(ProblemError, match="expected version 1 of the problem format, got 2"):
        Problem.from_bytes(pack(Container("problem", 2, {}, {})))
    with pytest.raises(ProblemError, match="got something else"):
        Problem.from_bytes(b"\x80\x04pickle")
