"""The segment of a run from creation to unlinking, and who may attach.

Rank 0 makes the segment without a name, reserves its space and lays it out, and only then links it under its
name, which fails if the name is taken. So no rank sees half a segment, and a rank 0 that dies while making it
leaves nothing. The others look for the name, check what they find and claim their rank in it. When all have,
rank 0 unlinks the name: from then on the kernel frees the memory when the last process is gone, however it
went. Until then every attached rank that sees the start fail removes the name.

A stale segment, whose maker died during its start, is replaced: rank 0 removes it and links its own, and the others
wait for that. Whoever removes a name holds a lock on the file that it believes to be there, so that nobody removes
the segment that has just replaced it.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from pycobre._native import shm as native
from pycobre._util.pidfd import open_pidfd
from pycobre.comm.config import ShmConfig
from pycobre.comm.fold import ReduceOp
from pycobre.comm.shm import names
from pycobre.comm.shm.failure import START, collective_failed
from pycobre.errors import AllocationFailed, CollectiveFailed, InitializationFailed

log = logging.getLogger("pycobre.comm")

# Where segments live. Tests put them elsewhere.
DIRECTORY = "/dev/shm"

_ATTACHED = 2  # of the states in shm_layout.h; absent and claimed come before it
_SLOT_BUDGET = 16 << 20
# How long a rank waits for rank 0 to replace a stale segment. If it was this run's rank 0 that died, nobody will.
REPLACEMENT_S = 10.0
_NOT_OURS = "it does not start with pycobre's mark"
_REFUSED = (errno.ENOSPC, errno.ENOMEM, errno.EFBIG, errno.EDQUOT, errno.EOVERFLOW)


def open_channel(config: ShmConfig) -> native.Channel:
    """Meet the other ranks in the segment of that name and return this rank's end, ready for collectives."""
    if config.size > native.MAX_RANKS:
        raise InitializationFailed("shm", f"size: expected at most {native.MAX_RANKS}, got {config.size}")
    deadline = time.monotonic() + config.timeout_s
    path = os.path.join(DIRECTORY, config.name.removeprefix("/"))
    try:
        segment = _create(path, config) if config.rank == 0 else _attach(path, config, deadline)
    except OSError as error:  # no shared-memory mount, no /proc, out of descriptors
        raise InitializationFailed("shm", f"the segment {path} cannot be made or opened: {error}") from error
    channel = segment.channel
    try:
        _wait_for_all(channel, segment, config, deadline)
        if config.rank == 0:
            segment.unlink()
        _agree(channel, config)
    except BaseException as error:
        channel.abort(f"{type(error).__name__}: {error}")
        segment.unlink()
        channel.close()
        raise
    return channel


