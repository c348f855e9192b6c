"""A study before a policy of Cobre gives the bounds that Cobre itself gives for the same files.

Cobre is not installed with this package: set PYCOBRE_COBRE_PYTHON to an interpreter that can import `cobre` (0.18),
and run with `-m slow`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from random_case import random_case
from test_boundary_policies import shortened

from pycobre.app import train
from pycobre.hydro.files import load_case, write_case

PEER = os.environ.get("PYCOBRE_COBRE_PYTHON")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PEER, reason="PYCOBRE_COBRE_PYTHON names no interpreter with Cobre 0.18"),
]

RUN = """
import json, sys, cobre.run
trace = []
note = lambda event: trace.append((event["lower_bound"], event["upper_bound"])) and None
cobre.run.run(sys.argv[1], sys.argv[2], threads=1, on_iteration=note)
print(json.dumps(trace))
"""

MIXES = {
    950: "",
    951: "discount",
    952: "lags discount",
    953: "travel",
    954: "blocks chronological evaporation",
    955: "lags sources random_load cvar",
    956: "generic limits withdrawal",
}


def run(case: Path, output: Path) -> list[tuple[float, float]]:
    assert PEER is not None
    command = [PEER, "-c", RUN, str(case), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [tuple(pair) for pair in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("seed", MIXES)
def test_bounds_before_a_policy_of_the_peer_are_its_own(seed: int, tmp_path: Path) -> None:
    case = random_case(seed, *MIXES[seed].split(), stages=4, iterations=40)
    write_case(case, tmp_path / "long")
    run(tmp_path / "long", tmp_path / "theirs")
    write_case(shortened(case, 2, "../theirs/policy"), tmp_path / "short")
    theirs = run(tmp_path / "short", tmp_path / "out")
    history = train(load_case(tmp_path / "short")).convergence_history
    lower, upper = history["lower_bound"].to_pylist(), history["upper_bound"].to_pylist()
    assert (lower[0], upper[0]) == pytest.approx(theirs[0], rel=1e-9)
    assert lower[-1] == pytest.approx(theirs[-1][0], rel=1e-7)
