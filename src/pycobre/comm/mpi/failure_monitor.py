"""Failure monitor: a process beside the ranks of a node that reports the first of them to die.

When a rank dies, MPICH's launcher kills the others at once, so that none of them can report whom they lost, and
then reports one of those that it killed. The monitor is no rank and is not killed. Every rank holds a
connection to it, which the kernel closes when the process ends; the monitor sees these closings in their order. A
rank that leaves in good order, or that ends the job and has printed why, sends a message before; otherwise the
monitor reports the first that is gone and removes the shared-memory files that MPICH would have removed in
MPI_Finalize. It ends with the last rank: it knows how many to expect, for the first may
have left before the last has connected. As long as some have not connected it reports none, since one of those may
have died before.

This file is both the module that starts the monitor and the program that it runs, so it imports nothing of
the package.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys

_REGISTERED = b"registered"
_LEFT = b"left"
_SUPPRESS = b"suppress"
_MESSAGE_BYTES = 1024
_MOUNT = "/dev/shm"
_SEGMENT_PREFIX = "mpich_shm_"
_TIMEOUT_S = 30.0
# A connection that was read must not keep its place in the queue of events: its end comes after earlier ends.
_EDGE = select.EPOLLIN | select.EPOLLET


class FailureMonitor:
    """This rank's connection to the failure monitor of its node; `OSError` where that has ended."""

    def __init__(self, rank: int, address: bytes) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._connection.settimeout(_TIMEOUT_S)
            self._connection.connect(address)
            self._connection.send(" ".join([str(rank), str(os.getpid()), *_library_segments()]).encode())
            # With our name still unread there, an end would not be a new event, and not be in its order.
            self._connection.recv(_MESSAGE_BYTES)
        except OSError:
            self._connection.close()
            raise

    def leave(self) -> None:
        """Announce that this process ends in good order."""
        _send(self._connection, _LEFT)

    def suppress(self) -> None:
        """Suppress the report: the job is being ended by a rank that has printed why."""
        _send(self._connection, _SUPPRESS)


def _send(connection: socket.socket, message: bytes) -> None:
    try:
        connection.send(message)
    except OSError:
        return  # the other end is gone: a monitor that has ended, or a rank whose end is the next event


def _receive(connection: socket.socket) -> bytes:
    """The next message, or nothing from a rank that is gone."""
    try:
        return connection.recv(_MESSAGE_BYTES)
    except ConnectionResetError:  # gone without having read what it was sent
        return b""


def start_failure_monitor(ranks: int, report: str) -> bytes:
    """Start a monitor of that many ranks; returns the address at which it expects them.

    `report` is what it prints of the first that dies, with places for `rank`, `process` and `host`.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")  # Linux finds a free abstract name, which goes with the socket
        listener.listen(1024)
        # A session of its own: launchers kill process groups. The program goes into the background by itself.
        subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                __file__,
                *map(str, (listener.fileno(), ranks, os.getpid(), report)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            check=True,
        )
        address: bytes = listener.getsockname()
    return address


def main(listener: socket.socket, ranks: int, starter_process: int, report: str) -> None:
    """Watch the ranks until one dies, all have connected and left, or one suppresses the report.

    If the rank that started the monitor is gone before any has connected, none will: the job was killed. The
    launcher waits until no process holds its output any more, so the monitor must not wait for them.
    """
    try:
        starter = os.pidfd_open(starter_process)
    except ProcessLookupError:
        return
    if os.fork():
        os._exit(0)
    # Events are reported in the order in which they happened, also to one who is late to look.
    events = select.epoll()
    events.register(listener, select.EPOLLIN)
    events.register(starter, select.EPOLLIN)
    connections: dict[int, socket.socket] = {}
    names: dict[int, tuple[str, str]] = {}
    segments: set[str] = set()
    missing = ranks
    while ready := events.poll(None if connections else _TIMEOUT_S):
        for descriptor, _ in ready:
            if descriptor == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                events.register(connection, _EDGE)
                continue
            if descriptor == starter:
                events.unregister(starter)
                if not connections:
                    return
                continue
            message = _receive(connections[descriptor])
            if message == _SUPPRESS:
                _remove(segments)
                return
            if not message:
                _remove(segments)
                if not missing:
                    _print(report, *names[descriptor])
                return
            if message == _LEFT:
                connections.pop(descriptor).close()
            else:
                rank, process, *files = message.decode().split()
                names[descriptor] = rank, process
                segments.update(files)
                missing -= 1
                events.modify(descriptor, _EDGE)  # an end right behind the name is an event of its own
                _send(connections[descriptor], _REGISTERED)
        if not missing and not connections:
            return


def _library_segments() -> list[str]:
    """Names of the shared-memory files that MPICH has mapped in this process."""
    prefix = f"{_MOUNT}/{_SEGMENT_PREFIX}"
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[5] for line in maps if prefix in line and not line.endswith("(deleted)\n")}
    return sorted(path.removeprefix(f"{_MOUNT}/") for path in mapped if path.startswith(prefix))[:8]


def _remove(segments: set[str]) -> None:
    """Remove files of MPICH that no rank will remove any more; those that still run have them mapped."""
    for name in segments:
        if name.startswith(_SEGMENT_PREFIX) and "/" not in name:
            with contextlib.suppress(OSError):  # gone already, or of another user
                os.unlink(f"{_MOUNT}/{name}")


def _print(report: str, rank: str, process: str) -> None:
    os.write(2, f"{report.format(rank=rank, process=process, host=socket.gethostname())}\n".encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
