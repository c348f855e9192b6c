"""Cuts to and from SDDP.jl's JSON: the same values at any state, whatever the sense."""

import json
from pathlib import Path

import numpy as np
import pytest

from pycobre.comm import LocalBackend
from pycobre.errors import PolicyError
from pycobre.sddp import IterationLimit, Policy, TrainOptions, export_sddp_jl, import_sddp_jl, train
from pycobre.testing.problems import hydro_thermal, valley


@pytest.mark.parametrize("problem", [hydro_thermal(), valley(inflows=True, prices=False)], ids=["min", "max"])
def test_a_policy_survives_the_trip(problem: object, tmp_path: Path) -> None:
    options = TrainOptions(forward_passes=2, stopping=IterationLimit(5))
    policy = train(problem, LocalBackend(), options).policy
    export_sddp_jl(policy, tmp_path / "cuts.json")
    back = import_sddp_jl(tmp_path / "cuts.json", problem)
    rng = np.random.default_rng(1)
    for node, name in enumerate(policy.node_names):
        for _ in range(20):
            state = rng.uniform(0.0, 200.0, len(policy.state_names))
            mine, its = policy.evaluate(name, state), back.evaluate(index=node, state=state)
            assert its.value == pytest.approx(mine.value, rel=1e-12)
    warm = train(problem, LocalBackend(), TrainOptions(stopping=IterationLimit(1)), warm_start=back)
    assert abs(warm.lower_bound - policy.sense.sign * policy.lower_bound) < 1e-6 * abs(warm.lower_bound) or (
        policy.sense.sign * (warm.lower_bound - policy.sense.sign * policy.lower_bound) > 0
    )


def test_the_file_is_what_sddp_jl_writes(tmp_path: Path) -> None:
    """θ ≥ 7 + 2 (v − 100) at stage 1, as SDDP.jl would note a cut made at v = 100."""
    cut = {"intercept": 7.0, "coefficients": {"volume": 2.0}, "state": {"volume": 100.0}}
    entry = {"node": "1", "single_cuts": [cut], "multi_cuts": [], "risk_set_cuts": []}
    (tmp_path / "cuts.json").write_text(json.dumps([entry]))
    policy = import_sddp_jl(tmp_path / "cuts.json", hydro_thermal())
    name = hydro_thermal().states[0].name
    assert name == "volume"
    assert policy.evaluate(1, [130.0]).value == pytest.approx(67.0)
    assert policy.evaluate(2, [130.0]).value == 0.0


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "not a JSON file"),
        ("{}", "expected a list of nodes, as SDDP.jl writes it, got dict"),
        ('[{"node": "9", "single_cuts": []}]', "has no node '9'"),
        ('[{"node": "1"}]', "lacks or misspells 'single_cuts'"),
        ('[{"node": "1", "single_cuts": [], "multi_cuts": [{}]}]', "expected single cuts, got multi-cuts"),
        ('[{"node": "1", "single_cuts": [{"intercept": 1, "coefficients": {"x": 1}}]}]', "has no state 'x'"),
        ('[{"node": "1", "single_cuts": [{"intercept": NaN, "coefficients": {}}]}]', "expected finite cuts"),
    ],
)
def test_what_is_not_such_a_file_is_refused(content: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "cuts.json").write_text(content)
    with pytest.raises(PolicyError, match=text):
        import_sddp_jl(tmp_path / "cuts.json", hydro_thermal())
    with pytest.raises(PolicyError, match="cannot read the cut file"):
        import_sddp_jl(tmp_path / "none.json", hydro_thermal())


def test_a_policy_sums_itself_up() -> None:
    policy: Policy = train(hydro_thermal(), LocalBackend(), TrainOptions(stopping=IterationLimit(2))).policy
    text = policy.summary()
    assert policy.digest in text
    assert "cuts         40 (40 active), 20 to 20 per node" in text
