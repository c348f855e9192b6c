"""Engines by path, so that each promise is tested on the compiled and on the pure-Python one."""

import pytest

from pycobre.solver import SolverOptions, create_engine
from pycobre.solver.native import why_not_native

METHODS = {
    "tableau": {"tableau_entries": 120_000, "kernel_rows": 0},
    "kernel": {"tableau_entries": 0, "kernel_rows": 10_000},
    "highs": {"tableau_entries": 0, "kernel_rows": 0},
}


@pytest.fixture(params=[f"{path} {method}" for path in ("native", "python") for method in METHODS])
def engine(request):
    path, method = request.param.split()
    native = path == "native"
    if native and why_not_native() is not None:
        pytest.skip(f"no compiled path: {why_not_native()}")
    with create_engine(SolverOptions(native=native, **METHODS[method])) as made:
        yield made
