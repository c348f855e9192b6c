"""Meeting in shared memory: what may go wrong before the first collective, and the words for it."""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import os
import resource
import secrets
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from waiting import until_asleep, until_exists

from pycobre._native import shm as native
from pycobre.comm import (
    AllocationFailed,
    CollectiveFailed,
    Communicator,
    InitializationFailed,
    ReduceOp,
    ShmBackend,
    ShmConfig,
)
from pycobre.comm.shm import names
from pycobre.comm.shm import segment as shm_segment
from pycobre.errors import WorkerError
from pycobre.testing import run_ranks


@pytest.fixture
def name() -> Iterator[str]:
    """A segment name of this test's own, which must be free again at its end."""
    chosen = f"pycobre-test-{secrets.token_hex(8)}"
    yield chosen
    remains = Path("/dev/shm", chosen).exists()
    Path("/dev/shm", chosen).unlink(missing_ok=True)
    assert not remains, "the test left its segment behind"


def start(name: str, rank: int, size: int, timeout_s: float = 200.0) -> ShmBackend:
    return ShmBackend(ShmConfig(name, rank, size, timeout_s))


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def failure_of(name: str, rank: int, size: int, timeout_s: float = 200.0) -> str:
    with pytest.raises(InitializationFailed) as caught:
        start(name, rank, size, timeout_s)
    assert caught.value.backend == "shm"
    return caught.value.message


# --- names that are taken ---


@pytest.mark.parametrize("content", [b"", b"somebody else's data" * 100])
def test_a_foreign_segment(name: str, content: bytes) -> None:
    path = Path("/dev/shm", name)
    path.write_bytes(content)
    path.chmod(0o600)
    try:
        first = failure_of(name, 0, 2)
        assert f"the segment {path} exists already and is foreign" in first
        assert f"Choose another COBRE_SHM_NAME or remove it: rm {path}" in first
        other = failure_of(name, 1, 2)
        assert f"the segment {path} is foreign: it does not start with pycobre's mark" in other
        assert path.read_bytes() == content
    finally:
        path.unlink()


def leave_segment(name: str, size: int) -> int:
    """What a rank 0 leaves that is killed while it waits for the others; returns its process id."""
    code = """
        import os, sys
        from pycobre.comm import ShmConfig
        from pycobre.comm.shm import segment as shm_segment
        name, size = sys.argv[1:]
        shm_segment._create(f"/dev/shm/{name}", ShmConfig(name, 0, int(size)))
        print(os.getpid(), flush=True)
        os._exit(0)
    """
    done = python(code, name, str(size))
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def meet(name: str, size: int, *, first: int) -> list[float]:
    """Start all ranks as threads, rank `first` before the others; what each got from an allreduce."""

    def body(rank: int) -> float:
        with start(name, rank, size) as comm:
            total = np.zeros(1)
            comm.allreduce(np.ones(1), total, ReduceOp.SUM)
            return float(total[0])

    with ThreadPoolExecutor(size) as pool:
        early = pool.submit(body, first)
        late = [pool.submit(body, rank) for rank in range(size) if rank != first]
        return [future.result(timeout=200) for future in (early, *late)]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("size_before", [2, 3, 5])
def test_a_stale_segment_is_replaced_in_one_try(name: str, first: int, size_before: int) -> None:
    leave_segment(name, size_before)
    assert meet(name, 3, first=first) == [3.0] * 3


def test_a_stale_segment_that_rank_zero_does_not_replace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shm_segment, "REPLACEMENT_S", 0.05)
    pid = leave_segment(name, 2)
    path = Path("/dev/shm", name)
    text = failure_of(name, 1, 2)
    assert text == (
        f"the segment {path} is stale: process {pid}, which made it, no longer runs, and rank 0 of this run did not "
        "replace it within 0.05 s. If rank 0 died, its own output says why; else start it too."
    )
    assert path.exists()  # only rank 0 removes it: another rank could hit the segment that replaced it
    path.unlink()


def test_whoever_removes_a_name_does_not_hit_its_successor(name: str) -> None:
    """Two remove one stale segment; the second wakes when it has been replaced."""
    leave_segment(name, 2)
    path = Path("/dev/shm", name)
    stale = path.stat()
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        late = threading.Thread(target=names.remove_if_same, args=(str(path), (stale.st_dev, stale.st_ino)))
        late.start()
        until_asleep(os.getpid(), late.native_id)
        path.unlink()
        path.write_bytes(b"the successor")
    late.join()
    assert path.read_bytes() == b"the successor"
    path.unlink()


