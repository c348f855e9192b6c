"""Rank, size and coordinator of a tcp run from the variables that SLURM gives every task.

    srun pycobre run CASE --backend tcp       in a batch script that exports COBRE_TCP_TOKEN

The coordinator is the first host of the step's node list, where SLURM places task 0; the port follows from the job's
number, so that two jobs on one host do not meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pycobre.errors import InitializationFailed

__all__ = ["first_host", "slurm_size", "slurm_variables"]

_FIRST_PORT, _PORTS = 30000, 20000
_HOST = re.compile(r"(?P<prefix>[^\[,]+)(?:\[(?P<numbers>[^\]]+)\])?(?P<suffix>[^,\[]*)")


def slurm_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The COBRE_TCP_* variables that SLURM's imply."""
    implied = {"COBRE_TCP_RANK": environ["SLURM_PROCID"]}
    size = environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS")
    if size:
        implied["COBRE_TCP_SIZE"] = size
    hosts = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST")
    if hosts:
        implied["COBRE_TCP_COORDINATOR"] = first_host(hosts)
    job = environ.get("SLURM_JOB_ID", "")
    if job.isdigit():
        implied["COBRE_TCP_PORT"] = str(_FIRST_PORT + int(job) % _PORTS)
    return implied


def slurm_size(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that say how many tasks were started.

    In a batch script SLURM sets the job's number of tasks for one process; only srun starts one per task.
    """
    if "SLURM_STEP_ID" in environ or "SLURM_JOB_ID" not in environ:
        return ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    return ()


def first_host(hosts: str) -> str:
    """The first name of a node list such as `node[003-017,021],gpu1`."""
    found = _HOST.match(hosts)
    if found is None:
        raise InitializationFailed("tcp", f"SLURM's node list: expected host names, got {hosts!r}")
    numbers = found["numbers"]
    first = re.split("[-,]", numbers)[0] if numbers else ""
    return f"{found['prefix']}{first}{found['suffix']}"
