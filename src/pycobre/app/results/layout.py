"""The names of everything in a result directory.

run.json              the record: id of the run, its sessions, how each ended
status.json           how far the run is, replaced as it goes on
events.jsonl          every event of the run, one line each, appended
metadata.json         bounds, settings, names, machine; written at the end
manifest.json         size and hash of every result file; written last
control.jsonl         what other processes ask of the run
case.json             what the run was made from
study.json            its settings, and the system that is studied, for those who watch
policy/ training/ stochastic/ simulation/ checkpoints/ failed/
report.html plots/    written by `pycobre report`
export/               written by `pycobre export`
previous/ID/          an earlier run, whole
.lock                 the process that writes here
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = [
    "CHECKPOINTS",
    "CONTROL",
    "EVENTS",
    "EXPORT",
    "LOCK",
    "MANIFEST",
    "METADATA",
    "ORIGIN",
    "PREVIOUS",
    "RECORD",
    "RESULTS",
    "RUN",
    "SIMULATION",
    "STATUS",
    "STUDY",
    "default_output",
    "policy_file",
]

RECORD = "run.json"
STATUS = "status.json"
EVENTS = "events.jsonl"
EXPORT = "export"
METADATA = "metadata.json"
MANIFEST = "manifest.json"
ORIGIN = "case.json"
STUDY = "study.json"
CHECKPOINTS = "checkpoints"
PREVIOUS = "previous"
LOCK = ".lock"
CONTROL = "control.jsonl"

#: What a simulation replaces.
SIMULATION = (MANIFEST, "simulation", "report.html", "plots", EXPORT)
#: What a run leaves besides what it could be resumed from.
RESULTS = (*SIMULATION, METADATA, "training", "stochastic", "policy")
#: All of a run, the record last: while it is there, the rest still has to be moved.
RUN = (*RESULTS, CHECKPOINTS, ORIGIN, STUDY, "failed", CONTROL, EVENTS, STATUS, RECORD)


def default_output(case: str | os.PathLike[str]) -> Path:
    """Where the results of a case directory are unless another place is named."""
    return Path(case) / "output"


def policy_file(directory: str | os.PathLike[str]) -> Path:
    """The file of the trained policy in a result directory."""
    return Path(directory) / "policy" / "policy.cobre"
