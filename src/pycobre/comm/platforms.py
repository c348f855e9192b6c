"""Rank, size and coordinator of a tcp run from the variables that batch systems and clusters give every process.

    torchrun      RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; Kubeflow's and Ray's training jobs set the same
    Slurm         SLURM_PROCID and others (`slurm`)
    AWS Batch     AWS_BATCH_JOB_NODE_INDEX and others, of multi-node parallel jobs; the main node is rank 0
    Kubernetes    JOB_COMPLETION_INDEX, of Indexed Jobs and JobSets: the rank alone, so that COBRE_TCP_SIZE and
                  COBRE_TCP_COORDINATOR have to be set in the manifest

The first that the environment holds is asked, in this order: torchrun runs inside Slurm, and training jobs inside
Kubernetes. What is set by hand wins, and a rank set by hand turns all this off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pycobre._util.frozen import frozen
from pycobre.comm.slurm import slurm_size, slurm_variables
from pycobre.errors import InitializationFailed

__all__ = ["INDEXED_JOB", "Platform", "platform_of", "with_platform"]

Environ = Mapping[str, str]

INDEXED_JOB = "JOB_COMPLETION_INDEX"


@frozen()
class Platform:
    """How one platform tells its processes apart."""

    name: str
    recognised_by: tuple[str, ...]  #: the variables that are all there
    size_variables: Callable[
        [Environ], tuple[str, ...]
    ]  #: those that say how many processes there are, best first
    implied: Callable[[Environ], dict[str, str]]  #: COBRE_TCP_* variables that follow


def platform_of(environ: Environ) -> Platform | None:
    """The platform that started this process, as far as its variables tell."""
    for platform in PLATFORMS:
        if all(environ.get(variable) for variable in platform.recognised_by):
            return platform
    return None


def with_platform(environ: Environ) -> Environ:
    """`environ` with the COBRE_TCP_* variables that its platform implies and nobody has set."""
    platform = platform_of(environ)
    if platform is None or "COBRE_TCP_RANK" in environ:
        return environ
    return {**platform.implied(environ), **environ}


def _torchrun(environ: Environ) -> dict[str, str]:
    implied = {
        "COBRE_TCP_RANK": environ["RANK"],
        "COBRE_TCP_SIZE": environ["WORLD_SIZE"],
        "COBRE_TCP_COORDINATOR": environ["MASTER_ADDR"],
    }
    port = environ.get("MASTER_PORT", "")
    if port.isdecimal():
        # torchrun's own agent listens on MASTER_PORT itself, and says so.
        taken = environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"
        implied["COBRE_TCP_PORT"] = str(int(port) + taken)
    return implied


def _aws_batch(environ: Environ) -> dict[str, str]:
    index, main, size = (
        _whole(environ, f"AWS_BATCH_JOB_{name}") for name in ("NODE_INDEX", "MAIN_NODE_INDEX", "NUM_NODES")
    )
    implied = {"COBRE_TCP_RANK": str((index - main) % max(size, 1)), "COBRE_TCP_SIZE": str(size)}
    address = environ.get("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS")  # unset on the main node itself
    if address:
        implied["COBRE_TCP_COORDINATOR"] = address
    return implied


def _kubernetes(environ: Environ) -> dict[str, str]:
    return {"COBRE_TCP_RANK": environ[INDEXED_JOB]}


def _whole(environ: Environ, variable: str) -> int:
    value = environ[variable]
    if not value.isdecimal():
        raise InitializationFailed("tcp", f"{variable}: expected a whole number, got {value!r}")
    return int(value)


PLATFORMS = (
    Platform("torchrun", ("RANK", "WORLD_SIZE", "MASTER_ADDR"), lambda _: ("WORLD_SIZE",), _torchrun),
    Platform("Slurm", ("SLURM_PROCID",), slurm_size, slurm_variables),
    Platform(
        "AWS Batch",
        ("AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_MAIN_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"),
        lambda _: ("AWS_BATCH_JOB_NUM_NODES",),
        _aws_batch,
    ),
    Platform("Kubernetes", (INDEXED_JOB,), lambda _: (), _kubernetes),
)
