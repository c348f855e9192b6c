"""A stage written with highspy's own variables; noise enters through a column that is fixed to it."""

import highspy

from pycobre.problem import Graph, build, load_lp, solve_extensive_form


def stage(sp, t):
    h = highspy.Highs()
    h.silent()
    before = h.addVariable(name="before")
    after = h.addVariable(0, 200, name="after")
    thermal, turbined, spilled = (h.addVariable(name=name) for name in ("thermal", "turbined", "spilled"))
    inflow = h.addVariable(name="inflow")
    h.addConstr(after == before - turbined - spilled + inflow, name="balance")
    h.addConstr(turbined + thermal == 150, name="demand")
    h.changeColCost(thermal.index, 50.0 * t)

    lp = load_lp(sp, h, states={"volume": (before, after)}, initial={"volume": 200})
    lp.fix(inflow, sp.noise([0, 50, 100], name="inflow"))


problem = build(Graph.linear(3), stage, lower_bound=0, name="from highspy")
value = solve_extensive_form(problem)
print(f"expected cost {value:.4f}")
assert abs(value - 25000 / 3) < 1e-6
