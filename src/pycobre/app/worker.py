"""The main program of a started rank: join, run the request, report to the launcher.

Started by `pycobre.app.workers` as `python -m pycobre.app.worker`, never by hand.
"""

from __future__ import annotations

import atexit
import json
import mmap
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from types import FrameType

# All that a run may need, also what only some requests do: it is loaded while the parent reads the case.
import pycobre.hydro.study
import pycobre.solver.engine  # noqa: F401
from pycobre._util.error_record import encode_error
from pycobre.app.pipeline import execute
from pycobre.app.request import Request
from pycobre.app.rescue import Rescue
from pycobre.app.stop_switch import StopSwitch
from pycobre.comm import create_communicator
from pycobre.comm.shm.names import remove_all
from pycobre.launch.channel import PAYLOAD_FD_VARIABLE, Channel, Kind
from pycobre.launch.event_batcher import EventBatcher

__all__ = ["main", "payload"]


def main() -> int:
    """Run one rank; the exit code is 0 when it finished."""
    switch, rescue = StopSwitch(), Rescue()
    evicted = threading.Event()

    def evict(number: int, at: FrameType | None) -> None:
        evicted.set()
        switch.set()

    # The launcher decides what an interrupt means for its ranks. A scheduler that evicts a process tells it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, evict)

    def orphaned() -> None:
        rescue.try_to_save()
        remove_all()  # the segment of ranks that have not met yet
        os._exit(1)

    channel = Channel.inherited(switch.set, orphaned, rescue.try_to_save)
    if channel is None:
        print("pycobre starts this itself: use `pycobre run CASE --workers N`", file=sys.stderr)
        return 2
    batcher: EventBatcher | None = None
    try:
        # Ranks find each other while the parent reads the case.
        with create_communicator() as comm:
            channel.wait_for_payload()
            started = time.perf_counter()
            request = Request.from_bytes(payload())
            if request.emit_events:
                batcher = EventBatcher(channel, ask=request.confirm_each_iteration and comm.rank == 0)
            report = execute(request, comm, batcher, switch, rescue)
            info = {
                "wall_time_ms": 1e3 * (time.perf_counter() - started),
                "pid": os.getpid(),
                "evicted": evicted.is_set(),
            }
            body = report.to_bytes() if comm.rank == 0 else b""
            channel.send(Kind.RESULT, json.dumps(info).encode() + b"\n" + body)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the launcher must hear of it
        error.add_note("".join(traceback.format_exception(error)))
        if batcher is not None:
            batcher.flush()
        channel.send(Kind.ERROR, encode_error(error))
        channel.close()
        return 1
    channel.close()
    return 0


def payload() -> bytes:
    """What the launcher gave to all ranks; asked for once."""
    descriptor = int(os.environ.pop(PAYLOAD_FD_VARIABLE))
    with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as view:
        data = view[:]
    os.close(descriptor)
    return data


def _leave(code: int) -> None:
    """End at once: all is told and closed, and the parent would wait for the interpreter to be taken apart."""
    atexit._run_exitfuncs()  # what others want done at the end is cheap, and may matter to them
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it: that is no failure of the rank
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _leave(main())
