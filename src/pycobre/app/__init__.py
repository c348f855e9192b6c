"""The one pipeline behind Python, the command line and every launcher.

request    what to run, as data that travels to workers
study      a request made concrete: problem, options, samplers, tables
pipeline   train, simulate and write, on any communicator; every rank calls it
report     what a run hands back
workers    the parent's side of `num_workers`: start ranks, pass events on, collect the report
worker     a started rank's main program
stopping   Ctrl-C, SIGTERM and callbacks that ask to stop
arguments  what callers may pass
options    settings of a problem by dotted path
api        `train` and `simulate` as Python users call them
"""

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names

if TYPE_CHECKING:
    from pycobre.app.api import SimulationResult, TrainingResult, WorkerInfo, simulate, train

__all__ = ["SimulationResult", "TrainingResult", "WorkerInfo", "simulate", "train"]

__getattr__, __dir__ = lazy_names(
    __name__, {"api": ("SimulationResult", "TrainingResult", "WorkerInfo", "simulate", "train")}
)
