"""The shm backend as a citizen of its process: signals, threads, forks and garbage."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from waiting import until_asleep, until_exists

from pycobre.comm import (
    CollectiveFailed,
    Communicator,
    InvalidCommunicator,
    ReduceOp,
    ShmBackend,
)
from pycobre.testing import run_ranks


def peer_pid(comm: Communicator) -> int:
    found = np.zeros(2, np.int64)
    comm.allgatherv(np.array([os.getpid()]), found, [1, 1], [0, 1])
    return int(found[1 - comm.rank])


# --- signals ---


def interrupted_by_ctrl_c(comm: Communicator, directory: str) -> str:
    pid = peer_pid(comm)
    if comm.rank == 0:
        Path(directory, "entering").touch()
        try:
            comm.barrier()
        except KeyboardInterrupt:
            Path(directory, "interrupted").touch()
        else:
            raise AssertionError("the barrier completed")
        with pytest.raises(CollectiveFailed, match="broke off a collective: a signal handler raised"):
            comm.barrier()
        return "interrupted"
    until_exists(Path(directory, "entering"))
    until_asleep(pid)
    os.kill(pid, signal.SIGINT)
    until_exists(Path(directory, "interrupted"))
    with pytest.raises(CollectiveFailed, match=r"rank 0 \(process \d+\) broke off a collective") as caught:
        comm.barrier()
    assert caught.value.rank == 0
    return "told"


def test_ctrl_c_interrupts_a_wait_and_the_peers_are_told(tmp_path: Path) -> None:
    assert run_ranks("shm", 2, interrupted_by_ctrl_c, str(tmp_path)) == ["interrupted", "told"]


def handled_signals(comm: Communicator, directory: str) -> int:
    pid = peer_pid(comm)
    seen: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    if comm.rank == 0:
        Path(directory, "entering").touch()
        comm.barrier()
        return len(seen)
    until_exists(Path(directory, "entering"))
    until_asleep(pid)
    os.kill(pid, signal.SIGUSR1)
    until_asleep(pid)
    comm.barrier()
    return 0


def test_a_handler_that_returns_does_not_end_the_wait(tmp_path: Path) -> None:
    assert run_ranks("shm", 2, handled_signals, str(tmp_path)) == [1, 0]


def stopped_together(comm: Communicator, directory: str) -> float:
    """Rank 0 waits; a helper process stops both ranks for longer than their patience, then lets them go on."""
    pid = peer_pid(comm)
    if comm.rank == 0:
        Path(directory, "entering").touch()
        begun = time.monotonic()
        comm.barrier()
        return time.monotonic() - begun
    until_exists(Path(directory, "entering"))
    until_asleep(pid)
    code = "import os, sys, time; pids = list(map(int, sys.argv[1:])); "
    code += "[os.kill(p, 19) for p in pids]; time.sleep(10.5); [os.kill(p, 18) for p in pids]"
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(pid), str(os.getpid())], check=True)
    comm.barrier()
    return 0.0


def test_time_in_which_all_were_stopped_does_not_count(tmp_path: Path) -> None:
    waited, _ = run_ranks("shm", 2, stopped_together, str(tmp_path), environ={"COBRE_SHM_TIMEOUT_SECS": "10"})
    assert waited > 10.4


# --- threads ---


def other_threads_run(comm: Communicator) -> int:
    counted = 0
    if comm.rank == 0:
        waiting = threading.Thread(target=comm.barrier)
        waiting.start()
        until_asleep(os.getpid(), waiting.native_id)
        for _ in range(100_000):
            counted += 1
        assert waiting.is_alive()
        with pytest.raises(InvalidCommunicator, match="one thread at a time"):
            comm.allreduce(np.ones(1), np.ones(1), ReduceOp.SUM)
        Path(os.environ["MARK"]).touch()
        waiting.join()
    else:
        until_exists(os.environ["MARK"])
        comm.barrier()
    total = np.zeros(1)
    comm.allreduce(np.ones(1), total, ReduceOp.SUM)  # the call that was refused has not been counted
    assert total[0] == 2.0
    return counted


def test_waiting_lets_other_threads_run_but_not_into_the_communicator(tmp_path: Path) -> None:
    environ = {"MARK": str(tmp_path / "mark")}
    assert run_ranks("shm", 2, other_threads_run, environ=environ) == [100_000, 0]


def aborted_from_another_thread(comm: Communicator, directory: str) -> str:
    """Ranks 0 and 1 sleep in a barrier to which rank 2 never comes; rank 0 aborts from its main thread."""
    failures: list[str] = []

    def wait() -> None:
        with pytest.raises(CollectiveFailed) as caught:
            comm.barrier()
        failures.append(str(caught.value))

    if comm.rank == 2:
        until_exists(Path(directory, "0"))
        until_exists(Path(directory, "1"))
        return ""
    waiting = threading.Thread(target=wait)
    waiting.start()
    until_asleep(os.getpid(), waiting.native_id)
    if comm.rank == 1:
        Path(directory, "asleep").touch()
    else:
        until_exists(Path(directory, "asleep"))
        comm.abort("enough")
    waiting.join(200)
    Path(directory, str(comm.rank)).touch()
    return failures[0]


def test_abort_from_another_thread_wakes_everybody(tmp_path: Path) -> None:
    zero, one, _ = run_ranks("shm", 3, aborted_from_another_thread, str(tmp_path))
    assert zero == one == "barrier: rank 0 aborted: enough"


# --- forks and garbage ---


def fork_and_go_on(comm: Communicator) -> None:
    comm.barrier()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        # The child ends like any program: its copy of the communicator is used, collected and finalised.
        status = 1
        try:
            comm.barrier()
        except InvalidCommunicator as error:
            status = 0 if "belongs to the process that forked this one" in str(error) else 2
        comm.abort("not mine to abort")
        comm.close()
        del comm
        gc.collect()
        os._exit(status)
    _, code = os.waitpid(child, 0)
    assert code == 0
    total = np.zeros(1)
    comm.allreduce(np.ones(1), total, ReduceOp.SUM)
    assert total[0] == comm.size


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_no_harm() -> None:
    run_ranks("shm", 2, fork_and_go_on)


def drop_without_close(environ: dict[str, str]) -> str:
    from pycobre.comm import ShmConfig

    config = ShmConfig.from_env(environ)
    comm = ShmBackend(config)
    if config.rank == 1:
        del comm
        gc.collect()
        return ""
    with comm, pytest.raises(CollectiveFailed) as caught:
        comm.barrier()
    return str(caught.value)


def test_a_communicator_that_is_garbage_counts_as_closed() -> None:
    text, _ = run_ranks("shm", 2, drop_without_close, connect=False)
    assert "rank 1 (process " in text
    assert "closed its communicator" in text
