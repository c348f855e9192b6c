"""What figures were measured on: processor, cores, kernel, load, versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pycobre

__all__ = ["Machine", "look"]

_PACKAGES = ("numpy", "highspy", "pyarrow", "mpi4py", "matplotlib")


@dataclass(frozen=True)
class Machine:
    """A machine at one moment."""

    time: str
    processor: str
    cores: int
    usable_cores: int
    memory_gb: float
    kernel: str
    governor: str  #: how the clock rate is chosen; empty where the machine does not say
    load: tuple[float, float, float]
    python: str
    pycobre: str
    packages: dict[str, str]

    def lines(self) -> list[str]:
        """For people."""
        load = " ".join(f"{value:.2f}" for value in self.load)
        packages = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        return [
            f"{self.processor}, {self.usable_cores} of {self.cores} cores, {self.memory_gb:.0f} GB",
            f"Linux {self.kernel}{f', governor {self.governor}' if self.governor else ''}",
            f"load {load} at {self.time}",
            f"Python {self.python}, pycobre {self.pycobre}, {packages}",
        ]

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def look() -> Machine:
    """This machine, now."""
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return Machine(
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        usable_cores=len(os.sched_getaffinity(0)),
        memory_gb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        kernel=platform.release(),
        governor=governor.read_text().strip() if governor.exists() else "",
        load=os.getloadavg(),
        python=platform.python_version(),
        pycobre=pycobre.__version__,
        packages={name: version for name in _PACKAGES if (version := _version(name))},
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
