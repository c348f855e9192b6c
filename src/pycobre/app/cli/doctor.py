"""`pycobre doctor`: what works on this machine, and why the rest does not."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pycobre
from pycobre import _native
from pycobre.comm import available_backends
from pycobre.comm.select import mpi_launch_variable

_GIB = 1024**3
_SHM_MOUNT = Path("/dev/shm")
_SOLVERS = ("highspy",)
_PACKAGES = ("numpy", "pyarrow", "mpi4py", "plotly", "matplotlib")


@dataclass(frozen=True)
class Backend:
    """One backend; `reason` is empty where it is available."""

    name: str
    available: bool
    reason: str


@dataclass(frozen=True)
class Diagnosis:
    """Everything the doctor looks at; None where it does not exist here."""

    version: str
    python: str
    platform: str
    cores: int
    usable_cores: int
    memory_bytes: int
    shm_bytes: int | None
    shm_free_bytes: int | None
    backends: list[Backend]
    launcher: str | None
    mpiexec: str | None
    native: dict[str, bool]
    solvers: dict[str, str | None]
    packages: dict[str, str | None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the format of the output."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; finding something missing is not a failure."""
    diagnosis = diagnose(os.environ)
    print(json.dumps(asdict(diagnosis), indent=2) if arguments.json else show(diagnosis))
    return 0


def diagnose(environ: Mapping[str, str]) -> Diagnosis:
    """Look at this machine. Nothing is started, and neither MPI nor a solver is imported."""
    mount = os.statvfs(_SHM_MOUNT) if _SHM_MOUNT.is_dir() else None
    return Diagnosis(
        version=pycobre.__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        platform=platform.platform(),
        cores=os.cpu_count() or 1,
        usable_cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        shm_bytes=mount.f_frsize * mount.f_blocks if mount else None,
        shm_free_bytes=mount.f_frsize * mount.f_bavail if mount else None,
        backends=[Backend(name, *status) for name, status in available_backends().items()],
        launcher=mpi_launch_variable(environ),
        mpiexec=shutil.which("mpiexec", path=environ.get("PATH")),
        native=_native_modules(),
        solvers={name: _version(name) for name in _SOLVERS},
        packages={name: _version(name) for name in _PACKAGES},
    )


def show(diagnosis: Diagnosis) -> str:
    """The diagnosis for people, at most 80 columns wide but for long reasons."""
    d = diagnosis
    lines = [
        f"pycobre    {d.version}",
        f"python     {d.python}",
        f"platform   {d.platform}",
        f"cores      {d.cores} ({d.usable_cores} usable)",
        f"memory     {d.memory_bytes / _GIB:.1f} GiB",
        f"/dev/shm   {_show_mount(d)}",
        f"launcher   {f'{d.launcher} is set' if d.launcher else 'none detected'}",
        f"mpiexec    {d.mpiexec or 'not on PATH'}",
        "",
        "backends",
        *(f"  {'yes' if b.available else 'no ':3}  {b.name:6} {b.reason}".rstrip() for b in d.backends),
        "",
        "native modules",
        *(f"  {'yes' if built else 'no ':3}  {name}" for name, built in d.native.items()),
        "",
        "solvers and packages",
        *(f"  {version or 'absent':10} {name}" for name, version in (d.solvers | d.packages).items()),
    ]
    return "\n".join(lines)


def _show_mount(diagnosis: Diagnosis) -> str:
    if diagnosis.shm_bytes is None or diagnosis.shm_free_bytes is None:
        return "not mounted"
    return f"{diagnosis.shm_bytes / _GIB:.2f} GiB, {diagnosis.shm_free_bytes / _GIB:.2f} GiB free"


def _native_modules() -> dict[str, bool]:
    """Each native module the package may have, by its type stub, and whether it was built and loads."""
    directory = Path(_native.__path__[0])
    return {stub.stem: _loads(f"pycobre._native.{stub.stem}") for stub in sorted(directory.glob("*.pyi"))}


def _loads(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