def reserve(size: int) -> int:
    """A descriptor of a nameless file of `size` bytes of shared memory whose space is reserved."""
    mount = os.statvfs(DIRECTORY)
    free = mount.f_bavail * mount.f_frsize
    descriptor = os.open(DIRECTORY, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        # Asked first because the kernel takes page after page before it notices; its word is the last one.
        if size > free > 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.posix_fallocate(descriptor, 0, max(size, 1))
    except (OSError, OverflowError) as error:
        os.close(descriptor)
        if isinstance(error, OSError) and error.errno not in _REFUSED:
            raise
        raise AllocationFailed(
            size,
            f"the shared-memory mount {DIRECTORY} has {free} of {mount.f_blocks * mount.f_frsize} bytes free "
            f"({error}). Enlarge it: docker run --shm-size=..., a memory-backed emptyDir in Kubernetes, or "
            f"mount -o remount,size=... {DIRECTORY}",
        ) from error
    return descriptor


@dataclass
class _Segment:
    """An open segment: its name as long as it has one, and this rank's end of it."""

    path: str
    identity: tuple[int, int]
    channel: native.Channel

    def unlink(self) -> None:
        """Remove the name, if it has not been removed yet."""
        names.remove_if_same(self.path, self.identity)


def _create(path: str, config: ShmConfig) -> _Segment:
    capacity = max(64 << 10, min(256 << 10, _SLOT_BUDGET // (2 * config.size)))
    total = native.segment_bytes(config.size, capacity)
    descriptor = reserve(total)
    try:
        memory = mmap.mmap(descriptor, total)
        start_time = process_start_time(os.getpid())
        native.format_segment(memory, config.size, capacity, start_time or 0, _pid_namespace())
        channel = _claim(memory, config)
        names.note(path, names.identity_of(os.fstat(descriptor)))
        while not _link(descriptor, path):
            problem = _replace_stale(path)
            if problem is not None:
                raise InitializationFailed("shm", problem)
        return _Segment(path, names.identity_of(os.fstat(descriptor)), channel)
    finally:
        os.close(descriptor)


def _link(descriptor: int, path: str) -> bool:
    """Give a nameless file its name; False if that is taken."""
    directory = os.open(DIRECTORY, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # With a directory descriptor Python uses linkat and follows the link to the nameless file.
        os.link(f"/proc/self/fd/{descriptor}", os.path.basename(path), dst_dir_fd=directory)
    except FileExistsError:
        return False
    finally:
        os.close(directory)
    return True


def _attach(path: str, config: ShmConfig, deadline: float) -> _Segment:
    found_stale: float | None = None
    for _ in _backoff(deadline):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            total, stale_process = _check_segment(path, descriptor, config)
            if stale_process is not None:
                found_stale = time.monotonic() if found_stale is None else found_stale
                if time.monotonic() < min(deadline, found_stale + REPLACEMENT_S):
                    continue
                raise InitializationFailed("shm", _not_replaced(path, stale_process, config))
            memory = mmap.mmap(descriptor, total)
            return _Segment(path, names.identity_of(os.fstat(descriptor)), _claim(memory, config))
        finally:
            os.close(descriptor)
    raise InitializationFailed(
        "shm",
        f"rank 0 did not create the segment {path} within {config.timeout_s:g} s. Start rank 0 too, with the "
        f"same COBRE_SHM_NAME, or raise COBRE_SHM_TIMEOUT_SECS.",
    )


def _check_segment(path: str, descriptor: int, config: ShmConfig) -> tuple[int, int | None]:
    """Refuse a segment that rank 0 of this run cannot have made; return its size, and its maker if that has died."""
    found = os.fstat(descriptor)
    header = native.read_header(os.pread(descriptor, native.HEADER_BYTES, 0))
    if found.st_uid != os.geteuid():
        problem = f"belongs to user {found.st_uid}, not to {os.geteuid()}"
    elif not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != 0o600:
        problem = f"has mode {stat.filemode(found.st_mode)}, expected -rw-------"
    elif header is None:
        problem = f"is foreign: {_NOT_OURS}"
    else:
        version, size, total, pid, start_time, namespace = header
        if version != native.VERSION:
            problem = f"has layout version {version}, expected {native.VERSION}: use one pycobre on all ranks"
        elif namespace != _pid_namespace():
            problem = "was made in another pid namespace: all ranks must run in one container"
        elif process_start_time(pid) != start_time:
            return total, pid
        elif size != config.size:
            problem = (
                f"is for {size} ranks, expected {config.size}: COBRE_SHM_SIZE must be the same everywhere"
            )
        elif total != found.st_size:
            problem = f"is damaged: expected {total} bytes, got {found.st_size}"
        else:
            return total, None
    raise InitializationFailed("shm", f"the segment {path} {problem}. {_way_out(path)}")


def _replace_stale(path: str) -> str | None:
    """Remove a stale segment under rank 0's name; if it is something else, say what, in words."""
    try:
        with open(path, "rb") as file:
            header = native.read_header(file.read(native.HEADER_BYTES))
            found = os.fstat(file.fileno())
    except FileNotFoundError:
        return None  # removed meanwhile
    except OSError as error:
        return f"a segment {path} exists already and cannot be read ({error}). {_way_out(path)}"
    if header is None:
        return f"the segment {path} exists already and is foreign: {_NOT_OURS}. {_way_out(path)}"
    pid, start_time, namespace = header[3:]
    ours = found.st_uid == os.geteuid() and namespace == _pid_namespace()
    if ours and process_start_time(pid) != start_time:
        log.info("shm: the segment %s of process %d, which no longer runs, is replaced", path, pid)
        names.remove_if_same(path, names.identity_of(found))
        return None
    return (
        f"the segment {path} exists already and is in use: process {pid} is starting a run with it. "
        "Choose another COBRE_SHM_NAME."
    )


def _not_replaced(path: str, pid: int, config: ShmConfig) -> str:
    waited = min(REPLACEMENT_S, config.timeout_s)
    return (
        f"the segment {path} is stale: process {pid}, which made it, no longer runs, and rank 0 of this run did not "
        f"replace it within {waited:g} s. If rank 0 died, its own output says why; else start it too."
    )


def _way_out(path: str) -> str:
    return f"Choose another COBRE_SHM_NAME or remove it: rm {path}"


def _claim(memory: mmap.mmap, config: ShmConfig) -> native.Channel:
    cpus = bytearray(128)
    for cpu in os.sched_getaffinity(0):
        if cpu < len(cpus) * 8:
            cpus[cpu // 8] |= 1 << cpu % 8
    try:
        return native.Channel(
            memory,
            config.rank,
            config.size,
            config.timeout_s,
            (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX),
            process_start_time(os.getpid()) or 0,
            _pid_namespace(),
            bytes(cpus),
        )
    except FileExistsError as error:
        raise InitializationFailed(
            "shm",
            f"{error}. Every process needs its own COBRE_SHM_RANK, every run its own COBRE_SHM_NAME.",
        ) from error


def _wait_for_all(channel: native.Channel, segment: _Segment, config: ShmConfig, deadline: float) -> None:
    """Wait until every rank is attached, watching those that are."""
    watched = {config.rank}
    missing: list[int] = []
    for _ in _backoff(deadline):
        peers = channel.peers()
        missing = [rank for rank, peer in enumerate(peers) if peer[0] < _ATTACHED]
        for rank, (_, pid, start_time, _, _) in enumerate(peers):
            if rank not in watched and rank not in missing:
                _watch(channel, rank, pid, start_time)
                watched.add(rank)
        failure = channel.check()
        if failure is not None:
            cause = collective_failed("start", failure, config.rank, config.timeout_s)
            raise InitializationFailed("shm", cause.message) from cause
        if not missing:
            return
    ranks = ", ".join(map(str, missing))
    raise InitializationFailed(
        "shm",
        f"expected {config.size} ranks at {segment.path} within {config.timeout_s:g} s, missing: {ranks}."
        " Start them with the same COBRE_SHM_NAME and COBRE_SHM_SIZE, or raise COBRE_SHM_TIMEOUT_SECS.",
    )


def _watch(channel: native.Channel, rank: int, pid: int, start_time: int) -> None:
    """Have the channel notice that process's end; a pid that is gone or reused already counts as ended."""
    try:
        pidfd = open_pidfd(pid)
    except ProcessLookupError:
        pidfd = -1
    if pidfd < 0 or process_start_time(pid) != start_time:
        if pidfd >= 0:
            os.close(pidfd)
        cause = CollectiveFailed("start", 0, f"rank {rank} (process {pid}) ended during the start", rank=rank)
        raise InitializationFailed("shm", cause.message) from cause
    channel.watch(rank, pidfd)


def _agree(channel: native.Channel, config: ShmConfig) -> None:
    """The first collective: settle how to wait, and how to move large payloads."""
    spin = config.size <= _usable_cpus(channel.peers())
    channel.start(spin, False)
    readable = all(channel.can_read(rank) for rank in range(config.size) if rank != config.rank)
    everywhere = np.zeros(config.size, np.uint8)
    failure = channel.exchange(0, START, 0, 0, 0, np.array([readable], np.uint8), everywhere)
    if failure is not None:
        cause = collective_failed("start", failure, config.rank, config.timeout_s)
        raise InitializationFailed("shm", cause.message) from cause
    channel.start(spin, bool(everywhere.all()))


def _usable_cpus(peers: tuple[native.Peer, ...]) -> float:
    """How many processors the ranks have together: those they may run on, within this group's quota."""
    together = 0
    for peer in peers:
        together |= int.from_bytes(peer[4], "little")
    return min(together.bit_count(), _cpu_quota())


def _cpu_quota(group_file: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> float:
    """The processors' worth of time that control groups (version 2) allow this process."""
    quota = float("inf")
    with suppress(OSError):
        with open(group_file) as file:
            group = next((line[3:].strip() for line in file if line.startswith("0::")), "")
        while group:
            with suppress(OSError, ValueError), open(f"{root}{group.rstrip('/')}/cpu.max") as file:
                allowed, period = map(float, file.read().split())  # ValueError: "max", there is no quota
                quota = min(quota, allowed / period)
            group = group.rpartition("/")[0]
    return quota


def process_start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before it may contain anything
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _backoff(deadline: float) -> Iterator[None]:
    """Yield now and again until the deadline, after pauses of a twentieth of the time waited, 0.2 to 20 ms."""
    begin = time.monotonic()
    while True:
        yield
        now = time.monotonic()
        if now >= deadline:
            return
        time.sleep(min(max(0.0002, (now - begin) / 20), 0.02, deadline - now))
