"""An infinite horizon: a wet and a dry season in a ring, with a discount and a probability of going on.

A ring has no extensive form (its tree has no end), but it can be trained. Unrolled for more and more years it comes
closer to the same value; what is left out shrinks with discount² · probability each year.
"""

import pycobre
from pycobre.problem import Graph, ProblemError, build, extensive_form, solve_extensive_form

DISCOUNT, GO_ON = 0.9, 0.8


def stage(sp, t):
    wet = t % 2 == 1
    storage = sp.state("storage", initial=2, upper=4)
    released, spilled, thermal = sp.variables("released spilled thermal")
    inflow = sp.noise([1, 3], [0.25, 0.75], name="inflow") if wet else 0
    sp.add(storage.out == storage.in_ - released - spilled + inflow, "balance")
    sp.add(released + thermal == 2, "demand")
    sp.minimise((1 if wet else 4) * thermal)


ring = build(Graph.cyclic(2, probability=GO_ON, discount=DISCOUNT), stage, lower_bound=0, name="ring")
try:
    extensive_form(ring)
except ProblemError as error:
    print(error)

for years in (1, 2, 4, 8):
    graph = Graph()
    for t in range(1, 2 * years + 1):
        graph.add_node(t, stage=t, discount=DISCOUNT)
        graph.add_arc("root" if t == 1 else t - 1, t, GO_ON if t > 1 and t % 2 == 1 else 1.0)
    value = solve_extensive_form(build(graph, stage, lower_bound=0))
    print(f"{years} years: {value:.6f}")

result = pycobre.train(ring, {"forward_passes": 10, "iteration_limit": 30, "max_depth": 12})
print(f"for ever: {result.final_lower_bound:.6f}")
assert abs(result.final_lower_bound - 3.2932113636) < 1e-6
assert 0 <= result.final_lower_bound - value < 100 * (DISCOUNT**2 * GO_ON) ** years
