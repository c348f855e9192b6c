"""Start N ranks on this machine, listen to them, forward a stop, attribute a death, reap everybody.

Ranks are fresh interpreters started by executing one (never forked from the caller), so the caller may be a
script without a `__main__` guard, a notebook or a REPL. What they work on travels once, in an anonymous
memory file that every rank inherits and maps. The launcher owns every process it starts: whatever happens,
`RankGroup.close` leaves none behind.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from pycobre._util.error_record import decode_error, origin_of
from pycobre._util.pidfd import open_pidfd
from pycobre.comm.config import ShmConfig, TcpConfig
from pycobre.comm.failure import did_not_end, rank_name
from pycobre.errors import CollectiveFailed, CommError, InitializationFailed, InvalidBackend, WorkerError
from pycobre.launch.channel import CHANNEL_FD_VARIABLE, PAYLOAD_FD_VARIABLE, Kind, MessageBuffer, frame

__all__ = ["Rank", "RankGroup", "rank_environments"]

LAUNCHABLE = ("shm", "tcp")
_FROM_RANKS = frozenset({Kind.EVENT, Kind.QUESTION, Kind.RESULT})
SHM_MOUNT = Path("/dev/shm")
_LAUNCHER_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "MPI_", "SLURM_", "AWS_BATCH_JOB_", "COBRE_")
_LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "JOB_COMPLETION_INDEX")
# Survivors learn of a death from their own backend within a fraction of a second and report it themselves;
# after this long they are ended.
GRACE_S = 5.0
# Rank 0 is told at once, saves what the run has come to, and says so; a disk may be slow.
SAVING_S = 60.0


@dataclass
class Rank:
    """One started process and what is known of its end."""

    rank: int
    process: subprocess.Popen[bytes]
    channel: socket.socket
    buffer: MessageBuffer = field(default_factory=MessageBuffer)
    error: BaseException | None = None
    exit_code: int | None = None
    ended_by_us: bool = False
    pidfd: int = -1
    failed_at: float = float("inf")
    worked: int = 0  # processor time when it was last looked at, in the system's ticks

    @property
    def failed(self) -> bool:
        return self.error is not None or (self.exit_code not in (None, 0) and not self.ended_by_us)


def rank_environments(
    backend: str, size: int, base: Mapping[str, str], listener: socket.socket | None = None
) -> list[dict[str, str]]:
    """The environment of each rank: `base` without any launcher's variables, plus what the backend needs.

    For tcp, `listener` is a bound socket that rank 0 inherits, so that the port cannot be lost to a race; the
    token is new for every run and never appears on a command line.
    """
    if backend not in LAUNCHABLE:
        raise InvalidBackend(backend, LAUNCHABLE)
    clean = {
        name: value
        for name, value in base.items()
        if not name.startswith(_LAUNCHER_PREFIXES) and name not in _LAUNCHER_VARIABLES
    }
    kept = {name: value for name, value in base.items() if name.endswith("_TIMEOUT_SECS")}
    clean.update(kept, COBRE_COMM_BACKEND=backend)
    # A rank has a core of its own: a pool of BLAS threads in each would only make it start later.
    clean.setdefault("OPENBLAS_NUM_THREADS", "1")
    if backend == "shm":
        clean["COBRE_SHM_NAME"] = f"pycobre-{os.getpid()}-{os.urandom(6).hex()}"
        return [dict(clean, COBRE_SHM_RANK=str(r), COBRE_SHM_SIZE=str(size)) for r in range(size)]
    if listener is None:
        raise InitializationFailed("tcp", "launching needs a listening socket for rank 0 to inherit")
    host, port = listener.getsockname()[:2]
    clean.update(
        COBRE_TCP_COORDINATOR=host,
        COBRE_TCP_BIND_ADDR=host,
        COBRE_TCP_PORT=str(port),
        COBRE_TCP_TOKEN=os.urandom(32).hex(),
        COBRE_TCP_SIZE=str(size),
    )
    environments = [dict(clean, COBRE_TCP_RANK=str(r)) for r in range(size)]
    environments[0]["COBRE_TCP_LISTEN_FD"] = str(listener.fileno())
    return environments


class RankGroup:
    """N ranks running one module, from start to the last one reaped.

    `payload` is mapped by every rank from the descriptor in `COBRE_PAYLOAD_FD`. Without one the ranks start, wait
    for `give` and do nothing before. Use as a context manager: leaving it kills what still runs.
    """

    def __init__(
        self,
        module: str,
        size: int,
        backend: str,
        payload: bytes | None = None,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.ranks: list[Rank] = []
        self.backend = backend
        self._selector = selectors.DefaultSelector()
        self._segment: Path | None = None
        self._timeout_s = 0.0
        self._saving_until: float | None = None  # how long rank 0 may take to save the run's state
        listener = _loopback_listener() if backend == "tcp" else None
        self._payload_fd = os.memfd_create("pycobre-payload", 0)
        try:
            environments = rank_environments(backend, size, os.environ if env is None else env, listener)
            config = ShmConfig if backend == "shm" else TcpConfig
            self._timeout_s = config.from_env(environments[0]).timeout_s
            if backend == "shm":
                self._segment = SHM_MOUNT / environments[0]["COBRE_SHM_NAME"]
            for rank, environment in enumerate(environments):
                inherited = [self._payload_fd]
                if listener is not None and rank == 0:
                    inherited.append(listener.fileno())
                self._start(module, rank, environment, inherited)
            if payload is not None:
                self.give(payload)
        except BaseException:
            self.close()
            raise
        finally:
            if listener is not None:
                listener.close()

    def give(self, payload: bytes) -> None:
        """Give the ranks what they work on; once."""
        view = memoryview(payload)
        while view.nbytes:
            view = view[os.write(self._payload_fd, view) :]
        for rank in self.ranks:
            self._send(rank, Kind.GO, b"")

    def _start(self, module: str, rank: int, environment: dict[str, str], inherited: list[int]) -> None:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise self._not_started(rank, error) from error
        environment[CHANNEL_FD_VARIABLE] = str(theirs.fileno())
        environment[PAYLOAD_FD_VARIABLE] = str(self._payload_fd)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", module],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[*inherited, theirs.fileno()],
                # Its own process group: Ctrl-C reaches the launcher alone, which decides what the ranks do.
                process_group=0,
            )
        except OSError as error:
            ours.close()
            raise self._not_started(rank, error) from error
        finally:
            theirs.close()
        try:
            pidfd = open_pidfd(process.pid)
        except OSError as error:
            process.kill()
            process.wait()
            ours.close()
            raise self._not_started(rank, error) from error
        started = Rank(rank, process, ours, pidfd=pidfd)
        self.ranks.append(started)
        self._selector.register(ours, selectors.EVENT_READ, started)
        self._selector.register(started.pidfd, selectors.EVENT_READ, started)

    def _not_started(self, rank: int, error: OSError) -> InitializationFailed:
        return InitializationFailed(self.backend, f"rank {rank} could not be started: {error}")

    def request_stop(self) -> None:
        """Ask every rank to end after its current step."""
        for rank in self.ranks:
            self._send(rank, Kind.STOP, b"")

    def kill(self) -> None:
        """End every rank at once, as somebody from outside would; `run` reports it."""
        for rank in self.ranks:
            rank.process.kill()

    def answer(self, rank: int, payload: bytes) -> None:
        """Answer the question that `rank` is waiting with."""
        self._send(self.ranks[rank], Kind.ANSWER, payload)

    def _send(self, rank: Rank, kind: Kind, payload: bytes) -> None:
        with suppress(OSError):  # that rank is gone; its end is reported by `run`
            rank.channel.sendall(frame(kind, payload))

    def run(self, on_message: Callable[[int, Kind, bytes], None]) -> None:
        """Deliver every message until all ranks have ended; raise `WorkerError` if one failed.

        An exception of `on_message` ends the run: the ranks are killed when the group is closed.
        """
        deadline: float | None = None
        heard = time.monotonic()
        while self._selector.get_map():
            # While all ranks live they time out on each other; on the last ones nobody else does.
            some_ended = any(rank.exit_code == 0 for rank in self.ranks)
            silence = heard + self._timeout_s if some_ended else float("inf")
            limit = min(silence, float("inf") if deadline is None else deadline)
            ready = self._selector.select(
                None if limit == float("inf") else max(0.0, limit - time.monotonic())
            )
            if ready and some_ended:
                self._some_work()
            heard = time.monotonic() if ready else heard
            if deadline is not None and time.monotonic() >= deadline:
                deadline = self._end_survivors()
            elif not ready and time.monotonic() >= silence:
                if self._some_work():
                    heard = time.monotonic()
                else:
                    self._give_up_silent_ranks()
            for key, _ in ready:
                # What a rank said last is read before its end is noticed, whichever the selector lists first.
                self._receive(key.data, on_message)
                if key.fd == key.data.pidfd:
                    self._reap(key.data, on_message)
            now = time.monotonic()
            for rank in self.ranks:
                if rank.failed:
                    rank.failed_at = min(rank.failed_at, now)
                    if deadline is None:
                        deadline = now + GRACE_S
                        self._let_rank_0_save(now)
        failure = self._failure()
        if failure is not None:
            raise failure from failure.inner

    def _let_rank_0_save(self, now: float) -> None:
        """Rank 0 may be in the middle of a long solve, and would learn of the loss in its next collective."""
        first = self.ranks[0]
        if not first.failed and first.exit_code is None:
            self._send(first, Kind.PEER_LOST, b"")
            self._saving_until = now + SAVING_S

    def _end_survivors(self) -> float:
        """Kill who is still there, rank 0 only when it has saved or cannot; returns when to look again."""
        saving = self._saving_until is not None and time.monotonic() < self._saving_until
        saving = saving and _field(self.ranks[0].process.pid, 2) != "T"  # one that was stopped saves nothing
        self._kill_rest(but_rank_0=saving)
        return time.monotonic() + (0.05 if saving else GRACE_S)

    def close(self) -> None:
        """Kill and reap whatever still runs. Idempotent."""
        self._kill_rest()
        for rank in self.ranks:
            rank.exit_code = rank.process.wait()
            rank.channel.close()
            if rank.pidfd >= 0:
                os.close(rank.pidfd)
                rank.pidfd = -1
        if self._payload_fd >= 0:
            os.close(self._payload_fd)
            self._payload_fd = -1
        if self._segment is not None:
            # Ranks unlink it once all are attached; a rank killed before that leaves it to us.
            self._segment.unlink(missing_ok=True)
        self._selector.close()

    def __enter__(self) -> RankGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, rank: Rank, on_message: Callable[[int, Kind, bytes], None]) -> bool:
        """Deliver what has arrived from a rank; False once its channel is at its end or has nothing more."""
        if rank.channel not in self._selector.get_map():
            return False
        try:
            data = rank.channel.recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionResetError:  # the rank died with our last message unread
            data = b""
        if not data:
            self._selector.unregister(rank.channel)
            return False
        for code, payload in rank.buffer.feed(data):
            if code == Kind.ERROR:
                rank.error = decode_error(payload, f"rank {rank.rank}")
            elif code == Kind.SAVED:
                self._saving_until = None
            elif code in _FROM_RANKS:
                on_message(rank.rank, Kind(code), payload)
            else:
                rank.error = CommError(
                    f"message of rank {rank.rank}: expected an event, a result or an error, got kind {code}. "
                    "Check that all processes of the run have the same version of pycobre."
                )
                self._selector.unregister(rank.channel)
                return False
        return True

    def _reap(self, rank: Rank, on_message: Callable[[int, Kind, bytes], None]) -> None:
        while self._receive(rank, on_message):
            pass
        if rank.channel in self._selector.get_map():
            self._selector.unregister(rank.channel)
        self._selector.unregister(rank.pidfd)
        rank.exit_code = rank.process.wait()

    def _failure(self) -> WorkerError | None:
        """The failure that explains the others': a rank that was killed or raised something of its own.

        Where all that is left are reports about a peer (it stalled, and was ended by us), the peer they name.
        """
        failed = sorted((rank for rank in self.ranks if rank.failed), key=lambda rank: rank.failed_at)
        if not failed:
            return None
        own = [rank for rank in failed if not isinstance(rank.error, CollectiveFailed)]
        if own:
            first = own[0]
            origin = origin_of(first.error)
            if origin is not None and 0 <= origin < len(self.ranks):  # all ranks raise it, in whatever order
                first = self.ranks[origin]
            return WorkerError(first.rank, first.exit_code, first.error or own[0].error)
        for rank in failed:
            if isinstance(rank.error, CollectiveFailed) and rank.error.rank is not None:
                return WorkerError(rank.error.rank, None, rank.error)
        return WorkerError(failed[0].rank, failed[0].exit_code, failed[0].error)

    def _some_work(self) -> bool:
        """Whether a living rank has computed since the last call: one that writes large results says nothing."""
        before = [rank.worked for rank in self.ranks]
        for rank in self.ranks:
            if rank.exit_code is None:
                rank.worked = _processor_ticks(rank.process.pid)
        return before != [rank.worked for rank in self.ranks]

    def _give_up_silent_ranks(self) -> None:
        """End ranks that live on, saying nothing, long after others have come to their end."""
        for rank in self.ranks:
            if rank.exit_code is None:
                rank.error = silent_rank(rank.rank, rank.process.pid, self._timeout_s)
        self._kill_rest()

    def _kill_rest(self, *, but_rank_0: bool = False) -> None:
        for rank in self.ranks[1 if but_rank_0 else 0 :]:
            if rank.process.poll() is None:
                rank.ended_by_us = True
                rank.process.send_signal(signal.SIGKILL)


def silent_rank(rank: int, process: int, timeout_s: float) -> CollectiveFailed:
    """The error of a rank that did not end with the others."""
    message = did_not_end(rank_name(rank, process=process), timeout_s)
    return CollectiveFailed("the end of the run", 0, message, rank=rank)


def _processor_ticks(process: int) -> int:
    """Processor time that a process has had; 0 where the system does not say."""
    return int(_field(process, 13)) + int(_field(process, 14))


def _field(process: int, number: int) -> str:
    """A field of a process's `stat`, from 2 on (0 is the number, 1 the name); "0" where there is none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "0"
    return fields[number - 2]


def _loopback_listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener
