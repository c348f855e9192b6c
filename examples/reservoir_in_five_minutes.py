"""A first multistage problem: one reservoir, one thermal plant, three stages of uncertain rain.

Write one function for a stage, build the problem, train a policy, and compare its bound with the exact answer, which
one large LP gives while the tree is small.
"""

import pycobre
from pycobre.problem import Graph, build, solve_extensive_form, tree_size


def stage(sp, t):
    volume = sp.state("volume", initial=200, upper=200)
    thermal, turbined, spilled = sp.variables("thermal turbined spilled")
    inflow = sp.noise([0, 50, 100], name="inflow")
    sp.add(volume.out == volume.in_ - turbined - spilled + inflow, "balance")
    sp.add(turbined + thermal == 150, "demand")
    sp.minimise(50 * t * thermal)


problem = build(Graph.linear(3), stage, lower_bound=0, name="reservoir")
exact = solve_extensive_form(problem)
print(f"{tree_size(problem)} vertices in the tree, expected cost {exact:.4f}")

result = pycobre.train(problem, {"forward_passes": 10, "iteration_limit": 12})
print(f"bound after {result.iterations} iterations {result.final_lower_bound:.4f}")
assert abs(exact - 25000 / 3) < 1e-6
assert abs(result.final_lower_bound - exact) < 1e-6
