"""Every benchmark by name: modules of this room run anywhere, scripts only beside a checkout of the sources."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pycobre._util.suggest import did_you_mean
from pycobre.errors import OptionError

__all__ = ["CATALOGUE", "Benchmark", "find_scripts", "select"]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: a module of this room, or a script of the repository (then `module` is empty)."""

    name: str
    purpose: str
    module: str = ""
    part: str = ""

    @property
    def script(self) -> str:
        """Its file in `benchmarks/`; empty for a module."""
        return "" if self.module else f"{self.name}.py"

    def command(self, scripts: Path | None) -> list[str]:
        """How to start it; `scripts` is the directory of the repository's benchmarks."""
        if self.module:
            words = [sys.executable, "-m", f"pycobre.bench.{self.module}"]
            return [*words, "--only", self.part] if self.part else words
        assert scripts is not None
        return [sys.executable, str(scripts / self.script)]


CATALOGUE: dict[str, Benchmark] = {
    each.name: each
    for each in (
        Benchmark("peer-base", "training against the peer: four regions", "peer", "base"),
        Benchmark("peer-openings", "the same with five times the openings", "peer", "openings"),
        Benchmark("peer-passes", "the same with four times the trajectories", "peer", "passes"),
        Benchmark("peer-stages", "the same with five times the stages", "peer", "stages"),
        Benchmark("peer-production", "training against the peer: 60 plants", "peer", "production"),
        Benchmark("run_start", "from the call to the first iteration", "run_start"),
        Benchmark("run_workers", "two workers against one process", "run_workers"),
        Benchmark("checkpoint", "checkpoints as a share of an iteration", "checkpoint"),
        Benchmark("policy_load", "reading a large policy file", "policy_load"),
        Benchmark("cli_start", "pycobre --help against a bare interpreter", "cli_start"),
        Benchmark("report_size", "the report of 2,000 scenarios", "report_size"),
        Benchmark("cluster", "larger machines, by a model with measured costs", "cluster"),
        Benchmark("comm_shm", "shared memory against two MPIs"),
        Benchmark("comm_tcp", "sockets against two MPIs and gloo"),
        Benchmark("comm_mpi", "the mpi backend against mpi4py alone"),
        Benchmark("local_overhead", "a collective of one process against a copy"),
        Benchmark("solver_batch", "a batch of LPs against a loop in C"),
        Benchmark("solver_scaling", "threads and processes solving LPs"),
        Benchmark("solver_tableau", "the dense tableau against HiGHS, by size of LP"),
        Benchmark("sddp_cuts", "cost of an iteration by how cuts are kept"),
        Benchmark("sddp_memory", "memory of a training against its estimate"),
        Benchmark("sddp_scaling", "cost against stages, passes, openings, states"),
        Benchmark("sddp_ranks", "strong and weak scaling over ranks"),
        Benchmark("case_loading", "reading and checking large cases"),
        Benchmark("import_time", "importing the package"),
    )
}


def select(names: Sequence[str]) -> list[Benchmark]:
    """The benchmarks of these names (none: all); a prefix stands for all that begin with it."""
    if not names:
        return list(CATALOGUE.values())
    chosen: dict[str, Benchmark] = {}
    for name in names:
        found = {key: each for key, each in CATALOGUE.items() if key == name}
        found = found or {key: each for key, each in CATALOGUE.items() if key.startswith(name)}
        if not found:
            hint = did_you_mean(name, CATALOGUE)
            raise OptionError(f"there is no benchmark {name!r}.{hint} `pycobre bench --list` names them all.")
        chosen.update(found)
    return list(chosen.values())


def find_scripts() -> Path | None:
    """The repository's benchmarks: in the working directory, or beside an editable install; else None."""
    source = Path(__file__).resolve().parents[3]
    for root in (Path.cwd(), source):
        if (root / "benchmarks" / "comm_common.py").is_file():
            return root / "benchmarks"
    return None
