"""The border of the native LP module: arguments that do not fit are refused, under sanitizers too.

The valid arguments of one block are changed in one or two places, thousands of times. Whatever comes out, a result, a
`ValueError` or another refusal, memory outside the arrays is never touched: the slow test builds the module with
AddressSanitizer and UndefinedBehaviorSanitizer and runs the same changes there.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pycobre.solver import CutView, LpModel, LpTemplate, PatchPlan, SolveCall, SolverOptions, Target
from pycobre.solver.job import make_job
from pycobre.solver.native import _bind, library_path, why_not_native
from pycobre.solver.prepare import prepare

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "pycobre" / "_native"
pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no compiled path: {why_not_native()}")

COUNTS = (-(2**31), -1, 0, 1, 2, 3, 7, 2**30, 2**31 - 1)
CHAINS, OPENINGS, PLAN, STARTS, CUTS, WIDTH = range(2, 8)
BEGIN, END, RETRIES = 18, 19, 20


def arguments(kernel_rows: int = 0) -> tuple[list[Any], list[Any]]:
    """The arguments of `lp.Model` and of `Session.solve` for one valid block, as lists to be changed."""
    template = LpTemplate(
        cost=[0.0, 100.0, 20.0, 0.0, 1.0],
        col_lower=[0.0] * 5,
        col_upper=[np.inf, np.inf, 30.0, 60.0, np.inf],
        row_lower=[0.0, 0.0],
        row_upper=[0.0, 90.0],
        starts=[0, 1, 2, 4, 6, 6],
        rows=[0, 0, 0, 1, 0, 1],
        values=[1.0, 1.0, 1.0, 1.0, -1.0, 1.0],
    )
    plan = PatchPlan([Target.RHS, Target.COL_UPPER, Target.COST], [0, -1, -1], [-1, 2, 1])
    model = LpModel(template, [0], [3], plan, None, 4)
    cuts = CutView(np.array([5.0, 9.0, 1.0]), np.array([[-1.0], [-0.5], [-2.0]]), 3)
    options = SolverOptions(tableau_entries=0, kernel_rows=kernel_rows)
    x, values = np.array([[0.0], [25.0]]), np.array([[30.0, 30.0, 100.0], [70.0, 20.0, 90.0]])
    prepared = prepare(model, True)
    call = SolveCall(model, x, values, cuts, want_basis=True, want_primal=True)
    job = make_job(prepared, options, call)
    bound = _bind(lambda *given: given, job)
    assert isinstance(bound, partial)
    solve = [*bound.args, 0, 2, -1]
    return [*prepared_arguments(prepared)], solve


def prepared_arguments(prepared) -> tuple[object, ...]:
    """What `Prepared.native` passes: the arrays, then the numbers."""
    from dataclasses import fields

    values = [getattr(prepared, each.name) for each in fields(prepared)][:-1]
    arrays = tuple(value for value in values if isinstance(value, np.ndarray))
    return (arrays, *values[len(arrays) :])


def change_array(rng: random.Random, array):
    """The same array with another length, another number in it, or none."""
    if array is None:
        return np.zeros(rng.choice((0, 1, 3)))
    kind = rng.randrange(4)
    if kind == 0:
        return None
    changed = array.ravel()
    if kind == 1:
        return changed[: rng.randrange(changed.size + 1)].copy()
    if kind == 2 or not changed.size:
        return np.concatenate([changed, changed, changed[:1]])
    changed = changed.copy()
    at = rng.randrange(changed.size)
    if changed.dtype.kind in "iu":
        info = np.iinfo(changed.dtype)
        changed[at] = rng.choice((info.min, info.max, 0, 1, 2, 3, 5))
    else:
        changed[at] = rng.choice((np.nan, np.inf, -np.inf, 0.0, 1e300, -1.0))
    return changed


def attack(lp, seed: int) -> str:
    """One changed block; the name of what came out."""
    rng = random.Random(seed)
    model, solve = arguments(rng.choice((0, 100)))
    for _ in range(rng.choice((1, 1, 2))):
        target = rng.randrange(4)
        if target == 0:
            arrays = list(model[0])
            at = rng.randrange(len(arrays))
            arrays[at] = change_array(rng, arrays[at])
            model[0] = tuple(arrays)
        elif target == 1:
            model[rng.randrange(1, 5)] = rng.choice(COUNTS)
        elif target == 2:
            arrays = list(solve[1])
            at = rng.randrange(len(arrays))
            arrays[at] = change_array(rng, arrays[at])
            solve[1] = tuple(arrays)
        else:
            at = rng.choice([k for k in range(2, len(solve)) if isinstance(solve[k], int)])
            solve[at] = rng.choice(COUNTS)
    session = lp.Session()
    session.set_option("output_flag", False)
    try:
        solve[0] = lp.Model(*model)
        session.solve(*solve)
        session.keep_basis(), session.put_basis(), session.present(), session.kept_slots()
    except (ValueError, TypeError, OverflowError, MemoryError, BufferError) as error:
        return type(error).__name__
    return "solved"


def test_valid_arguments_are_solved():
    from pycobre._native import lp

    for rows in (0, 100):
        model, solve = arguments(rows)
        solve[0] = lp.Model(*model)
        assert lp.Session().solve(*solve) is None


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (CHAINS, -1, "a range of chains"),
        (CHAINS, 2**31 - 1, "a range of chains"),
        (OPENINGS, -1, "the number of openings"),
        (PLAN, -1, "the number of patched places"),
        (PLAN, 1, "a patch vector that holds every patched place"),
        (STARTS, 1, "starting bases with rising starts of their cuts"),
        (STARTS, 3, "no starting basis, one, or one per chain"),
        (CUTS, -1, "the number of cuts"),
        (BEGIN, 2**31 - 1, "a range of chains"),
        (END, 3, "a range of chains"),
        (RETRIES, 0, "the block whose opening failed, to continue it"),
    ],
)
def test_inconsistent_counts_are_refused(place, value, expected):
    from pycobre._native import lp

    model, solve = arguments()
    solve[0], solve[place] = lp.Model(*model), value
    with pytest.raises(ValueError, match=f"^block: expected {expected}, got something else$"):
        lp.Session().solve(*solve)


def test_starting_bases_that_point_elsewhere_are_refused():
    from pycobre._native import lp

    for pool, slots, status in (([0, 9], [0], 0), ([1, 1], [0], 0), ([0, 1], [-5], 0), ([0, 1], [0], 9)):
        model, solve = arguments()
        solve[0], solve[STARTS] = lp.Model(*model), 1
        arrays = list(solve[1])
        arrays[6:11] = [
            np.ones(1, np.uint8),
            np.full(5, status, np.int8),
            np.ones(2, np.int8),
            np.array(pool, np.int32),
            np.array(slots, np.int32),
        ]
        solve[1] = tuple(arrays)
        with pytest.raises(ValueError, match=r"^block: expected starting bases"):
            lp.Session().solve(*solve)


def test_a_model_whose_indices_point_elsewhere_is_refused():
    from pycobre._native import lp

    model, _ = arguments()
    arrays = list(model[0])
    arrays[6] = np.array([0, 0, 0, 1, 0, 2], np.int32)  # the rows of the matrix
    with pytest.raises(
        ValueError, match=r"^model: expected sizes and indices that fit, got others in the matrix$"
    ):
        lp.Model(tuple(arrays), *model[1:])


def test_a_session_helps_a_team_once():
    from pycobre._native import lp

    leader, helper = lp.Session(), lp.Session()
    for team in ((helper, helper), (leader,)):
        with pytest.raises(ValueError, match=r"^a team: expected different sessions, got one twice$"):
            leader.lead(team, False)


def test_changed_arguments_are_solved_or_refused():
    """Whatever it is: this process is still there, and most changes were noticed."""
    code = "import test_lp_arguments as t; t.attack_many(0, 400)"
    done = _python(code, {})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ValueError" in done.stdout
    assert "solved" in done.stdout


@pytest.mark.slow
def test_changed_arguments_under_sanitizers(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    module = tmp_path / "lp.so"
    built = subprocess.run(
        [
            compiler,
            *("-std=c11", "-O1", "-g", "-shared", "-fPIC", "-ffp-contract=off"),
            *("-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
            f"-I{sysconfig.get_path('include')}",
            str(NATIVE / "lp.c"),
            *("-o", str(module), "-ldl", "-lrt", "-lpthread"),
        ],
        capture_output=True,
        text=True,
    )
    if "cannot find" in built.stderr:
        pytest.skip("the compiler has no address sanitizer")
    assert built.returncode == 0, built.stderr
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    code = f"import test_lp_arguments as t; t.attack_many(1000, 4000, {str(module)!r})"
    done = _python(
        code,
        {
            "LD_PRELOAD": runtime,
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "PYTHONMALLOC": "malloc",
        },
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert "runtime error" not in done.stderr
    assert "solved" in done.stdout


def _python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=1200,
    )


def attack_many(first: int, number: int, module: str | None = None) -> None:
    """Attack in this process, with the module at that path instead of the installed one; counts on stdout."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    from pycobre._native import lp

    if module is not None:
        spec = spec_from_file_location("lp", module, loader=ExtensionFileLoader("lp", module))
        assert spec is not None
        assert spec.loader is not None
        lp = module_from_spec(spec)
        spec.loader.exec_module(lp)
    lp.open_library(str(library_path()))
    counts: dict[str, int] = {}
    for seed in range(first, first + number):
        end = attack(lp, seed)
        counts[end] = counts.get(end, 0) + 1
    print(counts)
