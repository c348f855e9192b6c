"""Prices that follow a Markov chain: the nodes of the graph are pairs of stage and price level."""

from pycobre.problem import Graph, build, solve_extensive_form

LEVELS = [10.0, 30.0]
STAY = [[0.75, 0.25], [0.25, 0.75]]


def stage(sp, node):
    t, level = node
    stock = sp.state("stock", initial=4, upper=10)
    sold = sp.variable("sold", upper=3)
    arrivals = sp.noise([0, 2], [0.5, 0.5], name="arrivals") if t > 1 else 0
    sp.add(stock.out <= stock.in_ - sold + arrivals, "balance")
    sp.maximise(LEVELS[level] * sold)


graph = Graph.markov([[[1.0, 0.0]], STAY, STAY])
problem = build(graph, stage, upper_bound=1000, name="prices")
print(f"expected income {solve_extensive_form(problem):.4f} over {len(problem.nodes)} nodes")
unreachable = [node.name for i, node in enumerate(problem.nodes) if not problem.shape.reachable[i]]
print("nodes no path reaches:", unreachable)
assert abs(solve_extensive_form(problem) - 88.75) < 1e-6
