"""Every benchmark by name: a module of `benchmarks`, or one part of a module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pycobre._util.suggest import did_you_mean
from pycobre.errors import OptionError

__all__ = ["CATALOGUE", "ROOT", "Benchmark", "select"]

#: The checkout.
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark; `module` is empty where it is called like the benchmark."""

    name: str
    purpose: str
    module: str = ""
    part: str = ""

    def command(self) -> list[str]:
        """How to start it; `benchmarks` has to be importable."""
        words = [sys.executable, "-m", f"benchmarks.{self.module or self.name}"]
        return [*words, "--only", self.part] if self.part else words


CATALOGUE: dict[str, Benchmark] = {
    each.name: each
    for each in (
        Benchmark("cobre-base", "training against Cobre: four regions", "against_cobre", "base"),
        Benchmark("cobre-openings", "the same with five times the openings", "against_cobre", "openings"),
        Benchmark("cobre-passes", "the same with four times the trajectories", "against_cobre", "passes"),
        Benchmark("cobre-stages", "the same with five times the stages", "against_cobre", "stages"),
        Benchmark("cobre-production", "training against Cobre: 60 plants", "against_cobre", "production"),
        Benchmark("cobre-national", "CPU to Cobre's bounds: a national study", "cobre_national", "national"),
        Benchmark("cobre-nat60", "the same: 60 synthetic plants", "cobre_national", "nat60"),
        Benchmark("cobre-nat160", "the same: 160 synthetic plants", "cobre_national", "nat160"),
        Benchmark("cobre-regions", "the same: four regions", "cobre_national", "regions"),
        Benchmark("cobre-examples", "bounds of example cases against Cobre's", "cobre_examples"),
        Benchmark("cobre-states", "stage LPs and cuts against Cobre's at the same states", "cobre_states"),
        Benchmark("cobre-steps", "validate, load, build, one iteration against Cobre", "cobre_steps"),
        Benchmark("run_start", "from the call to the first iteration"),
        Benchmark("run_workers", "two workers against one process"),
        Benchmark("checkpoint", "checkpoints as a share of an iteration"),
        Benchmark("run_watched", "a run that is watched in a terminal, against one that nobody watches"),
        Benchmark("run_records", "events, status and default checkpoints as a share of an iteration"),
        Benchmark("policy_load", "reading a large policy file"),
        Benchmark("cli_start", "pycobre --help against a bare interpreter"),
        Benchmark("report_size", "the report of 2,000 scenarios"),
        Benchmark("cluster", "larger machines, by a model with measured costs"),
        Benchmark("cluster_study", "a whole national study on larger machines, by the same model"),
        Benchmark("comm_shm", "shared memory against two MPIs"),
        Benchmark("comm_tcp", "sockets against two MPIs and gloo"),
        Benchmark("comm_tcp_auth", "what authenticated messages and TLS cost"),
        Benchmark("comm_mpi", "the mpi backend against mpi4py alone"),
        Benchmark("local_overhead", "a collective of one process against a copy"),
        Benchmark("solver_batch", "a batch of LPs against a loop in C"),
        Benchmark("solver_scaling", "threads and processes solving LPs"),
        Benchmark("solver_tableau", "the dense tableau against HiGHS, by size of LP"),
        Benchmark("solver_kernel", "the basis kernel against HiGHS, by size of LP"),
        Benchmark("sddp_cuts", "cost of an iteration by how cuts are kept"),
        Benchmark("sddp_interior", "bounds with cuts at interior points, by schedule"),
        Benchmark("sddp_trajectories", "CPU to a bound with a growing number of trajectories"),
        Benchmark("sddp_memory", "memory of a training against its estimate"),
        Benchmark("sddp_study_memory", "memory of a national study with all its cuts"),
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
            raise OptionError(
                f"there is no benchmark {name!r}.{hint} `python -m benchmarks --list` names them all."
            )
        chosen.update(found)
    return list(chosen.values())
