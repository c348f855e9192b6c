"""The small parts: recovery, scaling, values of cuts, checks and the numerical report."""

from dataclasses import replace

import numpy as np
import pytest
from solver_cases import INF, random_case, template_of

from pycobre.errors import ProblemError, SolverError
from pycobre.solver import (
    CutView,
    LpModel,
    LpTemplate,
    PatchPlan,
    RhsCorrections,
    SolverOptions,
    Target,
    create_engine,
)
from pycobre.solver.check import model_findings, template_findings
from pycobre.solver.highs import Status, highs_options
from pycobre.solver.prepare import prepare
from pycobre.solver.recovery import STEPS, recover
from pycobre.solver.reference.cuts import best_cuts, cut_values
from pycobre.solver.reference.highspy_session import HighspySession
from pycobre.solver.report import numerical_report
from pycobre.solver.scale import find_scale

OPTIMAL, INFEASIBLE, UNKNOWN = Status.OPTIMAL, Status.INFEASIBLE, Status.UNKNOWN


class FakeSession:
    """Answers runs from a list and records what was asked."""

    def __init__(self, answers):
        self.answers, self.asked, self.options = list(answers), [], {}

    def set_options(self, options):
        self.options |= options

    def clear(self):
        self.asked.append("clear")

    def run(self):
        self.asked.append("run")
        return self.answers.pop(0)

    def keep_basis(self):
        return True

    def put_basis(self):
        self.asked.append("put")


USUAL = highs_options(SolverOptions())


def test_the_first_step_that_works_is_confirmed_under_the_usual_options():
    session = FakeSession([UNKNOWN, OPTIMAL, OPTIMAL])
    end = recover(session, USUAL, UNKNOWN)
    assert (end.status, end.steps) == (OPTIMAL, ("cold", "primal simplex"))
    assert session.asked == ["clear", "run", "clear", "run", "clear", "put", "run"]
    assert session.options == {key: USUAL[key] for key in session.options}


def test_infeasibility_is_believed_when_a_second_run_agrees():
    assert recover(FakeSession([INFEASIBLE]), USUAL, INFEASIBLE).steps == ("cold",)
    mended = recover(FakeSession([UNKNOWN, INFEASIBLE, OPTIMAL, OPTIMAL]), USUAL, INFEASIBLE)
    assert (mended.status, len(mended.steps)) == (OPTIMAL, 3)


def test_recovery_without_success_ends_after_its_last_step():
    end = recover(FakeSession([UNKNOWN] * 5), USUAL, UNKNOWN)
    assert (end.status, end.steps) == (UNKNOWN, tuple(name for name, _ in STEPS))
    unconfirmed = recover(FakeSession([OPTIMAL, UNKNOWN] * 5), USUAL, UNKNOWN)
    assert (unconfirmed.status, len(unconfirmed.steps)) == (UNKNOWN, 5)


def test_no_step_knows_the_clock():
    assert not [key for _, options in STEPS for key in options if "time" in key]
    assert not [key for key in USUAL if "time" in key]


def test_an_option_that_highs_refuses_is_named():
    with pytest.raises(SolverError, match="HiGHS option no_such_option: the installed HiGHS refuses 1"):
        HighspySession({"output_flag": False, "no_such_option": 1})


def test_scale_factors_are_powers_of_two_and_narrow_the_range():
    rng = np.random.default_rng(0)
    matrix = (
        rng.normal(size=(8, 12)) * 10.0 ** rng.integers(-5, 6, (8, 1)) * 10.0 ** rng.integers(-5, 6, (1, 12))
    )
    template = template_of(
        10.0 ** rng.integers(-3, 7, 12), np.zeros(12), np.ones(12), np.zeros(8), np.ones(8), matrix
    )
    scale = find_scale(template)
    for factors in (scale.row, scale.col, np.array([scale.cost])):
        mantissa, _ = np.frexp(factors)
        assert np.all(mantissa == 0.5)
    scaled = np.abs(matrix * scale.row[:, None] * scale.col)
    assert scaled.max() / scaled.min() < 1e4 < np.abs(matrix).max() / np.abs(matrix).min()


