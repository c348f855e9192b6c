"""Options of the solver are checked when they are given: none may give a wrong bound silently."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pycobre.errors import OptionError
from pycobre.solver import SolverOptions

NAN, INF = float("nan"), float("inf")
WHOLE = {
    "threads": "a whole number from 1 to 64",
    "pool_rows_per_round": "a whole number from 1 to 1000000",
    "pool_seed_rows": "a whole number from 0 to 1000000",
    "iteration_limit": "a whole number from 1 to 2147483647",
    "tableau_entries": "a whole number from 0 to 2147483647",
    "kernel_rows": "a whole number from 0 to 1000000",
}
TOLERANCES = {
    "primal_tolerance": "a tolerance from 1e-10 to 0.001",
    "dual_tolerance": "a tolerance from 1e-10 to 0.001",
    "pool_tolerance": "a tolerance from 1e-12 to 0.001",
}
OTHERS = [
    ("threads", 0, "0"),
    ("pool_rows_per_round", 0, "0"),
    ("iteration_limit", 0, "0"),
    ("scale", 1, "1"),
    ("scale", None, "None"),
    ("native", "yes", "'yes'"),
    ("bundles", 3, "3"),
]
EXPECTED = {
    **WHOLE,
    **TOLERANCES,
    "scale": "True or False",
    "native": "True, False or None",
    "bundles": "a directory or None",
}
CASES = [
    *((name, value, repr(value)) for name in WHOLE for value in (-1, 2**31, 1.5, True, "3", None)),
    *(
        (name, value, repr(value))
        for name in TOLERANCES
        for value in (NAN, INF, -1e-9, 0.0, 1.0, "1e-9", None)
    ),
    *OTHERS,
]


@pytest.mark.parametrize(("name", "value", "shown"), CASES)
def test_a_wrong_option_is_refused_by_name(name, value, shown):
    text = f"solver option {name}: expected {EXPECTED[name]}, got {shown}. Give another value."
    with pytest.raises(OptionError, match=re.escape(text)):
        SolverOptions(**{name: value})


def test_every_option_has_a_check():
    assert set(SolverOptions.__annotations__) == set(EXPECTED)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threads": np.int64(2), "pool_seed_rows": 0, "tableau_entries": 0, "kernel_rows": 0},
        {"primal_tolerance": 1e-10, "dual_tolerance": np.float64(1e-7), "pool_tolerance": 1e-12},
        {"scale": False, "native": False, "bundles": "failed"},
    ],
)
def test_sound_options_are_taken(options):
    assert SolverOptions(**options)
