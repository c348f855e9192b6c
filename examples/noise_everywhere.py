"""One joint noise in a right-hand side, a bound, a price and a matrix coefficient at once.

Then the problem goes to a file and comes back, byte for byte, without running any code on the way.
"""

import tempfile
from pathlib import Path

from pycobre.problem import Graph, Problem, build, solve_extensive_form

OUTCOMES = [
    {"yield": 1.0, "price": 4.0, "demand": 3.0, "contract": 2.0},
    {"yield": 0.5, "price": 6.0, "demand": 5.0, "contract": 1.0},
    {"yield": 2.0, "price": -1.0, "demand": 4.0, "contract": 4.0},
]


def stage(sp, t):
    planted = sp.state("planted", initial=0, upper=10)
    if t == 1:
        sp.maximise(-2 * planted.out)
        return
    w = sp.joint_noise(OUTCOMES, [0.5, 0.25, 0.25])
    sold = sp.variable("sold", upper=w["demand"])
    delivered, bought = sp.variables("delivered bought")
    sp.add(sold + delivered <= w["yield"] * planted.in_, "harvest")
    sp.add(delivered + bought == w["contract"], "contract")
    sp.maximise(w["price"] * sold - 5 * bought)


problem = build(Graph.linear(2), stage, upper_bound=100, name="trader")
value = solve_extensive_form(problem)
with tempfile.TemporaryDirectory() as directory:
    path = Path(directory) / "trader.problem"
    problem.save(path)
    loaded = Problem.load(path)
assert loaded.to_bytes() == problem.to_bytes()
assert solve_extensive_form(loaded) == value
print(f"expected profit {value:.4f}, fingerprint {problem.fingerprint[:16]}")
assert abs(value + 1.5) < 1e-9
