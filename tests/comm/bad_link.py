"""A link with delay and loss between two network namespaces, for kernels whose `tc` has no netem.

    python bad_link.py NAMESPACE INTERFACE NAMESPACE INTERFACE DELAY_MS LOSS

Makes the two interfaces (TAP devices) and carries Ethernet frames between them: those from the first arrive
later, and of both directions some are lost, the same ones in every run. Prints a line once it is up and works
until it is killed; the interfaces go with it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_LONGEST_FRAME = 65536


def make_tap(namespace: str, name: str) -> int:
    """A TAP device in a namespace; the descriptor reads what is sent through it and delivers what is written."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as handle:
        if libc.setns(handle.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter namespace {namespace}")
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return descriptor


def carry(near: int, far: int, delay_s: float, loss: float) -> None:
    """Forward frames for ever."""
    chance = random.Random(1)
    on_the_way: deque[tuple[float, bytes]] = deque()
    while True:
        timeout = max(0.0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for descriptor in select.select([near, far], [], [], timeout)[0]:
            frame = os.read(descriptor, _LONGEST_FRAME)
            if chance.random() < loss:
                continue
            if descriptor == near:
                on_the_way.append((time.monotonic() + delay_s, frame))
            else:
                deliver(near, frame)
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            deliver(far, on_the_way.popleft()[1])


def deliver(descriptor: int, frame: bytes) -> None:
    try:
        os.write(descriptor, frame)
    except OSError:  # the interface is not up yet, or its queue is full: lost, as on any bad link
        return


def main(near_namespace: str, near: str, far_namespace: str, far: str, delay_ms: str, loss: str) -> None:
    taps = make_tap(near_namespace, near), make_tap(far_namespace, far)
    print("up", flush=True)
    carry(*taps, float(delay_ms) / 1000, float(loss))


if __name__ == "__main__":
    main(*sys.argv[1:])
