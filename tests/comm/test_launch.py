"""Starting ranks, hearing from them, and ending them, whatever they do."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from pycobre.errors import CollectiveFailed, InitializationFailed, InvalidBackend, WorkerError
from pycobre.launch import launcher as launch
from pycobre.launch.channel import Kind, MessageBuffer, frame
from pycobre.launch.launcher import RankGroup, rank_environments

HERE = Path(__file__).parent
#: Unpickled, this makes a directory.
PICKLE = b"cos\nmkdir\n(VPATH\ntR."


def start(
    size: int, backend: str = "shm", environ: dict[str, str] | None = None, **script: object
) -> RankGroup:
    script.setdefault("default", "done")
    env = {**os.environ, **(environ or {}), "PYTHONPATH": str(HERE)}
    return RankGroup("launched_rank", size, backend, json.dumps(script).encode(), env=env)


def collect(group: RankGroup) -> list[tuple[int, Kind, bytes]]:
    messages: list[tuple[int, Kind, bytes]] = []
    group.run(lambda rank, kind, payload: messages.append((rank, kind, payload)))
    return messages


def gone(group: RankGroup) -> bool:
    return all(rank.process.poll() is not None for rank in group.ranks)


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """For ranks that come to an end of their own, which is not to be forestalled on a busy machine."""
    monkeypatch.setattr(launch, "GRACE_S", 60.0)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_every_rank_is_heard_and_reaped(backend: str) -> None:
    with start(3, backend) as group:
        messages = collect(group)
    assert sorted(m for m in messages if m[1] is Kind.EVENT) == [
        (r, Kind.EVENT, f"hello from {r} of 3".encode()) for r in range(3)
    ]
    assert sum(1 for m in messages if m[1] is Kind.RESULT) == 3
    assert gone(group)


def test_a_long_message_arrives_whole() -> None:
    with start(1, length=5_000_000) as group:
        messages = collect(group)
    assert messages[-1] == (0, Kind.RESULT, b"x" * 5_000_000)


@pytest.mark.usefixtures("long_grace")
def test_a_raised_exception_comes_back_as_itself() -> None:
    with (
        start(2, **{"1": "raise"}) as group,
        pytest.raises(WorkerError, match=r"worker 1 .*no water") as caught,
    ):
        collect(group)
    assert caught.value.rank == 1
    assert isinstance(caught.value.inner, ValueError)
    assert caught.value.exit_code == 1
    assert gone(group)


@pytest.mark.usefixtures("long_grace")
@pytest.mark.parametrize("first", ["raise", "wait"])
def test_an_error_that_all_ranks_raise_is_blamed_on_the_rank_that_raised_it(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if first == "wait":  # the rank at fault does not report: it is ended when the grace is over
        monkeypatch.setattr(launch, "GRACE_S", 0.2)
    with (
        start(3, **{"0": first, "1": "relay", "2": "relay"}) as group,
        pytest.raises(WorkerError) as caught,
    ):
        collect(group)
    assert caught.value.rank == 0
    assert str(caught.value.inner) == ("no water" if first == "raise" else "disk full")
    assert gone(group)


FORGED = {
    "a pickle as the error": (Kind.ERROR, PICKLE, "CommError: the error record of rank 1: expected JSON"),
    "an unknown kind": (
        99,
        b"x",
        "CommError: message of rank 1: expected an event, a result or an error, got kind 99",
    ),
    "a kind for ranks": (Kind.STOP, b"", "CommError: message of rank 1: expected an event"),
}


@pytest.mark.usefixtures("long_grace")
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_message_is_that_ranks_failure(name: str, tmp_path: Path) -> None:
    kind, payload, text = FORGED[name]
    target = tmp_path / "made"
    payload = payload.replace(b"PATH", str(target).encode())
    with (
        start(2, forged=[kind, payload.hex()], **{"1": "forge"}) as group,
        pytest.raises(WorkerError, match=re.escape(text)) as caught,
    ):
        collect(group)
    assert caught.value.rank == 1
    assert not target.exists()
    assert gone(group)


@pytest.mark.parametrize("more", range(1, 7))
def test_a_system_that_refuses_descriptors_is_an_error_and_no_rank_is_left(more: int) -> None:
    """Whatever step the limit hits: the pair of sockets, the process, the descriptor of the process."""
    code = f"""
