"""The bodies of `CommunicatorTests` in which a communicator is used by the wrong thread or process."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from pycobre.comm.api import Communicator
from pycobre.errors import InvalidCommunicator
from pycobre.testing.collectives import prove_usable

PATIENCE_S = 120.0


def second_thread(comm: Communicator, directory: str) -> None:
    """Of two threads of the last rank that begin a barrier, one is refused at once; the other completes it."""
    refused = Path(directory, "refused")
    if comm.rank != comm.size - 1:
        deadline = time.monotonic() + PATIENCE_S
        while not refused.exists():  # until then nobody else comes, so that one of the two has to wait
            assert time.monotonic() < deadline, "a second thread was not refused"
            time.sleep(0.001)
        comm.barrier()
    else:
        errors: list[Exception] = []
        together = threading.Barrier(2)

        def enter() -> None:
            together.wait()
            try:
                comm.barrier()
            except Exception as error:  # noqa: BLE001 - looked at below
                errors.append(error)
                refused.touch()

        threads = [threading.Thread(target=enter) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [type(error) for error in errors] == [InvalidCommunicator], errors
        assert "one thread at a time" in str(errors[0]), errors
    prove_usable(comm)


def forked_child(comm: Communicator) -> None:
    """A forked child is refused everything and does no harm: not by calling, aborting, closing, nor by ending."""
    comm.barrier()
    if comm.rank == comm.size - 1:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                comm.barrier()
            except InvalidCommunicator as error:
                status = 0 if "belongs to the process that forked this one" in str(error) else 2
            finally:
                comm.abort("not mine to abort")
                comm.close()
                os._exit(status)
        _, code = os.waitpid(child, 0)
        assert code == 0, f"the child ended with {code}"
    prove_usable(comm)
