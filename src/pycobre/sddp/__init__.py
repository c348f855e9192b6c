"""The algorithm: stochastic dual dynamic programming over any communicator.

training            `train`: iterations that add cuts, checkpoints, the outcome
simulation          `simulate` a policy on scenarios, `DecisionRule` at a state
policy · cuts       what training leaves behind: cuts by node          exchange   cuts of SDDP.jl
stored              policies and checkpoints as they are read, every entry checked
node_keys           nodes by key, positions by `index`
plan · openings     a problem ordered for solving                      prepared   plan, openings and engine together
forward · starts    trajectories, and where their solves start         subproblems   solves by node and scenario
enumeration         every path of a graph, and the exact cost over all of them
risk · stopping · sampling · selection · interior · trajectories · options    choices, each a few small classes
codec               options as JSON values                             memory     bytes before a run
split · error_agreement     work by rank, errors that reach all ranks  numbers    sums in a fixed order
timing · reporter   seconds per rank, events to the listener
"""

from pycobre.sddp.cuts import Cuts
from pycobre.sddp.enumeration import Enumeration, count_paths
from pycobre.sddp.exchange import export_sddp_jl, import_sddp_jl
from pycobre.sddp.interior import InteriorPoints
from pycobre.sddp.memory import MemoryEstimate, estimate
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.policy import Policy, Value
from pycobre.sddp.prepared import PreparedProblem
from pycobre.sddp.risk import (
    ConvexCombination,
    CVaR,
    Entropic,
    Expectation,
    RiskMeasure,
    Weights,
    WorstCase,
    expectation_and_cvar,
    risk_weights,
)
from pycobre.sddp.sampling import FixedSet, Historical, InSample, OutOfSample, Paths, Sampler
from pycobre.sddp.selection import Domination, Level1, LimitedMemoryLevel1, Selection
from pycobre.sddp.simulation.decision import Decision, DecisionRule
from pycobre.sddp.simulation.recording import Record, Simulation
from pycobre.sddp.simulation.simulate import SimulateOptions, simulate
from pycobre.sddp.simulation.validation import path_costs
from pycobre.sddp.stopping import (
    AllOf,
    AnyOf,
    BoundStalling,
    Gap,
    IterationLimit,
    Progress,
    SimulatedGap,
    Stop,
    StoppingRule,
    TimeLimit,
)
from pycobre.sddp.timing import TimingTable
from pycobre.sddp.training.outcome import Checkpointer, Receipt, TrainingOutcome
from pycobre.sddp.training.state import History, TrainingState
from pycobre.sddp.training.train import train
from pycobre.sddp.trajectories import GrowingTrajectories

__all__ = [
    "AllOf",
    "AnyOf",
    "BoundStalling",
    "CVaR",
    "Checkpointer",
    "ConvexCombination",
    "Cuts",
    "Decision",
    "DecisionRule",
    "Domination",
    "Entropic",
    "Enumeration",
    "Expectation",
    "FixedSet",
    "Gap",
    "GrowingTrajectories",
    "Historical",
    "History",
    "InSample",
    "InteriorPoints",
    "IterationLimit",
    "Level1",
    "LimitedMemoryLevel1",
    "MemoryEstimate",
    "OutOfSample",
    "Paths",
    "Policy",
    "PreparedProblem",
    "Progress",
    "Receipt",
    "Record",
    "RiskMeasure",
    "Sampler",
    "Selection",
    "SimulateOptions",
    "SimulatedGap",
    "Simulation",
    "Stop",
    "StoppingRule",
    "TimeLimit",
    "TimingTable",
    "TrainOptions",
    "TrainingOutcome",
    "TrainingState",
    "Value",
    "Weights",
    "WorstCase",
    "count_paths",
    "estimate",
    "expectation_and_cvar",
    "export_sddp_jl",
    "import_sddp_jl",
    "path_costs",
    "risk_weights",
    "simulate",
    "train",
]