import os, resource, subprocess, sys
from pycobre.errors import InitializationFailed
from pycobre.launch.launcher import RankGroup
started = []
popen = subprocess.Popen
class Recorded(popen):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        started.append(self)
subprocess.Popen = Recorded
size = 8
used = max(map(int, os.listdir("/proc/self/fd")))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 3 + {more}, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    RankGroup("launched_rank", size, "shm", b'{{"default": "wait"}}')
except InitializationFailed as error:
    print(len(started), all(process.poll() is not None for process in started), error)
"""
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=200)
    count, reaped, text = done.stdout.split(" ", 2)
    assert (int(count) < 8, reaped) == (True, "True"), done.stderr
    assert re.fullmatch(
        r"the shm backend could not start: rank \d could not be started: .*Too many open files.*\n", text
    )


def test_a_killed_rank_is_named_and_the_others_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "GRACE_S", 0.2)
    script = {"1": "kill", "0": "wait", "2": "wait"}
    with start(3, **script) as group, pytest.raises(WorkerError, match="worker 1 was killed by signal 9"):
        collect(group)
    assert gone(group)


def test_rank_0_is_told_of_a_lost_peer_and_may_save_longer_than_the_others_may_live(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "GRACE_S", 0.2)
    heard: list[tuple[int, Kind, bytes]] = []
    with (
        start(3, **{"0": "solve", "1": "kill", "2": "wait"}, saving_s=1.0) as group,
        pytest.raises(WorkerError, match="worker 1 was killed by signal 9"),
    ):
        group.run(lambda rank, kind, payload: heard.append((rank, kind, payload)))
    assert (0, Kind.EVENT, b"saved") in heard
    assert gone(group)


def test_a_stopped_rank_0_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "GRACE_S", 0.2)
    monkeypatch.setattr(launch, "SAVING_S", 500.0)
    with start(2, **{"0": "stall", "1": "kill"}) as group, pytest.raises(WorkerError):
        collect(group)
    assert gone(group)


def test_an_exit_code_is_reported() -> None:
    with (
        start(2, **{"0": "exit"}) as group,
        pytest.raises(WorkerError, match=r"worker 0 .* exit code 7"),
    ):
        collect(group)


@pytest.mark.usefixtures("long_grace")
def test_the_cause_is_preferred_to_its_echo_on_the_peers() -> None:
    script = {"0": "echo", "1": "kill", "2": "echo"}
    with start(3, **script) as group, pytest.raises(WorkerError) as caught:
        collect(group)
    assert (caught.value.rank, caught.value.exit_code) == (1, -signal.SIGKILL)


def test_a_stalled_rank_is_named_by_its_peers_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "GRACE_S", 0.2)
    with start(2, **{"0": "echo", "1": "stall"}) as group, pytest.raises(WorkerError) as caught:
        collect(group)
    assert caught.value.rank == 1
    assert isinstance(caught.value.inner, CollectiveFailed)
    assert gone(group)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_rank_that_stalls_after_the_others_ended_is_named_and_killed(backend: str) -> None:
    """Nobody waits for it in a collective any more: the launcher's patience is the only one."""
    environ = {f"COBRE_{backend.upper()}_TIMEOUT_SECS": "0.5"}
    with start(2, backend, environ, **{"1": "stall"}) as group, pytest.raises(WorkerError) as caught:
        collect(group)
    pid = group.ranks[1].process.pid
    assert str(caught.value) == (
        f"worker 1 failed: CollectiveFailed: the end of the run: rank 1 (process {pid}) did not end "
        "within 0.5 s after the others: it is stopped or stuck."
    )
    assert gone(group)


def test_a_rank_that_works_on_after_the_others_ended_is_waited_for() -> None:
    """Writing large results takes its time and says nothing; processor time tells it from standing still."""
    environ = {"COBRE_SHM_TIMEOUT_SECS": "3"}
    with start(2, environ=environ, **{"0": "work"}, seconds=4.0) as group:
        said = collect(group)
    assert (0, Kind.RESULT, b"xxx") in said
    assert [rank.exit_code for rank in group.ranks] == [0, 0]