HEADER = struct.Struct(
    "8sIIQQiIQQ"
)  # of shm_layout.h: magic, version, size, bytes, capacity, pid, -, start, ns


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (1, 99, "has layout version 99, expected 1: use one pycobre on all ranks"),
        (2, 3, "is for 3 ranks, expected 2: COBRE_SHM_SIZE must be the same everywhere"),
        (3, 12345, "is damaged: expected 12345 bytes, got"),
        (8, 1, "was made in another pid namespace: all ranks must run in one container"),
    ],
)
def test_a_segment_that_does_not_fit(name: str, field: int, value: int, words: str) -> None:
    leave_segment(name, 2)
    path = Path("/dev/shm", name)
    try:
        with path.open("r+b") as file:
            fields = list(HEADER.unpack(file.read(HEADER.size)))
            assert fields[0] == b"PYCOBRE\0"
            assert fields[1:4] == [1, 2, path.stat().st_size]
            fields[5], fields[7] = os.getpid(), shm_segment.process_start_time(os.getpid())  # its maker lives
            fields[field] = value
            file.seek(0)
            file.write(HEADER.pack(*fields))
        assert words in failure_of(name, 1, 2)
    finally:
        path.unlink()


def test_a_segment_that_others_may_read(name: str) -> None:
    leave_segment(name, 2)
    path = Path("/dev/shm", name)
    path.chmod(0o644)
    try:
        assert "has mode -rw-r--r--, expected -rw-------" in failure_of(name, 1, 2)
    finally:
        path.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_segment_of_another_user(name: str) -> None:
    leave_segment(name, 2)
    path = Path("/dev/shm", name)
    os.chown(path, 12345, -1)
    try:
        assert "belongs to user 12345, not to 0" in failure_of(name, 1, 2)
    finally:
        path.unlink()


def test_no_shared_memory_mount(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shm_segment, "DIRECTORY", str(tmp_path / "none"))
    assert "cannot be made or opened: [Errno 2]" in failure_of(name, 0, 2)


def test_a_link_in_place_of_a_segment(name: str, tmp_path: Path) -> None:
    path = Path("/dev/shm", name)
    path.symlink_to(tmp_path)
    try:
        assert f"the segment {path} cannot be made or opened: [Errno 40]" in failure_of(name, 1, 2)
    finally:
        path.unlink()


# --- ranks that do not come, come twice, or die on the way ---


def test_rank_0_does_not_come(name: str) -> None:
    text = failure_of(name, 1, 2, timeout_s=0.2)
    assert f"rank 0 did not create the segment /dev/shm/{name} within 0.2 s" in text
    assert "COBRE_SHM_TIMEOUT_SECS" in text


def test_other_ranks_do_not_come(name: str) -> None:
    text = failure_of(name, 0, 3, timeout_s=0.2)
    assert f"expected 3 ranks at /dev/shm/{name} within 0.2 s, missing: 1, 2." in text


def test_too_many_ranks(name: str) -> None:
    assert "size: expected at most 1024, got 1025" in failure_of(name, 0, 1025)


def in_thread(name: str, rank: int, size: int, found: dict[int, Exception]) -> threading.Thread:
    def body() -> None:
        try:
            start(name, rank, size).close()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found[rank] = error

    thread = threading.Thread(target=body)
    thread.start()
    return thread


def test_a_rank_that_is_taken_a_size_that_differs_and_a_name_in_use(name: str) -> None:
    found: dict[int, Exception] = {}
    # Rank 2 never comes: rank 0 removes the name as soon as all are attached, and this test needs it to the end.
    first = in_thread(name, 0, 3, found)
    until_exists(Path("/dev/shm", name))
    taken = failure_of(name, 0, 3)
    assert f"/dev/shm/{name} exists already and is in use: process {os.getpid()}" in taken
    assert "is for 3 ranks, expected 4" in failure_of(name, 1, 4)
    config = ShmConfig(name, 1, 3)
    attached = shm_segment._attach(f"/dev/shm/{name}", config, time.monotonic() + 200)
    twice = failure_of(name, 1, 3)
    assert f"rank 1 is already taken by process {os.getpid()}" in twice
    assert "Every process needs its own COBRE_SHM_RANK" in twice
    attached.channel.close()
    first.join()
    assert "rank 1 (process" in str(found[0])
    assert "closed its communicator" in str(found[0])


def die_during_start(environ: dict[str, str], odd: int) -> None:
    """Rank `odd` dies when the other is attached too, and both wait for rank 2, which never comes."""
    config = ShmConfig.from_env(environ)
    if config.rank == 2:
        return

    def die(channel: native.Channel, *_: object) -> None:
        while channel.peers()[1 - odd][0] < 2:
            os.sched_yield()
        os._exit(9)

    if config.rank == odd:
        shm_segment._wait_for_all = die
    with pytest.raises(InitializationFailed) as caught:
        ShmBackend(config)
    assert f"rank {odd} (process " in str(caught.value)
    assert "ended" in str(caught.value)
    assert isinstance(caught.value.__cause__, CollectiveFailed)
    assert caught.value.__cause__.rank == odd


