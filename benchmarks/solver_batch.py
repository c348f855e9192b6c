"""What our batch call costs on top of HiGHS, and what a solve costs by each method.

    python -m benchmarks.solver_batch [--rounds 7] [--quick] [--json FILE]

First table: the same HiGHS solves with all pool rows in the LP, by a loop in C (the floor), by one native
call, by the pure-Python path; and the C loop without its reset per chain. Second table: the ways to solve
late in training (all rows in HiGHS, lazy rows in HiGHS, lazy rows in the tableau). Candidates take turns in
every round, so that a busy machine disturbs all alike; times are CPU times,
and the quietest round of each counts. Needs a C compiler.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import solver_models
from benchmarks.harness.cells import Cell, arguments, finish
from benchmarks.solver_models import Call
from pycobre.solver import CutView, SolveCall, SolverOptions, create_engine
from pycobre.solver.explicit import explicit_lp
from pycobre.solver.native import library_path
from pycobre.solver.prepare import prepare

HERE = Path(__file__).parent
Candidate = Callable[[], float]  # seconds of one round


class Floor:
    """The C loop on the scaled LP of a call, all pool rows written out."""

    def __init__(self, library: ctypes.CDLL, call: Call) -> None:
        self.library, self.call = library, call
        prepared = prepare(call.model, True)
        template = call.model.template
        full = explicit_lp(
            call.model, call.x[0], call.values[0], call.pool, np.arange(call.pool.count, dtype=np.int32)
        )
        row_scale = np.concatenate([prepared.row_scale, np.full(call.pool.count, prepared.cut_factor)])
        column = np.repeat(np.arange(template.num_cols), np.diff(full.starts))
        self.cost = prepared.cost
        self.lower, self.upper = prepared.col_lower, prepared.col_upper
        self.row_lower, self.row_upper = full.row_lower * row_scale, full.row_upper * row_scale
        self.starts, self.rows = full.starts, full.rows
        self.values = full.values * row_scale[full.rows] * prepared.col_scale[column]
        self.x = np.ascontiguousarray((call.x * prepared.input_factor)[:, prepared.input_at])
        self.input_set, self.row_set = prepared.input_set, prepared.row_set
        self.rhs = np.ascontiguousarray(call.values * prepared.row_set_factor)
        self.cost_scale = prepared.cost_scale
        self.columns = call.start.col_status.astype(np.int32)
        rows = np.ones((len(call.x), template.num_rows + call.pool.count), np.int32)
        rows[:, : template.num_rows] = call.start.row_status
        for i in range(len(call.x)):
            rows[i, template.num_rows + call.start.slots(i)] = 0
        self.row_status = rows

    def run(self, reset: bool) -> tuple[float, np.ndarray]:
        chains, openings = len(self.call.x), len(self.call.values)
        objective = np.zeros((chains, openings))
        scratch = np.zeros((2, self.cost.size))
        seconds = ctypes.c_double()
        path = str(library_path()).encode()

        def p(array: np.ndarray) -> ctypes.c_void_p:
            return ctypes.c_void_p(array.ctypes.data)

        failed = self.library.loop(
            path,
            *(chains, openings, self.cost.size, self.row_lower.size, self.values.size, ctypes.c_double(0.0)),
            *(p(self.cost), p(self.lower), p(self.upper), p(self.row_lower), p(self.row_upper)),
            *(p(self.starts), p(self.rows), p(self.values)),
            *(self.input_set.size, p(self.input_set), p(self.x)),
            *(self.row_set.size, p(self.row_set), p(self.rhs)),
            *(p(self.columns), p(self.row_status), int(reset)),
            *(p(objective), p(scratch[0]), p(scratch[1]), ctypes.byref(seconds)),
        )
        assert failed == 0
        return seconds.value, objective / self.cost_scale


def compile_loop(directory: Path) -> ctypes.CDLL:
    target = directory / "solver_loop.so"
    source = HERE / "solver_loop.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", target, source, "-ldl"], check=True)
    return ctypes.CDLL(str(target))


def ours(call: Call, *, lazy: bool, **options: object) -> tuple[Candidate, Callable[[], np.ndarray]]:
    engine = create_engine(SolverOptions(**options))  # type: ignore[arg-type]

    def solve() -> np.ndarray:
        trial_point = call.trial_point if lazy else None
        block = engine.solve(
            SolveCall(
                call.model,
                call.x,
                call.values,
                call.pool,
                start=call.start,
                trial_point=trial_point,
                lazy=lazy,
            )
        )
        return block.objective

    def timed() -> float:
        begin = time.thread_time()
        solve()
        return time.thread_time() - begin

    return timed, solve


def best(candidates: dict[str, Candidate], rounds: int) -> dict[str, float]:
    """The quietest of `rounds` rounds of each candidate, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            times[name].append(candidate())
    return {name: min(values) for name, values in times.items()}


