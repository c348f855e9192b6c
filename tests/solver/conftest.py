"""Engines by path, so that each promise is tested on the compiled and on the pure-Python one."""

import pytest

from pycobre.solver import SolverOptions, create_engine
from pycobre.solver.native import why_not_native


@pytest.fixture(params=["native tableau", "native highs", "python tableau", "python highs"])
def engine(request):
    path, method = request.param.split()
    native = path == "native"
    if native and why_not_native() is not None:
        pytest.skip(f"no compiled path: {why_not_native()}")
    entries = 120_000 if method == "tableau" else 0
    with create_engine(SolverOptions(native=native, tableau_entries=entries)) as made:
        yield made