@pytest.mark.parametrize("odd", [0, 1])
def test_a_rank_dies_while_the_others_wait_for_the_last(odd: int) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        run_ranks("shm", 3, die_during_start, odd, connect=False)
    (died,) = caught.value.exceptions
    assert isinstance(died, WorkerError)
    assert (died.rank, died.exit_code) == (odd, 9)


def interrupt_start(name: str, ready: str) -> None:
    # Whoever starts the suite in the background may have switched interrupts off for all its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Path(ready).touch()
    start(name, 0, 2)


def test_an_interrupt_while_waiting_for_others_leaves_nothing(name: str, tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=interrupt_start, args=(name, str(tmp_path / "ready"))
    )
    process.start()
    until_exists(Path("/dev/shm", name))
    assert process.pid is not None
    until_asleep(process.pid)
    os.kill(process.pid, signal.SIGINT)
    process.join(200)
    assert process.exitcode == 1


# --- space ---


def test_a_mount_that_is_too_small(tmp_path: Path) -> None:
    code = """
        import ctypes, os, sys
        import numpy as np
        from pycobre.comm import AllocationFailed, ShmBackend, ShmConfig
        from pycobre.comm.shm import segment as shm_segment
        mount, size = sys.argv[1:]
        libc = ctypes.CDLL(None, use_errno=True)
        new_mount, new_user = 0x00020000, 0x10000000
        if libc.unshare(new_mount | (0 if os.geteuid() == 0 else new_user)) != 0:
            sys.exit(77)
        if libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:  # private: nobody else sees it
            sys.exit(77)
        if libc.mount(b"tmpfs", mount.encode(), b"tmpfs", 0, f"size={size}".encode()) != 0:
            sys.exit(77)
        shm_segment.DIRECTORY = mount
        try:
            with ShmBackend(ShmConfig("segment", 0, 1)) as comm:
                comm.create_shared_region(1 << 20, np.float64)
        except AllocationFailed as error:
            print(error.requested_bytes, error)
    """
    small = python(code, str(tmp_path), "64k")
    if small.returncode == 77:
        pytest.skip("mounting a file system is not allowed here")
    assert small.returncode == 0, small.stderr
    assert small.stdout.startswith(str(native.segment_bytes(1, 256 << 10)))
    for words in (f"the shared-memory mount {tmp_path} has 65536 of 65536 bytes free", "--shm-size"):
        assert words in small.stdout
    # Large enough for the segment, not for the region.
    larger = python(code, str(tmp_path), "2m")
    assert larger.stdout.startswith(f"{8 << 20} cannot allocate {8 << 20} bytes: the shared-memory mount")


def allocate_beyond_limit(comm: Communicator) -> str:
    assert isinstance(comm, ShmBackend)
    if comm.is_leader:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    try:
        comm.create_shared_region(1 << 20, float)
    except AllocationFailed as error:
        comm.barrier()
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    raise AssertionError("expected AllocationFailed")


def test_a_region_that_the_system_refuses_fails_on_every_rank() -> None:
    texts = run_ranks("shm", 2, allocate_beyond_limit)
    assert texts[0] == texts[1]
    assert texts[0].startswith(f"cannot allocate {8 << 20} bytes: the shared-memory mount /dev/shm has")
    assert "File too large" in texts[0]
    assert "--shm-size" in texts[0]


# --- how to wait ---


def test_processors_are_counted_together_and_within_the_quota(tmp_path: Path) -> None:
    def peer(cpus: int) -> native.Peer:
        return (2, 1, 1, 1, cpus.to_bytes(128, "little"))

    assert shm_segment._usable_cpus((peer(0b0001), peer(0b0110))) == pytest.approx(
        min(3, shm_segment._cpu_quota())
    )
    group = tmp_path / "cgroup"
    group.write_text("12:memory:/old\n0::/outer/inner\n")
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "outer" / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "outer" / "inner" / "cpu.max").write_text("max 100000\n")
    assert shm_segment._cpu_quota(str(group), str(tmp_path)) == 1.5
    assert shm_segment._cpu_quota(str(tmp_path / "none"), str(tmp_path)) == float("inf")


def test_the_start_of_a_process_is_known_while_it_runs() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        begun = shm_segment.process_start_time(process.pid)
        assert begun is not None
        assert begun >= (shm_segment.process_start_time(os.getpid()) or 0)
    finally:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert shm_segment.process_start_time(process.pid) is None  # ended, but not yet reaped
        process.communicate()
    assert shm_segment.process_start_time(process.pid) is None


def test_a_struct_of_the_header_is_what_the_native_module_reads() -> None:
    assert HEADER.size <= native.HEADER_BYTES
    data = HEADER.pack(b"PYCOBRE\0", 1, 2, 3, 4, 5, 0, 6, 7).ljust(native.HEADER_BYTES, b"\0")
    assert native.read_header(data) == (1, 2, 3, 5, 6, 7)
    assert native.read_header(data[:20]) is None
    assert ctypes.sizeof(ctypes.c_void_p) == 8
