"""The application: from a request to a directory of results, for Python, the command line and every launcher.

api            `train` and `simulate` as Python users call them
background     `start` and `Run`: a run that goes on while the caller does other things
arguments      checks of what callers pass
options        settings of a problem by dotted path
build_request  from what a caller passes to a request
request        what to run, as data that travels to workers
run            `Execution`: a request run here, as one rank of a launcher's job, or on workers
backend        the backends by name, and this process's communicator
job            the end of a launcher's job on an error
workers        the parent's side of `num_workers`: start ranks, pass events on, collect the report
restarts       another start from the newest checkpoint after a lost worker
worker         the main program of a started rank
progress       the numbers that a screen shows
notebook       a progress bar in a notebook
stop_switch    Ctrl-C, SIGTERM and callbacks that ask to stop
study          a request made concrete: problem, options, samplers, tables
pipeline       train, simulate and write, on any communicator; every rank calls it
share          the tables of all ranks on rank 0
output         the output directory as all ranks see it
run_directory  the output directory as rank 0 keeps it: locked, recorded, free of earlier runs
run_log        events.jsonl and status.json of a run in progress
rescue         the state of the last iteration, written when the run cannot go on
steering       what other processes ask of a run, applied at the end of an iteration
origin         what a run was made from, by which a resumed run notices a changed case
report         what a run returns
failures       from an exception to an exit code and a hint
streams        standard streams that are closed or that nobody reads
wording        amounts, durations and counts for people
results        a result directory: tables, files
case_sheets    a case as CSV files or a workbook, and back
answers        questions about cases and runs, answered from their files
tui            watching runs in a terminal
mcp            the server that assistants ask
cli            the command line
plot           reports and figures
"""

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names

if TYPE_CHECKING:
    from pycobre.app.api import SimulationResult, TrainingResult, WorkerInfo, simulate, train

__all__ = ["SimulationResult", "TrainingResult", "WorkerInfo", "simulate", "train"]

__getattr__, __dir__ = lazy_names(
    __name__, {"api": ("SimulationResult", "TrainingResult", "WorkerInfo", "simulate", "train")}
)
