"""One trial from its start to its verdict: the run, what it said, what it left, and how it went on."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fault_jobs import (
    PROGRAM,
    Conductor,
    Ended,
    accounts,
    host_environs,
    run_programs,
    run_user_program,
    run_workers,
    variables,
)
from fault_plan import PATIENCE_S, RANKS, STARTING, Census, Trial
from fault_problem import options, problem
from fault_system import SHARED_MEMORY, Hosts, Mounts, left_processes, segments

import pycobre
from pycobre.app.results.event_log import read_events
from pycobre.errors import CobreError
from pycobre.testing.leaks import Holdings

sys.path.insert(0, str(Path(__file__).parents[1] / "comm"))

import mpi_environments

__all__ = ["Stage", "Verdict", "run_trial", "undisturbed"]

LIBRARIES = ("mpich", "openmpi")
_NO_SPACE = ("No space left", "the disk is full", "File too large", "cannot allocate")


@dataclass
class Stage:
    """What the trials of one backend share."""

    backend: str
    directory: Path
    mounts: Mounts
    hosts: Hosts
    defaults: bool = False
    digest: str = ""
    ranks: int = 0


@dataclass
class Verdict:
    """What came of a trial; `faults` are the reasons why it is not as it should be."""

    trial: Trial
    struck: bool
    correct: bool = False
    detected: bool = False
    resumed: bool = False
    unnamed: bool = False  #: the error does not say which rank it was
    detection_s: float | None = None
    lost: int | None = None  #: finished iterations that had to be done again
    text: str = ""
    hangs: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return [*self.hangs, *self.leaks, *self.wrong]


def undisturbed(stage: Stage) -> Census:
    """Run without a fault; the digest of its policy is what every trial must come to."""
    stage.ranks = RANKS[stage.backend]
    nothing = Trial(stage.backend, -1, "none", 0, 0, "none", 1, 0.0, 0.0, 0.0, 0, 0, stage.defaults)
    directory = _directory(stage, nothing)
    with Conductor(nothing, directory, stage.hosts):
        ended = _run(stage, nothing, directory, directory / "out", "none", "")
    assert ended.digest is not None, ended.text
    stage.digest = pycobre.train(problem(), options=options()).policy_digest
    assert ended.digest == stage.digest
    return {rank: json.loads((directory / f"counts-{rank}").read_text()) for rank in range(stage.ranks)}


def run_trial(stage: Stage, trial: Trial) -> Verdict:
    """Run, judge, resume, and look for what is left."""
    directory = _directory(stage, trial)
    before, segments_before = Holdings.now(), segments()
    action, mount = _means(stage, trial, directory)
    output = directory / "disk" / "out"
    leaks: list[str] = []
    with ExitStack() as stack:
        if trial.kind == "disk" and action == "fill":
            stack.enter_context(stage.mounts.small(mount, "512k"))
        with ExitStack() as short, Conductor(trial, directory, stage.hosts) as conductor:
            if trial.kind == "memory" and action == "fill":
                # Too small for the start, or as a container has it: room until the saboteur fills it.
                size = "64k" if stage.backend == "shm" and trial.variant % 4 == 0 else "64m"
                short.enter_context(stage.mounts.small(SHARED_MEMORY, size))
                segments_before = segments()
            ended = _run(stage, trial, directory, output, action, mount)
            (Path(mount or directory) / "ballast").unlink(missing_ok=True)
            leaks += [f"process {pid} was left" for pid in left_processes(str(directory))]
            leaks += _left_segments(stage, segments_before)
        verdict = Verdict(trial, conductor.struck_at is not None, leaks=leaks, text=ended.text)
        if conductor.hung:
            verdict.hangs.append(f"it hung, and was ended: {ended.text}")
        elif ended.digest is not None:
            verdict.correct = ended.digest == stage.digest
            if not verdict.correct:
                verdict.wrong.append(f"expected the policy {stage.digest}, got {ended.digest}")
        else:
            verdict.detected = True
            _judge(stage, trial, directory, ended, verdict)
            _time(trial, directory, ended, conductor.struck_at, verdict)
        _resume(stage, trial, output, verdict)
    # What Open MPI's launcher keeps there is left when the launcher itself is killed.
    launchers = ("pmix", "hwloc.sm", "prte") if (stage.backend, trial.kind) == ("mpi", "parent") else ("\0",)
    verdict.leaks += [
        f"{path.name} was left in TMPDIR"
        for path in _left_files(directory / "tmp")
        if not path.name.startswith(launchers)
    ]
    verdict.leaks += [f"this process holds {thing}" for thing in before.gained()]
    return verdict


def _directory(stage: Stage, trial: Trial) -> Path:
    directory = stage.directory / f"trial-{trial.number}-"
    (directory / "tmp").mkdir(parents=True)
    (directory / "disk").mkdir()
    return directory


def _means(stage: Stage, trial: Trial, directory: Path) -> tuple[str, str]:
    """What the saboteur does, and to which mount."""
    if trial.kind in ("disk", "memory"):
        if not stage.mounts.allowed:
            return "limit", ""
        return "fill", str(directory / "disk") if trial.kind == "disk" else SHARED_MEMORY
    return {"delay": "stop", "cut": "none"}.get(trial.kind, trial.kind), ""


def _run(stage: Stage, trial: Trial, directory: Path, output: Path, action: str, mount: str) -> Ended:
    environ = variables(trial, directory, action, mount)
    if trial.kind == "cut":
        stage.hosts.connect()
        commands = [
            ["ip", "netns", "exec", host, sys.executable, PROGRAM, "tcp", str(output)]
            for host in stage.hosts.names
        ]
        return run_programs(directory, commands, host_environs(environ))
    if trial.defaults and stage.backend in ("shm", "tcp"):
        return run_user_program(directory, stage.backend, stage.ranks, output, environ)
    if stage.backend == "local":
        return run_programs(directory, [[sys.executable, PROGRAM, "local", str(output)]], [environ])
    if stage.backend == "mpi":
        library = LIBRARIES[trial.variant % 2]
        known = mpi_environments.variables(library)
        path = os.pathsep.join([environ["PYTHONPATH"], known["PYTHONPATH"]])
        # mpi4py of the environment must be found before this process's own module path.
        code = f"import mpi4py, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path({PROGRAM!r}, run_name='__main__')"
        python = str(mpi_environments.environment(library) / "bin/python")
        command = [*mpi_environments.mpiexec(library, stage.ranks), python, "-c", code]
        return run_programs(
            directory, [[*command, PROGRAM, "mpi", str(output)]], [{**known, **environ, "PYTHONPATH": path}]
        )
    return run_workers(trial, output, environ, stage.ranks)


def _judge(stage: Stage, trial: Trial, directory: Path, ended: Ended, verdict: Verdict) -> None:
    """Is it an error that this fault explains, with the rank named, and did every survivor say so?"""
    said, wrong = accounts(directory), verdict.wrong
    if not ended.named:
        wrong.append(f"not an error of pycobre: {ended.text}")
    short = trial.kind == "memory" or trial.patience_s < PATIENCE_S  # a mount or a patience that is too small
    if not verdict.struck and not short:
        wrong.append(f"it failed without a fault: {ended.text}")
    if trial.kind in ("delay", "starve"):
        wrong.append(f"a slow rank is no failure: {ended.text}")
    if trial.kind in ("disk", "memory") and not any(words in ended.text for words in _NO_SPACE):
        wrong.append(f"expected a word about space: {ended.text}")
    if trial.kind in ("kill", "stop") and stage.ranks > 1:
        # Short patience may end with another rank before the fault, on a machine that is very busy.
        victim = r"\d" if trial.kind == "stop" else str(trial.victim)
        verdict.unnamed = not re.search(rf"(rank|worker) {victim}\b", ended.text)
        # MPICH's launcher does not say which rank died before the ranks have met, or after they have parted.
        if verdict.unnamed and "BAD TERMINATION" not in ended.text:
            wrong.append(f"expected rank {trial.victim} to be named: {ended.text}")
    starting = trial.phase in STARTING or (
        trial.kind == "memory" and not verdict.struck
    )  # a mount too small to join
    if stage.backend == "mpi" or trial.kind in ("stop", "parent") or starting:
        return  # what ends the others is the job, or the launcher: they may not have met
    for rank in range(stage.ranks):
        if rank == trial.victim and trial.kind == "kill":
            continue
        if rank not in said and not (directory / f"counts-{rank}").exists():
            wrong.append(f"rank {rank} ended without a word: {ended.text}")
        elif rank in said and not said[rank]["expected"]:
            wrong.append(f"rank {rank} raised {said[rank]['type']}: {said[rank]['text']}")


def _time(trial: Trial, directory: Path, ended: Ended, struck_at: float | None, verdict: Verdict) -> None:
    """From the fault to the last survivor's error."""
    ends = [said["time"] for said in accounts(directory).values()] or ([ended.time] if ended.time else [])
    if struck_at is not None and ends:
        verdict.detection_s = max(ends) - struck_at


