"""The main program of a run that a server started: it lasts as long as its server, unless it was detached.

Its order comes as one line of JSON on standard input. When that pipe closes the server is gone: the run stops after
the iteration, with a checkpoint, and at once if that takes too long. How it ended is one line on standard output;
everything else that is printed goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

__all__ = ["main"]

GRACE_S = 20.0
"""How long a run whose server is gone may take for its iteration and checkpoint."""


def main() -> int:
    """Run what the first line orders."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    line = incoming.readline()
    if not line.endswith(b"\n"):
        return 1
    order: dict[str, Any] = json.loads(line)
    if not order["detached"]:
        threading.Thread(target=_follow, args=(incoming,), daemon=True).start()
    from pycobre.app.failures import exit_code
    from pycobre.app.mcp.documents import failure_document
    from pycobre.app.mcp.folder import Folder

    try:
        _run(order)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - told to the server
        document = failure_document(error, Folder(order["root"]).root)
        _tell(outgoing, {"error": document})
        return exit_code(error)
    _tell(outgoing, {"done": True})
    return 0


def _run(order: dict[str, Any]) -> None:
    from pycobre.app.build_request import build_request
    from pycobre.app.run import Execution

    with Execution("auto", order["workers"]) as run:
        request = build_request(
            order["case"],
            order["overrides"],
            output=order["output"],
            scenarios=order["scenarios"],
            threads=order["threads"],
            resume=order["resume"],
            run_id=order["run"],
            emit_events=False,
        )
        run.drive(request)


def _follow(incoming: BinaryIO) -> None:
    """Wait for the end of the server."""
    incoming.read()
    os.kill(os.getpid(), signal.SIGTERM)  # after the iteration, with a checkpoint
    time.sleep(GRACE_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _tell(outgoing: BinaryIO, document: dict[str, Any]) -> None:
    try:
        outgoing.write(json.dumps(document, default=str).encode() + b"\n")
        outgoing.flush()
    except BrokenPipeError:  # nobody is left to be told
        return


if __name__ == "__main__":
    sys.exit(main())
