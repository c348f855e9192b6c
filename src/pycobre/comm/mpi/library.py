"""Which MPI library mpi4py loads: the one that belongs to the launcher.

An MPI library and the launcher that starts its processes must be of one family, or every process believes to
be alone. mpi4py's wheels work with any library and by themselves prefer one installed from a wheel beside
them, which under a cluster's own launcher is the wrong one. The order here is:

    MPI4PY_LIBMPI or MPI4PY_MPIABI set    the user's choice; nothing is changed
    the launcher is an ancestor           the library beside it, then any of its family
    srun, or no launcher at all           what the system's loader finds, then a wheel's

An mpi4py that was compiled for one library uses that one, and ignores all this.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pycobre._util.frozen import frozen

# The version of the library's interface is part of its file name, and tells the family.
_FILES = {"MPICH": "libmpi.so.12", "Open MPI": "libmpi.so.40"}
_LAUNCHERS = {
    "hydra_pmi_proxy": "MPICH",
    "mpiexec.hydra": "MPICH",
    "mpiexec.gforker": "MPICH",
    "prterun": "Open MPI",
    "prted": "Open MPI",
    "prte": "Open MPI",
    "orterun": "Open MPI",
    "orted": "Open MPI",
}
_ANCESTORS = 16  # a launcher may start a shell, a profiler and a wrapper before Python


@frozen()
class Launcher:
    """What started this process: the family of MPI it belongs to, its program where known, and its ranks."""

    family: str
    program: Path | None
    announced: str
    size: int

    def __str__(self) -> str:
        where = f" ({self.program})" if self.program else ""
        return f"the launcher of {self.family}{where}"

    @property
    def library(self) -> Path:
        """Where a library that this launcher knows is likely to be."""
        prefix = self.program.parent.parent if self.program else Path("/path/to/it")
        return prefix / "lib" / _FILES[self.family]


def find_launcher(environ: Mapping[str, str], process: int | None = None) -> Launcher | None:
    """The MPI launcher of this process, or None where there is none or its family cannot be known (srun)."""
    if "OMPI_COMM_WORLD_SIZE" in environ:
        family, announced = "Open MPI", "OMPI_COMM_WORLD_SIZE"
    elif "PMI_SIZE" in environ:
        family, announced = "MPICH", "PMI_SIZE"
    else:
        return None
    value = environ[announced]
    size = int(value) if value.isdecimal() else 1
    start = os.getpid() if process is None else process
    program = next((path for path in _ancestors(start) if _LAUNCHERS.get(path.name) == family), None)
    if program is None and "SLURM_STEP_ID" in environ:
        return None  # srun speaks the protocols of both families
    return Launcher(family, program, announced, size)


def search_path(environ: Mapping[str, str], launcher: Launcher | None, prefixes: list[Path]) -> str | None:
    """The value of MPI4PY_LIBMPI for the import of mpi4py; None to leave the user's choice alone.

    An empty entry stands for the loader's own search (LD_LIBRARY_PATH, the system's cache).
    """
    if environ.get("MPI4PY_LIBMPI") or environ.get("MPI4PY_MPIABI"):
        return None
    entries: list[str] = []
    if launcher is not None:
        file = _FILES[launcher.family]
        if launcher.program is not None:
            beside = launcher.program.parent.parent
            entries += [str(beside / library / file) for library in ("lib", "lib64")]
        entries += [file, *(str(prefix / "lib" / file) for prefix in prefixes)]
    # Also after a known family: a library of the wrong one is loaded and then refused with an explanation.
    entries += ["", *(str(prefix / "lib") for prefix in prefixes)]
    return os.pathsep.join(entries)


def wheel_prefixes() -> list[Path]:
    """Where wheels put their libraries: under this environment, the user's site, the interpreter."""
    prefixes = [sys.prefix]
    if site.ENABLE_USER_SITE:
        prefixes.append(site.getuserbase())
    prefixes.append(sys.base_prefix)
    # The system's own directories are the loader's business.
    return [Path(prefix) for prefix in dict.fromkeys(prefixes) if prefix != "/usr"]


def _ancestors(process: int) -> Iterator[Path]:
    """The programs of a process's parents, nearest first, as far as the system lets us look."""
    for _ in range(_ANCESTORS):
        try:
            # The name in parentheses may itself contain spaces and parentheses.
            status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            process = int(status[1])
            yield Path(os.readlink(f"/proc/{process}/exe"))
        except OSError:
            return
