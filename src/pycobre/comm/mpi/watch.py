"""Notice that a rank of this node died, or left, while this one waits for it.

A blocking MPI collective waits for ever for a rank that is gone, and launchers differ: some end the job but
do not say which rank it was, some do nothing. So the ranks of a node watch each other, on a thread that
sleeps until something happens and costs a collective next to nothing:

- death: a descriptor of each peer process (pidfd) becomes readable when the process ends;
- leaving: a rank that closes its communicator, or comes to its end without closing it, tells its peers the
  number of its last collective. A peer that waits in a later one waits in vain;
- ending: a rank that ends the job tells its peers the exit code first. Its death is then not news: they leave
  the end, and its code, to the launcher, and step in with that code only where the launcher does nothing;
- stopping: a process that was stopped (SIGSTOP) is checked now and then, until the timeout.

A rank that waits in vain reports for whom and ends the job. Peers are watched where the system
allows it: Linux, and ranks of one node in one process namespace.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from pycobre._util.pidfd import open_pidfd
from pycobre.comm import failure

PEER_INFO_BYTES = 64
_PEER_INFO = struct.Struct(
    "<qqqq"
)  # rank, process, process namespace, length of the notices' address after it
_NOTICE = struct.Struct("<qqq")  # what is told, the rank that tells it, the value
_LEAVES = 0  # the value is the number of the rank's last collective
_ENDS_JOB = 1  # the value is the exit code
_LEAVE_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 1.0  # for all peers together: the job must end, also when one of them does not listen
# How long a launcher may take from the death of the rank that ends the job to that of the others.
_LAUNCHER_GRACE_S = 10.0
# The lowest living rank reports; each other waits this long per living rank below it, in case they cannot.
_TURN_S = 0.25
_TURNS = 20
# How often, within the timeout of a stopped peer, the peers are checked.
_CHECKS = 10


class PeerInfo(NamedTuple):
    """How a rank of this node can be watched, and told something."""

    rank: int
    process: int
    namespace: int
    address: bytes

    def pack(self) -> bytes:
        """As `PEER_INFO_BYTES` bytes."""
        head = _PEER_INFO.pack(self.rank, self.process, self.namespace, len(self.address))
        return (head + self.address).ljust(PEER_INFO_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes) -> PeerInfo:
        """Undo `pack`."""
        rank, process, namespace, length = _PEER_INFO.unpack_from(data)
        return cls(rank, process, namespace, data[_PEER_INFO.size : _PEER_INFO.size + length])


class PeerWatch:
    """Watches the peers of one communicator on this node.

    The owner sets `latest`, name and number, at the start of a collective and then looks at `departed`, in
    this order; the thread writes `departed` and then looks at `latest`. So one of the two sees the other. It
    does not matter whether the latest collective is over: in a program without mistakes no rank leaves before
    one that another has entered. `on_loss` is called from the thread, with a text that names the lost rank,
    and should not return.
    """

    def __init__(self, rank: int, on_loss: Callable[[str], None], timeout_s: float = 60.0) -> None:
        self.latest = "", 0
        self.departed: dict[int, int] = {}
        self._rank = rank
        self._on_loss = on_loss
        self._timeout_s = timeout_s
        self._checks: dict[int, int] = {}
        self._ending: tuple[int, int] | None = None
        self._peers: dict[int, PeerInfo] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("")  # Linux finds a free abstract name, which goes with the socket
        self._socket.setblocking(False)
        # Whoever finds no notice must know those that another thread has taken. A handler of signals may ask too.
        self._reading = threading.RLock()
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="pycobre-mpi-watch", daemon=True)

    def own_info(self) -> PeerInfo:
        """What a peer needs in order to watch this process."""
        return PeerInfo(self._rank, os.getpid(), _process_namespace(), self._socket.getsockname())

    def start(self, peers: list[PeerInfo]) -> None:
        """Watch the processes that these describe, from now on until `leave`."""
        for info in peers:
            if info.rank == self._rank or info.namespace != _process_namespace():
                continue  # in another container its process number means something else here
            try:
                descriptor = open_pidfd(info.process)
            except ProcessLookupError:
                descriptor = os.open(
                    os.devnull, os.O_RDONLY
                )  # it died since: always readable, like its pidfd
            self._peers[descriptor] = info
        self._thread.start()

    def leave(self, sequence: int) -> None:
        """Tell the peers that this rank takes part in no collective after `sequence`, and stop watching."""
        # The thread still reads meanwhile: a socket holds few notices, and all ranks may leave at once.
        self._tell(_LEAVES, sequence, _LEAVE_TIMEOUT_S)
        os.write(self._stop_write, b"x")
        self._thread.join()
        self._socket.close()
        for descriptor in (*self._peers, self._stop_read, self._stop_write):
            os.close(descriptor)

    def announce_end(self, code: int) -> None:
        """Tell the peers that this rank is about to end the job with that exit code; from any thread."""
        self._tell(_ENDS_JOB, code, _END_TIMEOUT_S)

    def announced_code(self) -> int | None:
        """The exit code with which a peer ends the job, if one has said so by now; from any thread."""
        self._read_notices()
        return None if self._ending is None else self._ending[1]

    def lost_for(self, sequence: int) -> tuple[int, int] | None:
        """A rank that will not take part in collective `sequence`, and the number of its last one."""
        # A copy, made in one step: the other thread may add to it.
        departed = tuple(self.departed.items())
        return next(((rank, last) for rank, last in departed if last < sequence), None)

    def _tell(self, what: int, value: int, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            for peer in tuple(self._peers.values()):
                line.settimeout(max(0.0, deadline - time.monotonic()))
                try:
                    line.sendto(_NOTICE.pack(what, self._rank, value), peer.address)
                except OSError:
                    continue  # it left before us, or is too busy to be told

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._stop_read, select.POLLIN)
        poller.register(self._socket, select.POLLIN)
        watched = dict(self._peers)
        for descriptor in watched:
            poller.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poller.poll(1000 * self._timeout_s / _CHECKS)]
            if self._stop_read in ready:
                return
            if not ready:
                self._look_for_stopped(watched)
            for descriptor in ready:
                self._read_notices()  # also before a death is judged: a leaver's notice precedes its end
                if descriptor in watched:
                    poller.unregister(descriptor)
                    peer = watched.pop(descriptor)
                    if peer.rank not in self.departed:
                        self._report(self._death(peer), watched)
            operation, sequence = self.latest
            lost = self.lost_for(sequence)
            if lost is not None:
                self._report(departure(self._rank, operation, sequence, *lost), watched)

    def _read_notices(self) -> None:
        with self._reading:
            while True:
                try:
                    notice = self._socket.recv(_NOTICE.size)
                except OSError:  # no more of them, or this rank has left
                    return
                what, rank, value = _NOTICE.unpack(notice)
                if what == _LEAVES:
                    self.departed[rank] = value
                elif self._ending is None:
                    self._ending = rank, value

    def _look_for_stopped(self, watched: dict[int, PeerInfo]) -> None:
        """Report a peer that was found stopped at every check until the timeout.

        Checks are counted, not seconds: a job that is stopped as a whole does not check.
        """
        for peer in tuple(watched.values()):
            self._checks[peer.rank] = self._checks.get(peer.rank, 0) + 1 if _is_stopped(peer.process) else 0
            if self._checks[peer.rank] >= _CHECKS:
                text = failure.stopped(_name(peer), self._timeout_s)
                advice = "If that is intended, raise COBRE_MPI_TIMEOUT_SECS."
                self._report(f"{text}; {failure.progress(self._rank, *self.latest)}. {advice}", watched)

    def _death(self, peer: PeerInfo) -> str:
        return f"{_name(peer)} died; {failure.progress(self._rank, *self.latest)}"

    def _report(self, text: str, living: dict[int, PeerInfo]) -> None:
        below = sum(peer.rank < self._rank for peer in living.values())
        stop = select.poll()
        stop.register(self._stop_read, select.POLLIN)
        turn_ms = 1000 * _TURN_S * min(below, _TURNS)
        self._read_notices()
        if self._ending is None:
            if stop.poll(turn_ms):
                return
            self._read_notices()  # a peer whose turn came earlier ends the job
        if self._ending is not None:
            if stop.poll(1000 * _LAUNCHER_GRACE_S + turn_ms):
                return
            rank, code = self._ending
            text = failure.outlived_the_job(self._rank, rank, code, _LAUNCHER_GRACE_S)
        self._on_loss(text)


def departure(rank: int, operation: str, sequence: int, lost: int, last: int) -> str:
    """Say that `rank` waits, or would wait, in vain for rank `lost`, which has left."""
    waiting = f"rank {rank} needs it in {operation}, collective {sequence} of this communicator"
    return failure.left(failure.rank_name(lost), last, waiting)


def _name(peer: PeerInfo) -> str:
    return failure.rank_name(peer.rank, process=peer.process, host=socket.gethostname())


def _is_stopped(process: int) -> bool:
    """Whether a signal has stopped that process; one that a debugger holds is not meant."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            # The name, in parentheses, may contain anything; the state follows it.
            return stat.read().rpartition(")")[2].split()[0] == "T"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _process_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino
