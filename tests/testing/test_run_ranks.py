"""`run_ranks` itself: results, errors, deadlines, and that nothing is left behind or goes unnoticed."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
import rank_functions as functions

from pycobre.comm import LocalBackend
from pycobre.errors import WorkerError
from pycobre.testing import RankGroup, Starter, ThreadBackend, run_ranks
from pycobre.testing.leaks import Holdings


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for a long time until its new parent reaps it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def errors_of(*arguments, **options) -> list[BaseException]:
    with pytest.raises(ExceptionGroup) as caught:
        run_ranks(*arguments, **options)
    return list(caught.value.exceptions)


def test_results_come_in_rank_order_from_processes_that_end():
    ((rank, size, total, pid),) = run_ranks("local", 1, functions.describe, 5)
    assert (rank, size, total) == (0, 1, 5)
    assert pid != os.getpid()
    assert not alive(pid)


def test_threads_are_ranks_of_this_process():
    results = run_ranks("threads", 3, functions.describe, 5)
    assert results == [(rank, 3, 18, os.getpid()) for rank in range(3)]


def test_each_rank_gets_the_variables_of_its_backend():
    shm = run_ranks("shm", 3, functions.variables, connect=False)
    assert [environ["COBRE_SHM_RANK"] for environ in shm] == ["0", "1", "2"]
    assert {environ["COBRE_SHM_SIZE"] for environ in shm} == {"3"}
    assert len({environ["COBRE_SHM_NAME"] for environ in shm}) == 1
    tcp = run_ranks("tcp", 2, functions.variables, connect=False, environ={"COBRE_TCP_TIMEOUT_SECS": "3"})
    assert [environ["COBRE_TCP_RANK"] for environ in tcp] == ["0", "1"]
    assert len({(environ["COBRE_TCP_PORT"], environ["COBRE_TCP_TOKEN"]) for environ in tcp}) == 1
    assert {environ["COBRE_TCP_TIMEOUT_SECS"] for environ in tcp} == {"3"}


def test_a_group_meets_anew_for_every_run_and_forgets_its_variables():
    with RankGroup("shm", 1) as group:
        names = [group.run(functions.variables, connect=False)[0]["COBRE_SHM_NAME"] for _ in range(2)]
        assert len(set(names)) == 2
        given = group.run(functions.from_environment, "EXTRA", connect=False, environ={"EXTRA": "yes"})
        assert given == ["yes"]
        assert group.run(functions.from_environment, "EXTRA", connect=False) == [None]


def test_every_failed_rank_is_in_the_group_with_rank_and_traceback():
    first, second = errors_of("threads", 4, functions.fail_on_odd)
    assert [str(first), str(second)] == ["odd rank 1", "odd rank 3"]
    assert first.__notes__ == ["on rank 1 of 4"]
    (alone,) = errors_of("shm", 2, functions.fail_alone, 1, connect=False)
    assert isinstance(alone, ValueError)
    assert "in fail_alone" in alone.__notes__[0]
    assert alone.__notes__[1] == "on rank 1 of 2"


def test_an_error_that_cannot_be_pickled_arrives_as_text():
    (error,) = errors_of("shm", 1, functions.raise_unpicklable, connect=False)
    assert isinstance(error, RuntimeError)
    assert "cannot leave" in str(error)


def test_a_rank_that_dies_is_named_with_its_signal_or_code():
    (death,) = errors_of("shm", 3, functions.die, 1, connect=False)
    assert isinstance(death, WorkerError)
    assert (death.rank, death.exit_code) == (1, -9)
    (exit_,) = errors_of("shm", 1, functions.exit_badly, connect=False)
    assert (exit_.rank, exit_.exit_code) == (0, 3)


def test_a_group_starts_again_after_a_death():
    with RankGroup("shm", 2) as group:
        with pytest.raises(ExceptionGroup):
            group.run(functions.die, 0, connect=False)
        assert len(group.run(functions.variables, connect=False)) == 2


def test_at_the_deadline_all_are_killed_and_show_where_they_were():
    # They write down where they are when four fifths of it are over: time to get there, and time to write.
    late = errors_of("shm", 2, functions.hang, connect=False, timeout=15.0)
    assert [type(error) for error in late] == [TimeoutError, TimeoutError]
    assert all("in hang" in str(error) for error in late)
    assert "rank 1 did not return within 15.0 s and was killed" in str(late[1])


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (functions.leave_descriptor, "rank 0 left behind: file descriptor .*/dev/null"),
        (functions.leave_thread, "rank 0 left behind: thread .*forgotten"),
        (functions.leave_segment, "the ranks left behind: /dev/shm/pycobre-test-.*region"),
        (functions.keep_mapping, "rank 0 left behind: .*mapping /dev/shm/pycobre-test-"),
    ],
)
def test_what_a_rank_leaves_behind_fails_the_test(function, what):
    (error,) = errors_of("shm", 1, function, connect=False)
    try:
        assert isinstance(error, AssertionError)
        assert re.search(what, str(error))
    finally:
        for entry in os.listdir("/dev/shm"):
            if entry.endswith(".region") and entry in str(error):
                os.unlink(f"/dev/shm/{entry}")


def test_a_process_that_a_rank_leaves_behind_is_killed_and_fails_the_test():
    group = RankGroup("shm", 1)
    (pid,) = group.run(functions.leave_process, connect=False)
    with pytest.raises(AssertionError, match=f"process {pid} was left behind"):
        group.close()
    deadline = time.monotonic() + 200
    while alive(pid):
        assert time.monotonic() < deadline, "the process lives on"
        os.sched_yield()


def test_nothing_stays_in_the_parent():
    run_ranks("local", 1, functions.describe, 0)
    before = Holdings.now()
    run_ranks("local", 1, functions.describe, 0)
    errors_of("shm", 2, functions.die, 0, connect=False)
    errors_of("shm", 2, functions.hang, connect=False, timeout=0.5)
    run_ranks("threads", 2, functions.describe, 0)
    assert before.gained() == []


def test_functions_that_the_ranks_cannot_import_are_refused():
    with pytest.raises(TypeError, match="use a function at the top level of a module"):
        run_ranks("local", 1, lambda comm: None)
    interactive = type("F", (), {"__module__": "__main__", "__call__": lambda self, comm: None})()
    with pytest.raises(TypeError, match="defined in __main__, which the ranks cannot import"):
        run_ranks("local", 1, interactive)


def test_backends_that_do_not_exist_and_sizes_that_cannot_be():
    with pytest.raises(
        ValueError, match="expected a Starter or one of local, shm, tcp, mpi, threads; got 'gloo'"
    ):
        run_ranks("gloo", 1, functions.describe, 0)
    with pytest.raises(ValueError, match="expected size 1, got 2"):
        run_ranks("local", 2, functions.describe, 0)
    with pytest.raises(ValueError, match="run on shm or tcp instead"):
        run_ranks("threads", 2, functions.variables, connect=False)


def test_a_worker_that_cannot_start_is_an_error_and_not_a_hang():
    with pytest.raises(WorkerError, match="It never started"):
        run_ranks(Broken(), 1, functions.describe, 0)


class Broken(Starter):
    """Starts a program that ends at once."""

    name = "broken"

    def settings(self, size):
        raise AssertionError("never reached")

    def connect(self, environ):
        return LocalBackend()

    def command(self, size, worker):
        return [["/bin/false"]]


def test_a_thread_that_never_comes_is_named_at_the_timeout():
    first, second = ThreadBackend.group(2, timeout_s=0.05)
    with pytest.raises(Exception, match=r"rank 1 did not respond for 0\.05 s") as caught:
        first.barrier()
    assert caught.value.rank == 1
    with pytest.raises(Exception, match="rank 1 did not respond"):
        second.barrier()
