"""What is decided, when, and under which noise: multistage linear problems as data.

`api` holds the data, `Graph` and `build` write it down, `extensive_form` turns it into one LP.
"""

from pycobre.errors import ProblemError
from pycobre.problem.api import ROOT, Arcs, Node, Noise, Problem, Sense, State
from pycobre.problem.build import build
from pycobre.problem.check import check_stages
from pycobre.problem.extensive import extensive_form, solve_extensive_form, tree_size
from pycobre.problem.graph import Shape
from pycobre.problem.highs import solve_lp, to_highs
from pycobre.problem.loaded import LoadedLp, load_lp
from pycobre.problem.patch import patched
from pycobre.problem.policy_graph import Graph
from pycobre.problem.stage import Stage

__all__ = [
    "ROOT",
    "Arcs",
    "Graph",
    "LoadedLp",
    "Node",
    "Noise",
    "Problem",
    "ProblemError",
    "Sense",
    "Shape",
    "Stage",
    "State",
    "build",
    "check_stages",
    "extensive_form",
    "load_lp",
    "patched",
    "solve_extensive_form",
    "solve_lp",
    "to_highs",
    "tree_size",
]
