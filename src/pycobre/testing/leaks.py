"""What a process holds of the system, and what it holds more than before. Linux only: it reads /proc."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

_PAUSE_S = 0.01
_OF_ALLOCATORS = frozenset({"jemalloc_bg_thd"})


@dataclass(frozen=True)
class Holdings:
    """File descriptors, threads and shared mappings of this process."""

    descriptors: frozenset[tuple[int, str]]
    threads: frozenset[str]
    mappings: frozenset[str]

    @classmethod
    def now(cls) -> Holdings:
        """Look at /proc/self. Threads are named by Python where it knows them."""
        descriptors = set()
        for entry in os.listdir("/proc/self/fd"):
            try:
                descriptors.add((int(entry), os.readlink(f"/proc/self/fd/{entry}")))
            except FileNotFoundError:  # the one that listed the directory
                continue
        names = {str(thread.native_id): thread.name for thread in threading.enumerate()}
        threads = {
            f"{task} ({names.get(task, 'native')})" for task in os.listdir("/proc/self/task") if _counts(task)
        }
        with open("/proc/self/maps") as maps:
            fields = (line.split(maxsplit=5) for line in maps)
            mappings = {
                f"{parts[5].strip()} at {parts[0]}"
                for parts in fields
                if len(parts) == 6 and parts[5].startswith(("/dev/shm/", "/memfd:"))
            }
        return cls(frozenset(descriptors), frozenset(threads), frozenset(mappings))

    def gained(self, patience_s: float = 5.0) -> list[str]:
        """What the process holds now and did not then.

        A joined thread stays in /proc for an instant, so the answer is taken again until it is empty or the
        patience is over. Patience is counted in looks, not by the clock: a machine that stood still for a while
        has not given the thread time to go. A thread is known by its number; Python may learn its name later.
        """
        known = {_number(thread) for thread in self.threads}
        pause = threading.Event()
        looks = 1 + round(patience_s / _PAUSE_S)
        while True:
            now = Holdings.now()
            looks -= 1
            found = [
                f"file descriptor {fd} -> {target}"
                for fd, target in sorted(now.descriptors - self.descriptors)
            ]
            found += [f"thread {thread}" for thread in sorted(now.threads) if _number(thread) not in known]
            found += [f"mapping {mapping}" for mapping in sorted(now.mappings - self.mappings)]
            if not found or not looks:
                return found
            pause.wait(_PAUSE_S)


def _counts(task: str) -> bool:
    """Whether a thread is somebody's who could end it: the allocator of a library keeps its own for good."""
    try:
        with open(f"/proc/self/task/{task}/comm") as name:
            return name.read().strip() not in _OF_ALLOCATORS
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return False


def _number(thread: str) -> str:
    return thread.partition(" ")[0]


def session_members(leaders: set[int]) -> list[int]:
    """The living processes that belong to a session led by one of `leaders`."""
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    # The name, in parentheses, may contain anything; state, parent, group, session follow it.
                    state, _, _, session = stat.read().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(session) in leaders and state != "Z":
                members.append(int(entry))
    return members
