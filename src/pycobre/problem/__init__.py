"""What is decided, when, and under which noise: multistage linear problems as data.

api            the data: Problem, Node, Noise, Arcs, State
graph          what can be known of a graph alone: order, cycles, reachability
policy_graph   Graph: nodes and arcs as they are written down
stage          Stage: the variables, rows and noise of one node as they are written down
expression     linear expressions whose coefficients may be noise
build          from a Graph and a function that fills its stages to a Problem
loaded         a node from an LP that exists already (highspy, arrays)
validate       what can be known to be wrong with a problem, over all its nodes
validate_node  the same of one node
check          solves single nodes and says which cannot be solved, and why
extensive      the deterministic equivalent: the whole tree as one LP
storage        the one byte form of a problem, and files
bounds         a bound on what follows a node, from the subproblems
formats        files of others: MSPFormat, StochOptFormat, SMPS
"""

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names
from pycobre.errors import ProblemError
from pycobre.problem.api import ROOT, Arcs, Boundary, Node, Noise, Problem, Sense, State
from pycobre.problem.build import build
from pycobre.problem.check import check_stages
from pycobre.problem.extensive import extensive_form, solve_extensive_form, tree_size
from pycobre.problem.graph import Shape
from pycobre.problem.loaded import LoadedLp, load_lp
from pycobre.problem.policy_graph import Graph
from pycobre.problem.stage import Stage
from pycobre.solver.highspy_lp import solve_lp, to_highs
from pycobre.solver.patch import patched

if TYPE_CHECKING:
    from pycobre.problem.formats import read, read_validation, write

__all__ = [
    "ROOT",
    "Arcs",
    "Boundary",
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
    "read",
    "read_validation",
    "solve_extensive_form",
    "solve_lp",
    "to_highs",
    "tree_size",
    "write",
]

__getattr__, __dir__ = lazy_names(__name__, {"formats": ("read", "read_validation", "write")})