def overhead(library: ctypes.CDLL, label: str, call: Call, rounds: int) -> list[Cell]:
    floor = Floor(library, call)
    native, solve = ours(call, lazy=False, tableau_entries=0, kernel_rows=0)
    python, _ = ours(call, lazy=False, tableau_entries=0, kernel_rows=0, native=False)
    np.testing.assert_allclose(solve(), floor.run(True)[1], rtol=1e-7)
    took = best(
        {
            "C": lambda: floor.run(True)[0],
            "native": native,
            "python": python,
            "no reset": lambda: floor.run(False)[0],
        },
        rounds,
    )
    solves = len(call.x) * len(call.values)
    each = {name: 1e6 * seconds / solves for name, seconds in took.items()}
    reset = 1e6 * (took["C"] - took["no reset"]) / len(call.x)
    print(
        f"{label:24} {each['C']:10.1f} {each['native']:10.1f} {100 * (each['native'] / each['C'] - 1):+7.1f} % "
        f"{each['python']:10.1f} {100 * (each['python'] / each['C'] - 1):+7.1f} % {reset:12.0f}"
    )
    cells = [Cell(label, name, value, "µs per solve") for name, value in each.items()]
    for name in ("native", "python"):
        cells.append(Cell(label, f"{name} over C", 100 * (each[name] / each["C"] - 1), "%"))
    return [*cells, Cell(label, "reset", reset, "µs per chain")]


def methods(label: str, call: Call, rounds: int) -> list[Cell]:
    candidates = {
        "all rows": ours(call, lazy=False, tableau_entries=0, kernel_rows=0)[0],
        "lazy": ours(call, lazy=True, tableau_entries=0, kernel_rows=0)[0],
        "tableau": ours(call, lazy=True, tableau_entries=10**9)[0],
    }
    took = best(candidates, rounds)
    solves = len(call.x) * len(call.values)
    rates = {name: solves / seconds for name, seconds in took.items()}
    print(
        f"{label:24} {rates['all rows']:12,.0f} {rates['lazy']:12,.0f} {rates['tableau']:12,.0f} "
        f"{rates['lazy'] / rates['all rows']:8.1f} {rates['tableau'] / rates['all rows']:8.1f}"
    )
    return [Cell(label, name, rate, "solves per second") for name, rate in rates.items()]


def shortened(call: Call, rows: int, chains: int) -> Call:
    """The call with the newest `rows` of its pool, and bases that name no others."""
    keep = slice(call.pool.count - rows, call.pool.count)
    pool = CutView(call.pool.intercept[keep].copy(), call.pool.slope[keep].copy(), rows)
    with create_engine(SolverOptions()) as engine:
        first = engine.solve(SolveCall(call.model, call.x[:chains], call.values[:1], pool, want_basis=True))
    assert first.basis is not None
    return replace(
        call, x=call.x[:chains], pool=pool, start=first.basis, trial_point=first.output[:, 0].copy()
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    cells: list[Cell] = []
    small = solver_models.train(solver_models.small(), 200 if options.quick else 1000, 20)
    with tempfile.TemporaryDirectory() as directory:
        library = compile_loop(Path(directory))
        print(
            "µs per solve, all pool rows in the LP; overhead over the C loop; µs of one reset (per chain of openings)"
        )
        print(f"{'':24} {'C loop':>10} {'native':>10} {'':9} {'python':>10} {'':9} {'reset':>12}")
        for rows in (0, 50, 200) if options.quick else (0, 50, 200, 1000):
            call = shortened(small, rows, 20)
            cells += overhead(library, f"small, {rows} pool rows", call, options.rounds)
        if not options.quick:
            large = solver_models.train(solver_models.large(), 60, 6)
            for rows in (0, 50):
                call = shortened(large, rows, 3)
                cells += overhead(library, f"large, {rows} pool rows", call, max(3, options.rounds // 2))
    print("\nsolves per second of one core, late in training; ratios to all rows in the LP")
    print(f"{'':24} {'all rows':>12} {'lazy':>12} {'tableau':>12} {'lazy':>8} {'tableau':>8}")
    for rows in (200,) if options.quick else (200, 1000):
        cells += methods(f"small, {rows} pool rows", shortened(small, rows, 20), options.rounds)
    finish(options, "solver_batch", cells)


if __name__ == "__main__":
    main()