def _resume(stage: Stage, trial: Trial, output: Path, verdict: Verdict) -> None:
    """What was reached is on the disk, and goes on to the same policy, also elsewhere."""
    if verdict.correct:
        return
    checkpoints = list((output / "checkpoints").glob("*.cobre"))
    backend, ranks = {4: ("shm", 3), 9: ("tcp", 3)}.get(trial.number % 10, ("local", 1))
    finished = [
        event["iteration"] for event, _ in read_events(output) if event["kind"] == "iteration_finished"
    ]
    verdict.lost = max(finished, default=0) - max((int(path.stem) for path in checkpoints), default=0)
    try:
        found = pycobre.train(
            problem(),
            options=options(),
            backend=backend,
            num_workers=ranks,
            output=output,
            resume=bool(checkpoints),
            checkpoint_iterations=None if trial.defaults else 1,
        )
    except CobreError as error:
        verdict.wrong.append(f"{len(checkpoints)} checkpoints, and no way to go on: {error}")
        return
    if found.policy_digest != stage.digest:
        verdict.wrong.append(f"resumed to {found.policy_digest} instead of {stage.digest}")
    verdict.resumed = found.policy_digest == stage.digest
    # The file of the directory's lock stays: the lock itself ends with the process that held it.
    left = [path for path in _left_files(output, hidden=True) if path.name != ".lock"]
    verdict.leaks += [f"{path} was left in the results" for path in left]


def _left_segments(stage: Stage, before: set[str]) -> list[str]:
    """New names in the shared-memory mount. A killed MPI leaves its own, which are removed and not counted."""
    new = segments() - before - {"ballast"}
    if not stage.mounts.allowed:  # then others use the mount too
        new = {name for name in new if name.startswith(f"pycobre-{os.getpid()}-")}
    ours = {name for name in new if stage.backend != "mpi" or name.startswith("pycobre")}
    for name in new:
        (Path(SHARED_MEMORY) / name).unlink(missing_ok=True)
    return [f"{SHARED_MEMORY}/{name} was left" for name in sorted(ours)]


def _left_files(directory: Path, *, hidden: bool = False) -> list[Path]:
    return [
        path for path in directory.rglob("*") if path.is_file() and (not hidden or path.name.startswith("."))
    ]
