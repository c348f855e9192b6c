"""Random cases give the bounds that Cobre itself gives for the same files.

Cobre is not installed with this package: set PYCOBRE_COBRE_PYTHON to an interpreter that can import
`cobre` (0.18), and run with `-m slow`.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from random_case import FEATURES, random_case

from pycobre.app import train
from pycobre.hydro.files import write_case
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import ClassScheme, Enumerated, GapRule, IterationLimit, ScenarioSource

GRAPHS = ("tree", "recombining")  # have cases of their own
Trace = list[tuple[float, float]] | str
"""(lower, upper) bounds by iteration, or why there are none."""

PEER = os.environ.get("PYCOBRE_COBRE_PYTHON")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PEER, reason="PYCOBRE_COBRE_PYTHON names no interpreter with Cobre 0.18"),
]

RUN = """
import json, sys, tempfile, cobre.run
traces = {}
for path in sys.argv[1:]:
    trace = traces[path] = []
    note = lambda event: trace.append((event["lower_bound"], event["upper_bound"])) and None
    with tempfile.TemporaryDirectory() as out:
        try:
            cobre.run.run(path, out, threads=1, config_overrides={"simulation.enabled": False}, on_iteration=note)
        except Exception as problem:
            traces[path] = f"{type(problem).__name__}: {problem}"