def test_patience_that_cannot_be_understood_is_refused_before_the_start() -> None:
    with pytest.raises(InitializationFailed, match="COBRE_SHM_TIMEOUT_SECS: expected a number, got 'soon'"):
        start(2, environ={"COBRE_SHM_TIMEOUT_SECS": "soon"})


def test_a_stop_request_reaches_every_rank() -> None:
    with start(2, default="wait") as group:
        waiting = []

        def on_message(rank: int, kind: Kind, payload: bytes) -> None:
            if kind is Kind.EVENT:
                waiting.append(rank)
                if len(waiting) == 2:
                    group.request_stop()

        group.run(on_message)
    assert [rank.exit_code for rank in group.ranks] == [0, 0]


def test_a_question_waits_for_its_answer() -> None:
    heard = []
    with start(2, default="ask") as group:

        def on_message(rank: int, kind: Kind, payload: bytes) -> None:
            if kind is Kind.QUESTION:
                assert payload == b"go on?"
                group.answer(rank, f"yes, {rank}".encode())
            elif kind is Kind.EVENT and not payload.startswith(b"hello"):
                heard.append((rank, payload))

        group.run(on_message)
    assert sorted(heard) == [(0, b"yes, 0"), (1, b"yes, 1")]


def test_an_exception_of_the_listener_leaves_no_process() -> None:
    def explode(rank: int, kind: Kind, payload: bytes) -> None:
        raise RuntimeError("listener")

    with pytest.raises(RuntimeError, match="listener"), start(2, default="wait") as group:
        group.run(explode)
    assert gone(group)


def runs(pid: int) -> bool:
    """Whether a process has not ended; whoever adopted it reaps it when it pleases, perhaps just now."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_ranks_do_not_outlive_a_killed_launcher(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
from test_launch import start
group = start(2, default="wait")
print(*[rank.process.pid for rank in group.ranks], flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        pids = [int(pid) for pid in launcher.stdout.readline().split()]
        launcher.kill()
        launcher.wait()
    until(lambda: not any(map(runs, pids)))


def test_environments_drop_other_launchers_and_keep_timeouts() -> None:
    base = {"PATH": "/bin", "OMPI_COMM_WORLD_RANK": "3", "SLURM_PROCID": "1", "COBRE_SHM_TIMEOUT_SECS": "5"}
    first, second = rank_environments("shm", 2, base)
    assert first["OPENBLAS_NUM_THREADS"] == "1"
    assert rank_environments("shm", 1, {"OPENBLAS_NUM_THREADS": "4"})[0]["OPENBLAS_NUM_THREADS"] == "4"
    assert first["COBRE_SHM_NAME"] == second["COBRE_SHM_NAME"]
    assert (first["COBRE_SHM_RANK"], second["COBRE_SHM_RANK"], first["COBRE_SHM_SIZE"]) == ("0", "1", "2")
    assert first["COBRE_SHM_TIMEOUT_SECS"] == "5"
    assert "OMPI_COMM_WORLD_RANK" not in first
    assert "SLURM_PROCID" not in first
    assert rank_environments("shm", 1, base)[0]["COBRE_SHM_NAME"] != first["COBRE_SHM_NAME"]


def test_only_backends_of_one_machine_can_be_launched() -> None:
    with pytest.raises(InvalidBackend, match=r"no backend 'mpi'\. Choose one of: shm, tcp"):
        rank_environments("mpi", 2, {})
    with pytest.raises(InitializationFailed, match="listening socket"):
        rank_environments("tcp", 2, {})


def test_messages_survive_any_splitting() -> None:
    stream = frame(Kind.EVENT, b"abc") + frame(Kind.STOP, b"") + frame(Kind.RESULT, bytes(300))
    for step in (1, 2, 7, 1000):
        buffer = MessageBuffer()
        got = [m for i in range(0, len(stream), step) for m in buffer.feed(stream[i : i + step])]
        assert got == [(Kind.EVENT, b"abc"), (Kind.STOP, b""), (Kind.RESULT, bytes(300))]