def test_the_head_of_the_pool_is_scaled_to_a_cost_near_one():
    template = template_of([1e6, 2e6, 0.9], [0, 0, 0], [1, 1, INF], [1], [1], [[1, 1, 0]])
    scale = find_scale(template, 2)
    assert 0.5 <= 0.9 * scale.col[2] * scale.cost <= 2.0


def test_a_tiny_cost_does_not_push_the_others_beyond_the_dual_tolerance():
    """Costs around 1 by their geometric mean, but the largest within what an absolute tolerance can tell."""
    penalties = template_of([10.0, 7e7], [0, 0], [1, 1], [1], [1], [[1, 1]])
    usual = find_scale(penalties)
    assert usual.cost == 2.0**-15  # 1 / √(10 · 7e7), as a power of two
    tiny = template_of([10.0, 7e7, 1e-3, 1e-9], [0] * 4, [1] * 4, [1], [1], [[1, 1, 1, 1]])
    scale = find_scale(tiny)
    largest = (np.abs(tiny.cost) * scale.col * scale.cost).max()
    assert 2.0**12.5 <= largest <= 2.0**13.5


@pytest.mark.parametrize("width", range(10))
def test_pool_values_follow_the_documented_order_of_summation(width):
    rng = np.random.default_rng(width)
    pool = CutView(rng.normal(size=7) * 1e3, rng.normal(size=(7, width)) * 1e8, 6)
    point = rng.normal(size=width)
    values = cut_values(pool, point)
    for i in range(6):
        partial = [0.0] * 4
        for k in range(width):
            partial[k % 4] += float(pool.slope[i, k]) * float(point[k])
        assert values[i] == pool.intercept[i] + ((partial[0] + partial[1]) + (partial[2] + partial[3]))


def test_best_rows_break_ties_by_slot():
    values = np.array([1.0, 5.0, 5.0, 3.0, 5.0, np.nan])
    everyone = np.ones(6, bool)
    assert best_cuts(values, everyone, 2).tolist() == [1, 2]
    assert best_cuts(values, everyone, 4).tolist() == [1, 2, 3, 4]
    assert best_cuts(values, everyone, 9, above=1.0).tolist() == [1, 2, 3, 4]
    assert best_cuts(values, values != 5.0, 1).tolist() == [3]


SOUND = template_of([1, 2], [0, 0], [1, INF], [0, 1], [0, 4], [[1, 1], [0, 1]], 0.0, ["a", "b"], ["r", "s"])


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"cost": [1, np.nan]}, "the cost of b is nan"),
        ({"values": [1, INF, 1]}, "the coefficient at (r, b) is inf"),
        ({"col_lower": [0, INF]}, "the bounds of b are [inf, inf]"),
        ({"row_upper": [-1, 4]}, "the bounds of r are [0.0, -1.0]"),
        ({"offset": np.nan}, "the objective's constant is nan"),
        ({"col_names": ["a", "a"]}, "columns are named twice: a"),
        ({"row_names": ["r"]}, "there are 1 row names for 2 rows"),
        ({"rows": [0, 0, 5]}, "the matrix has a row index outside 0..1"),
        ({"rows": [0, 1, 1]}, "the entry at (s, b) is given twice"),
        (
            {"starts": [0, 2, 1]},
            "the starts of the matrix columns are not a rising list from 0 to the number",
        ),
        ({"col_upper": [1]}, "col_upper has 1 entries where 2 are expected"),
        ({"rows": [0, 0]}, "the matrix has 2 row indices for 3 values"),
    ],
)
def test_findings_of_a_template(change, finding):
    assert template_findings(SOUND) == []
    found = template_findings(replace(SOUND, **change))
    assert any(text.startswith(finding) for text in found), found


def plan(kind, row=-1, col=-1):
    return PatchPlan([kind], [row], [col])


