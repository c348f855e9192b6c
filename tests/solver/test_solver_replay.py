"""`pycobre replay`: what a failed run has written, solved alone."""

import highspy
import numpy as np
import pytest
from solver_cases import INF, random_case, template_of

from pycobre.app.cli import main
from pycobre.errors import SolverError
from pycobre.solver import LpModel, PatchPlan, SolveCall, SolverOptions, Target, create_engine
from pycobre.solver.bundle import Bundle, write_bundle


@pytest.fixture
def failed(tmp_path):
    template = template_of(
        [1, 0], [0, -INF], [5, INF], [0], [INF], [[1, 1]], 0.0, ["supply", "stock in"], ["need"]
    )
    model = LpModel(template, [1], [0], PatchPlan([Target.RHS], [0], [-1]))
    with create_engine(SolverOptions(bundles=str(tmp_path))) as engine, pytest.raises(SolverError) as caught:
        engine.solve(SolveCall(model, np.array([[1.0]]), np.array([[2.0], [9.0]])))
    return caught.value.bundle


def test_a_failure_repeats_with_its_reason_and_exit_code(failed, capsys):
    code = main(["replay", failed])
    out, err = capsys.readouterr()
    assert code != 0
    assert "2 columns, 1 rows, 0 cuts" in out
    assert "2 openings, of which the last one failed" in out
    assert "These rows cannot hold together: need, with the bounds of supply, stock in." in err


def test_the_lp_can_be_taken_elsewhere(failed, tmp_path, capsys):
    target = tmp_path / "failed.lp"
    main(["replay", failed, "--write", str(target)])
    assert f"written to {target}" in capsys.readouterr().out
    elsewhere = highspy.Highs()
    elsewhere.setOptionValue("output_flag", False)
    # HiGHS keeps the first number of threads that a process asks for, and the engine asks for one.
    elsewhere.setOptionValue("threads", 1)
    elsewhere.readModel(str(target))
    elsewhere.run()
    assert elsewhere.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    main(["replay", failed, "--write", str(tmp_path / "failed.txt")])
    assert "expected a name that ends in .lp or .mps" in capsys.readouterr().err
    main(["replay", failed, "--write", str(tmp_path / "absent" / "failed.lp")])
    assert "cannot write: No such file or directory. Choose another directory" in capsys.readouterr().err


def test_an_lp_that_solves_here_says_so(tmp_path, capsys):
    case = random_case(3)
    bundle = Bundle(SolveCall(case.model, case.x[:1], case.values, case.pool), SolverOptions())
    with create_engine() as engine:
        expected = engine.solve(SolveCall(case.model, case.x[:1], case.values, case.pool)).objective[0, -1]
    assert main(["replay", str(write_bundle(tmp_path, bundle))]) == 0
    assert f"solved here: objective {expected!r}, 0 retries" in capsys.readouterr().out
