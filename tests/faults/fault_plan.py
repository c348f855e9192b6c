"""Which fault strikes whom, and when: a pure function of the backend, the seed and the number of the trial."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["DEFAULT_KINDS", "KINDS", "PATIENCE_S", "RANKS", "STARTING", "Census", "Trial", "make_trial"]

#: Rank → phase → how often an undisturbed run enters it.
Census = Mapping[int, Mapping[str, int]]

RANKS = {"local": 1, "shm": 2, "tcp": 2, "mpi": 2}

_USUAL = (
    "kill delay kill disk stop kill kill special kill starve "
    "kill delay kill kill disk kill special kill kill kill"
)
#: What happens in each of twenty trials; the list begins again after that.
KINDS = {
    "local": "kill delay kill disk kill starve kill delay kill disk",
    "shm": _USUAL.replace("special", "memory"),
    "tcp": _USUAL.replace("special", "cut"),
    "mpi": _USUAL.replace("special", "memory"),
}

#: With the settings of somebody who sets none: nothing is found by patience, which is minutes then, and whoever
#: started the run is killed too.
DEFAULT_KINDS = {
    "local": "kill delay kill disk kill starve kill kill disk kill",
    "shm": (
        "kill parent kill disk kill kill memory parent delay kill "
        "kill starve parent kill disk kill kill memory parent kill"
    ),
}
DEFAULT_KINDS["tcp"] = DEFAULT_KINDS["shm"].replace("memory", "kill")
DEFAULT_KINDS["mpi"] = DEFAULT_KINDS["shm"]

STARTING = ("start", "join")
PATIENCE_S = 120.0  #: of a collective, and with ranks that start on a busy machine
SHORT_PATIENCE_S = 3.0  #: where the fault is that a rank is silent for ever

#: How long after a rank entered a phase the damage is done, at most (seconds).
_DELAYS = {"start": 0.3, "join": 0.05, "write": 3e-3, "fsync": 1e-3, "close": 1e-3, "exit": 2e-4}
_DELAY = 5e-4
_COLLECTIVES = ("allgatherv", "allreduce", "broadcast", "barrier", "fence", "region")


@dataclass(frozen=True)
class Trial:
    """One fault: `victim` suffers `kind` when rank `at_rank` enters `phase` for the `nth` time."""

    backend: str
    number: int
    kind: str
    victim: int
    at_rank: int
    phase: str
    nth: int
    delay_s: float
    hold_s: float  #: how long the other ranks come late to that phase, so that the victim waits in it
    pause_s: float  #: of a stopped or starved rank; infinite: for ever
    cpu: int
    variant: int  #: a random number for what else is to be chosen
    defaults: bool = False  #: a run with default settings

    @property
    def patience_s(self) -> float:
        return SHORT_PATIENCE_S if self.kind in ("stop", "cut") else PATIENCE_S

    def __str__(self) -> str:
        watched = "" if self.at_rank == self.victim else f" of rank {self.at_rank}"
        waiting = " while it waits there" if self.hold_s else ""
        return (
            f"{self.backend} {self.number}: {self.kind} rank {self.victim}, {1e3 * self.delay_s:.2f} ms after "
            f"{self.phase} {self.nth}{watched}{waiting}"
        )

    def order(self, directory: Path, action: str, mount: str = "") -> str:
        """What the saboteurs in the ranks are told."""
        known = {**asdict(self), "directory": str(directory), "action": action, "mount": mount, "bytes": 2048}
        return json.dumps({**known, "pause_s": None})

    @property
    def ends_it(self) -> bool:
        """Whether a process dies of it."""
        return self.kind in ("kill", "parent")


def make_trial(
    backend: str, number: int, seed: int, census: Census, cpus: list[int], *, defaults: bool = False
) -> Trial:
    """The trial of that number."""
    kinds = (DEFAULT_KINDS if defaults else KINDS)[backend].split()
    kind = kinds[number % len(kinds)]
    rng = random.Random(f"{seed} {backend} {number}")
    ranks = sorted(census)
    victim = 0 if kind in ("disk", "memory") else rng.choice(ranks)
    at_rank, last = victim, 0
    phases = {phase: count for phase, count in census[victim].items() if count}
    if kind == "kill" and victim and rng.random() < 0.2:
        at_rank, phase = 0, rng.choice(["write", "fsync", "replace"])  # while rank 0 writes a checkpoint
    elif kind == "memory":
        # An MPI library whose memory is taken while it allocates ends by SIGBUS: there it is full before.
        phase = "region" if backend == "mpi" else rng.choice(["join", "region"])
    elif kind == "stop" and backend == "mpi":
        phase = rng.choice(["solve", "allgatherv"])  # not the last: MPI_Finalize waits for ever
        last = census[victim][phase] // 2
    elif kind in ("disk", "cut", "stop"):
        # A start that cannot succeed is the matter of the backends' own tests, and costs the whole patience.
        phase = rng.choice(sorted(phases.keys() - set(STARTING)))
    else:
        phase = rng.choice(sorted(phases))
    waits = phase in _COLLECTIVES and len(ranks) > 1 and rng.random() < 0.4
    at_once = kind == "memory" and backend == "mpi"
    delay_s = 0.005 if waits else rng.choice([0.0, rng.uniform(0.0, _DELAYS.get(phase, _DELAY))])
    return Trial(
        backend=backend,
        number=number,
        kind=kind,
        victim=victim,
        at_rank=at_rank,
        phase=phase,
        nth=rng.randint(1, last or census[at_rank][phase]),
        delay_s=0.0 if at_once else delay_s,
        hold_s=0.02 if waits else 0.0,
        pause_s={"delay": rng.uniform(0.02, 0.3), "starve": 0.4, "stop": float("inf")}.get(kind, 0.0),
        cpu=rng.choice(cpus),
        variant=rng.randrange(1 << 30),
        defaults=defaults,
    )
