"""What is written and read again has the same value, on random problems; derived bounds cut nothing off."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pycobre import train
from pycobre.errors import ProblemError
from pycobre.problem import Problem, read, solve_extensive_form, write
from pycobre.problem.bounds import with_derived_bounds
from pycobre.testing.problems import reservoir, reservoir_for_ever
from pycobre.testing.random_problems import problems

QUICK = settings(
    max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def written_and_read(problem: Problem, name: str) -> Problem:
    with tempfile.TemporaryDirectory() as directory:
        write(problem, Path(directory, name))
        return read(Path(directory, name))


def says_all(problem: Problem) -> bool:
    """Whether every path has as many stages, without discounts and without stopping on the way."""
    lasts = [node for i, node in enumerate(problem.nodes) if not problem.shape.successors(i)[0].size]
    going_on = [node for node in problem.nodes if node not in lasts]
    return (
        all(node.discount == 1.0 for node in going_on)
        and len({node.stage for node in lasts}) == 1
        and all(
            abs(problem.shape.stopping[i]) < 1e-9 for i, node in enumerate(problem.nodes) if node in going_on
        )
    )


@QUICK
@given(problem=problems(), name=st.sampled_from(["x.sof.json", "x.problem.json"]))
def test_the_value_survives(problem: Problem, name: str) -> None:
    expected = solve_extensive_form(problem)
    levels = len({node.stage for node in problem.nodes})
    if name == "x.problem.json" and (levels != problem.shape.horizon or not says_all(problem)):
        with pytest.raises(ProblemError, match="MSPFormat: expected"):
            written_and_read(problem, name)
        return
    found = written_and_read(problem, name)
    assert found.sense == problem.sense
    assert solve_extensive_form(found) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@QUICK
@given(problem=problems())
def test_derived_bounds_cut_nothing_off(problem: Problem) -> None:
    bounded = with_derived_bounds(problem)
    expected = solve_extensive_form(problem)
    trained = train(bounded, {"iteration_limit": 40, "forward_passes": 4}).final_lower_bound
    sign = problem.sense.sign
    assert sign * trained <= sign * expected + 1e-6 * max(1.0, abs(expected))
    assert trained == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_cycle_survives_in_stochoptformat(tmp_path: Path) -> None:
    ring = reservoir_for_ever()
    found = written_and_read(ring, "x.sof.json")
    options = {"iteration_limit": 60, "forward_passes": 4}
    ours, again = (train(each, options).final_lower_bound for each in (ring, found))
    assert again == pytest.approx(ours, rel=1e-4)
    with pytest.raises(ProblemError, match="MSPFormat: expected paths that go on with probability 1"):
        write(ring, tmp_path / "x.problem.json")


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("x.sof.json", "x.problem.json"):
        for copy in ("a", "b"):
            (tmp_path / copy).mkdir(exist_ok=True)
            write(reservoir(4), tmp_path / copy / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
        json.loads(file.read_bytes())


def test_a_saved_problem_is_read_too(tmp_path: Path) -> None:
    problem = reservoir(4)
    problem.save(tmp_path / "x.cobre")
    assert read(tmp_path / "x.cobre").fingerprint == problem.fingerprint
    assert read(tmp_path / "x.cobre", bound=-5.0).nodes[0].theta_lower == -5.0


def test_other_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"expected a name X\.sof\.json or X\.problem\.json"):
        write(reservoir(4), tmp_path / "x.mps")
    (tmp_path / "x.lp").write_text("hello")
    with pytest.raises(ProblemError, match="MSPFormat"):
        read(tmp_path / "x.lp")
