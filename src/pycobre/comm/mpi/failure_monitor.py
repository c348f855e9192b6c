"""A process beside the ranks of a node that says which of them died first.

When a rank dies, MPICH's launcher kills the others at once, so that none of them can say whom they lost, and
then reports one of those that it killed. The witness is no rank and is not killed. Every rank holds a
connection to it, which the kernel ends when the process does, and it hears the ends in their order. A rank
that leaves in good order, or that ends the job and has said why, tells it so before; otherwise the witness
names the first that is gone. It ends with the last rank: it knows how many to expect, for the first may have
left before the last has come. As long as some have not come it names nobody, since one of those may have died
before.

This file is both the module that starts the witness and the program that it runs, so it imports nothing of
the package.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys

_HEARD = b"heard"
_LEFT = b"left"
_QUIET = b"quiet"
_MESSAGE_BYTES = 64
_TIMEOUT_S = 30.0
# A line that was looked at must not keep its place in the queue of events: its end comes after earlier ends.
_EDGE = select.EPOLLIN | select.EPOLLET


class Witness:
    """This rank's connection to the witness of its node; `OSError` where it is not there any more."""

    def __init__(self, rank: int, address: bytes) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._line.settimeout(_TIMEOUT_S)
            self._line.connect(address)
            self._line.send(f"{rank} {os.getpid()}".encode())
            # With our name still unread there, an end would not be a new event, and not be in its order.
            self._line.recv(_MESSAGE_BYTES)
        except OSError:
            self._line.close()
            raise

    def leave(self) -> None:
        """Say that this process ends in good order."""
        _say(self._line, _LEFT)

    def hush(self) -> None:
        """Say that the job is being ended by somebody who has said why."""
        _say(self._line, _QUIET)


def _say(line: socket.socket, message: bytes) -> None:
    try:
        line.send(message)
    except OSError:
        return  # the other end is gone: a witness with nothing more to hear, or a rank whose end is heard next


def _hear(line: socket.socket) -> bytes:
    """The next message, or nothing from one that is gone."""
    try:
        return line.recv(_MESSAGE_BYTES)
    except ConnectionResetError:  # gone without having read what it was told
        return b""


def start_witness(ranks: int) -> bytes:
    """Start a witness of that many ranks; returns the address at which it expects them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")  # Linux finds a free abstract name, which goes with the socket
        listener.listen(1024)
        # A session of its own: launchers kill process groups. The program goes into the background by itself.
        subprocess.run(
            [sys.executable, "-I", "-S", __file__, *map(str, (listener.fileno(), ranks, os.getpid()))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            check=True,
        )
        address: bytes = listener.getsockname()
    return address


def main(listener: socket.socket, ranks: int, starter_process: int) -> None:
    """Hear the ranks until one dies, all have come and left, or one says that all is said.

    Where the rank that started the witness is gone before any has come, nobody will: the job was killed. The
    launcher waits until nobody holds its output any more, so the witness must not wait for them.
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
    lines: dict[int, socket.socket] = {}
    names: dict[int, tuple[str, str]] = {}
    missing = ranks
    while ready := events.poll(None if lines else _TIMEOUT_S):
        for descriptor, _ in ready:
            if descriptor == listener.fileno():
                line, _ = listener.accept()
                lines[line.fileno()] = line
                events.register(line, _EDGE)
                continue
            if descriptor == starter:
                events.unregister(starter)
                if not lines:
                    return
                continue
            message = _hear(lines[descriptor])
            if message == _QUIET:
                return
            if not message:
                if not missing:
                    _report(*names[descriptor])
                return
            if message == _LEFT:
                lines.pop(descriptor).close()
            else:
                rank, process = message.decode().split()
                names[descriptor] = rank, process
                missing -= 1
                events.modify(descriptor, _EDGE)  # an end right behind the name is an event of its own
                _say(lines[descriptor], _HEARD)
        if not missing and not lines:
            return


def _report(rank: str, process: str) -> None:
    host = socket.gethostname()
    os.write(2, f"pycobre: rank {rank} (process {process} on {host}) died, and the job with it\n".encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))