print(json.dumps(traces))
"""

#: What Cobre refuses, or what makes plans that are not unique.
OURS = ("wild", "block_costs")

#: Seeds whose plans are unique in the first iteration: where several are optimal, solvers may differ in which.
MIXES = {
    100: "correlation evaporation generic sources random_load contracts pumping",
    101: "blocks lags correlation sources random_load contracts discount cvar groups entry segments",
    105: "blocks correlation limits diversion contracts pumping cvar",
    110: "blocks chronological lags fpha withdrawal random_load cvar",
    114: "fpha limits random_load contracts pumping discount overrides",
    117: "chronological correlation fpha diversion contracts pumping discount overrides segments",
    200: "blocks chronological evaporation",
    302: "chronological lags fpha generic limits withdrawal contracts discount overrides segments",
    203: "fpha groups",
    212: "blocks chronological generic",
    213: "blocks chronological fpha",
    700: "filling",
    702: "filling evaporation",
    703: "lags filling correlation cvar",
    704: "anticipated",
    705: "blocks anticipated discount",
    706: "anticipated lags cvar overrides",
    708: "filling withdrawal",
    709: "chronological filling blocks",
    710: "chronological anticipated blocks",
    215: "blocks chronological withdrawal",
    216: "blocks chronological lags",
    218: "fpha overrides",
    221: "generic limits",
    222: "entry evaporation",
    228: "fpha limits",
    400: "travel blocks lags evaporation limits",
    401: "travel groups diversion random_load discount",
    402: "travel fpha generic cvar overrides",
    403: "travel pumping withdrawal sources correlation",
    404: "travel chronological blocks",
    405: "travel chronological blocks lags evaporation limits",
    406: "travel chronological blocks fpha diversion discount cvar",
    407: "travel chronological blocks pumping overrides random_load generic",
    408: "travel chronological evaporation",
    410: "merged families",
    411: "merged families blocks limits random_load",
    412: "families chronological blocks lags",
    413: "merged families travel overrides discount cvar",
    500: "blocks by_block",
    501: "blocks by_block contracts pumping sources random_load",
    502: "blocks chronological by_block lags limits",
    503: "blocks by_block fpha generic",
    504: "blocks by_block travel chronological discount cvar",
    311: "chronological correlation evaporation fpha generic limits diversion discount cvar groups segments",
}


#: Trees of external scenarios, every path of which is walked. Without lags: with them Cobre's inflows are not
#: those of the scenarios.
TREES = {
    800: "tree",
    801: "tree discount",
    802: "tree diversion",
    803: "tree random_load sources",
    804: "tree cvar blocks",
    805: "tree discount cvar random_load",
    806: "tree evaporation generic limits",
    807: "tree blocks chronological withdrawal",
    808: "tree travel segments contracts",
    809: "tree filling",
}
#: Graphs whose paths meet again: the peer draws nodes by a stream of its own, so that only the ends are equal.
JOINED = {820: "recombining", 821: "recombining blocks discount", 822: "recombining lags generic"}


def walked(case: Case) -> Case:
    """Every path in every iteration, until the gap is closed."""
    rules = (IterationLimit(limit=40), GapRule(relative_tolerance=1e-7))
    training = replace(case.config.training, selection=Enumerated(), stopping_rules=rules)
    return replace(case, config=replace(case.config, training=training))


def trees() -> dict[str, Case]:
    return {f"tree {seed}": walked(random_case(seed, *names.split())) for seed, names in TREES.items()}


def joined() -> dict[str, Case]:
    return {
        f"joined {seed}": random_case(seed, *names.split(), openings=4, iterations=60, passes=4)
        for seed, names in JOINED.items()
    }


def cases() -> dict[str, Case]:
    single = {f: random_case(10 + i, f) for i, f in enumerate(FEATURES) if f not in (*OURS, *GRAPHS)}
    mixed = {
        f"mix {seed}": random_case(seed, *names.split(), openings=2 if 200 <= seed < 300 else 3)
        for seed, names in MIXES.items()
    }
    methods = {
        f"{method}{' with lags' * lags}": random_case(50, *["lags"] * lags, method=method, openings=6)
        for method in ("none", "truncation", "truncation_with_penalty")
        for lags in (0, 1)
        if lags or method != "none"  # without lags some inflow is negative, and nothing helps
    }
    fresh = {
        f"fresh {sampling} {' '.join(classes)}": out_of_sample(sampling, *classes)
        for sampling in ("saa", "lhs", "qmc_sobol")
        for classes in (("inflow",), ("load", "ncs"), ("inflow", "load", "ncs"))
    }
    return single | mixed | methods | fresh


def out_of_sample(sampling: str, *classes: str) -> Case:
    """Fresh noise in forward passes for these classes, by the stages' sampling method."""
    case = random_case(3, "sources", "random_load", "correlation", openings=4, passes=4, iterations=8)
    schemes = {name: ClassScheme(scheme="out_of_sample") for name in classes}
    training = replace(case.config.training, scenario_source=ScenarioSource(seed=77, **schemes))
    return replace(
        case,
        config=replace(case.config, training=training),
        stages=tuple(replace(stage, sampling_method=sampling) for stage in case.stages),
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Bounds by iteration of every case, from one run of the peer."""
    root = tmp_path_factory.mktemp("cases")
    paths: dict[str, Path] = {}
    for name, case in (cases() | trees() | joined()).items():
        paths[name] = root / name.replace(" ", "-")
        write_case(case, paths[name])
    assert PEER is not None
    command = [PEER, "-c", RUN, *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found[str(path)] for name, path in paths.items()}


@pytest.mark.parametrize("name", cases())
def test_bounds_are_the_peers(name: str, traces: dict[str, Trace]) -> None:
    assert not isinstance(traces[name], str), traces[name]
    history = train(cases()[name]).convergence_history
    lower, upper = history["lower_bound"].to_pylist(), history["upper_bound"].to_pylist()
    assert (lower[0], upper[0]) == pytest.approx(traces[name][0], rel=1e-9)
    assert lower[-1] == pytest.approx(traces[name][-1][0], rel=1e-7)


@pytest.mark.parametrize("name", trees())
def test_trees_have_the_peers_bounds_and_gap(name: str, traces: dict[str, Trace]) -> None:
    """The first exact upper bound depends on no cut; at the end both programs have closed the gap."""
    assert not isinstance(traces[name], str), traces[name]
    found = train(trees()[name])
    history = found.convergence_history
    lower, upper = history["lower_bound"].to_pylist(), history["upper_bound"].to_pylist()
    assert found.metadata["termination_reason"] == "gap"
    assert (lower[0], upper[0]) == pytest.approx(traces[name][0], rel=1e-9)
    assert (lower[-1], upper[-1]) == pytest.approx(traces[name][-1], rel=2e-9)


@pytest.mark.parametrize("name", joined())
def test_graphs_whose_paths_meet_again_end_at_the_peers_bound(name: str, traces: dict[str, Trace]) -> None:
    assert not isinstance(traces[name], str), traces[name]
    lower = train(joined()[name]).final_lower_bound
    assert lower == pytest.approx(traces[name][-1][0], rel=1e-6)
