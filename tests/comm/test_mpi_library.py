"""Which MPI library is loaded, decided from variables and paths alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_environments import require_environment, variables

from pycobre.comm import MpiBackend, MpiRegion
from pycobre.comm.api import Communicator, SharedMemoryProvider, SharedRegion
from pycobre.comm.mpi.library import Launcher, find_launcher, search_path, wheel_prefixes
from pycobre.errors import BackendNotAvailable

PREFIXES = [Path("/env"), Path("/base")]


def launcher(family: str, program: str | None = None) -> Launcher:
    return Launcher(family, Path(program) if program else None, "X_SIZE", 2)


def test_the_users_choice_is_left_alone() -> None:
    assert search_path({"MPI4PY_LIBMPI": "/x/libmpi.so"}, launcher("MPICH"), PREFIXES) is None
    assert search_path({"MPI4PY_MPIABI": "openmpi"}, None, PREFIXES) is None


def test_the_library_beside_the_launcher_comes_first() -> None:
    path = search_path({}, launcher("Open MPI", "/opt/mpi/bin/prterun"), PREFIXES)
    assert path is not None
    entries = path.split(os.pathsep)
    assert entries[:2] == ["/opt/mpi/lib/libmpi.so.40", "/opt/mpi/lib64/libmpi.so.40"]
    # Then the family's from the loader and from wheels, then any, to be refused with an explanation.
    assert entries[2:] == [
        *("libmpi.so.40", "/env/lib/libmpi.so.40", "/base/lib/libmpi.so.40"),
        *("", "/env/lib", "/base/lib"),
    ]


def test_a_launcher_that_cannot_be_found_still_tells_the_family() -> None:
    path = search_path({}, launcher("MPICH"), PREFIXES)
    assert path is not None
    assert path.split(os.pathsep)[0] == "libmpi.so.12"


def test_without_a_launcher_the_systems_library_comes_before_a_wheels() -> None:
    assert search_path({}, None, PREFIXES) == os.pathsep.join(["", "/env/lib", "/base/lib"])


@pytest.mark.parametrize(
    ("environ", "family", "size"),
    [
        ({"PMI_SIZE": "4", "PMI_RANK": "1"}, "MPICH", 4),
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"}, "Open MPI", 3),
        # Open MPI's launcher inside a Slurm allocation.
        ({"OMPI_COMM_WORLD_SIZE": "3", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}, "Open MPI", 3),
        ({"PMI_SIZE": "many"}, "MPICH", 1),
    ],
)
def test_the_family_of_the_launcher(environ: dict[str, str], family: str, size: int) -> None:
    found = find_launcher(environ)
    assert found is not None
    assert (found.family, found.size) == (family, size)


@pytest.mark.parametrize(
    "environ",
    [{}, {"SLURM_PROCID": "1", "SLURM_STEP_ID": "0"}, {"PMI_SIZE": "4", "SLURM_STEP_ID": "0"}],
    ids=["none", "srun", "srun-pmi2"],
)
def test_where_the_family_cannot_be_known(environ: dict[str, str]) -> None:
    assert find_launcher(environ) is None


def test_the_launchers_program_is_found_among_the_ancestors(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "hydra_pmi_proxy"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    # A launcher is a program of its own; here a copy of the interpreter under its name, and a shell below.
    real = Path(sys.executable).resolve()
    program.unlink()
    program.write_bytes(real.read_bytes())
    program.chmod(0o755)
    ask = (
        "from pycobre.comm.mpi.library import find_launcher; print(find_launcher({'PMI_SIZE': '2'}).program)"
    )
    shell = f"'{sys.executable}' -c \"{ask}\"; true"
    outer = f"import subprocess, sys; sys.exit(subprocess.run(['sh', '-c', {shell!r}]).returncode)"
    environ = {
        **os.environ,
        "PYTHONHOME": sys.base_prefix,
        "LD_LIBRARY_PATH": str(real.parent.parent / "lib"),
    }
    result = subprocess.run([program, "-S", "-c", outer], capture_output=True, text=True, env=environ)
    assert result.stdout.strip() == str(program), result.stderr


def test_the_systems_library_is_loaded_where_there_is_one() -> None:
    wheel, system = require_environment("mpich"), require_environment("openmpi")
    ask = "from pycobre.comm.mpi import runtime; print(runtime._load().get_vendor()[0])"
    found = []
    for path in ("", str(system / "lib")):
        environ = {**os.environ, **variables("mpich"), "LD_LIBRARY_PATH": path}
        command = [wheel / "bin/python", "-c", ask]
        found.append(subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout)
    assert found == ["MPICH\n", "Open MPI\n"]


def test_wheels_are_looked_for_under_this_environment_first() -> None:
    assert wheel_prefixes()[0] == Path(sys.prefix)
    assert Path("/usr") not in wheel_prefixes()


def test_the_names_can_be_imported_where_there_is_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    assert issubclass(MpiBackend, Communicator)
    assert issubclass(MpiBackend, SharedMemoryProvider)
    assert issubclass(MpiRegion, SharedRegion)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(BackendNotAvailable, match=r'mpi4py is not installed: pip install "pycobre\[mpi\]"'):
        MpiBackend()