@pytest.mark.parametrize(
    ("model", "finding"),
    [
        (LpModel(SOUND, [2]), "an input column is outside 0..1"),
        (LpModel(SOUND, [], [1, 1]), "an output column is named twice"),
        (LpModel(SOUND, theta_column=7), "the column of theta is 7, outside 0..1"),
        (LpModel(SOUND, [], [1], theta_column=1), "the column of theta is also an input or output column"),
        (LpModel(SOUND, plan=plan(99)), "patch kind 99 does not exist"),
        (LpModel(SOUND, plan=plan(Target.RHS, 1)), "s has two sides, [1.0, 4.0]: a right-hand-side patch is"),
        (LpModel(SOUND, plan=plan(Target.RHS, 4)), "a RHS patch names row 4, outside 0..1"),
        (LpModel(SOUND, plan=plan(Target.COST, col=9)), "a COST patch names column 9, outside 0..1"),
        (
            LpModel(SOUND, [0], plan=plan(Target.COL_UPPER, col=0)),
            "a COL_UPPER patch names the input column a",
        ),
        (
            LpModel(SOUND, plan=PatchPlan([5, 5], [-1, -1], [0, 0])),
            "a COST patch repeats a place that is patched",
        ),
        (LpModel(SOUND, plan=PatchPlan([0, 1], [0, 0], [-1, -1])), "a ROW_LOWER patch repeats a place"),
        (
            LpModel(SOUND, plan=PatchPlan([0], [0, 1], [-1])),
            "the patch plan has 1 kinds, 2 rows and 1 columns",
        ),
        (
            LpModel(SOUND, rhs_corrections=RhsCorrections([1], [1], [0, 0], [], [], [], [], [])),
            "s has two sides, [1.0, 4.0]",
        ),
        (
            LpModel(SOUND, rhs_corrections=RhsCorrections([1], [0], [0, 1], [0], [1], [], [], [])),
            "the input of a right-hand-side correction is outside 0..-1",
        ),
        (
            LpModel(SOUND, rhs_corrections=RhsCorrections([1], [0], [0, 2], [0], [1], [], [], [])),
            "the arrays of the right-hand-side corrections do not fit",
        ),
    ],
)
def test_findings_of_a_model(model, finding):
    assert model_findings(LpModel(SOUND)) == []
    found = model_findings(model)
    assert any(text.startswith(finding) for text in found), found
    with pytest.raises(ProblemError, match="the LP cannot be solved as it is: "):
        prepare(model, True)


def test_a_row_without_a_finite_side_takes_no_right_hand_side():
    free = replace(SOUND, row_lower=[-INF, 1], row_upper=[INF, 4])
    assert model_findings(LpModel(free, plan=plan(Target.RHS, 0))) == [
        "r has no finite side for a right-hand-side patch"
    ]


def test_the_report_is_silent_about_sound_numbers_and_names_bad_ones():
    assert numerical_report(LpModel(SOUND)).warnings == ()
    bad = LpTemplate(
        [1.0, 1e-12, 1e6],
        [0, 0, -1e30],
        [1e13, 1, INF],
        [1e12],
        [INF],
        [0, 1, 2, 3],
        [0, 0, 0],
        [1.0, 1e-10, 1e5],
        0.0,
        ["a", "b", "c"],
        ["r"],
    )
    report = numerical_report(LpModel(bad), scale=False)
    said = "\n".join(report.warnings)
    assert "matrix coefficients still span 1e+15 after scaling, from (r, b) to (r, c)" in said
    assert "costs still span 1e+18 after scaling, from b to c" in said
    assert "column bounds reach 1e+30 (c): write inf for no bound" in said
    assert "right-hand sides reach 1e+12 (r): measure in larger units" in said
    assert "1 matrix coefficients are 1e-9 or less" in said
    assert "matrix [1.0e-10, 1.0e+05]" in str(report)
    assert "warning: " in str(report)


def test_the_engine_is_found_from_the_room_and_closes_twice():
    engine = create_engine(SolverOptions(threads=2))
    case = random_case(0)
    case.solve(engine)
    engine.close()
    engine.close()
    with pytest.raises(SolverError, match="the engine is closed: create a new one to go on"):
        case.solve(engine)
