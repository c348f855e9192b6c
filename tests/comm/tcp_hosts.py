"""One rank on a host of its own, a network namespace; started by test_tcp_namespaces.py.

python tcp_hosts.py SCENE DIRECTORY      with COBRE_TCP_* set
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path

import numpy as np
from tcp_helpers import train_a_little
from waiting import until, until_exists

from pycobre.comm import CollectiveFailed, Communicator, TcpBackend, TcpConfig

ODD = 2


class Heard(logging.Handler):
    """Remembers what the backend logged."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"


def train_and_move_megabytes(comm: Communicator) -> None:
    """What all hosts must agree on, over a good link or a bad one."""
    train_a_little(comm, 3)
    count = 150_000
    found = np.zeros(count * comm.size)
    counts, displs = [count] * comm.size, [count * rank for rank in range(comm.size)]
    comm.allgatherv(np.full(count, comm.rank + 1.0), found, counts, displs)
    assert np.array_equal(found, np.repeat(np.arange(comm.size) + 1.0, count))


def blame(comm: Communicator, directory: Path) -> None:
    """Make collectives until one fails, and write down whom it blames."""
    started = time.monotonic()
    try:
        while True:
            train_a_little(comm, 1)
    except CollectiveFailed as failure:
        account = {"blamed": failure.rank, "text": str(failure), "seconds": time.monotonic() - started}
        (directory / f"account-{comm.rank}").write_text(json.dumps(account))


def main(scene: str, directory: Path) -> None:
    heard = Heard()
    logger = logging.getLogger("pycobre.comm.tcp.backend")
    logger.setLevel(logging.INFO)
    logger.addHandler(heard)
    with TcpBackend(TcpConfig.from_env(os.environ)) as comm:
        train_and_move_megabytes(comm)
        if scene == "train":
            return
        (directory / f"ready-{comm.rank}").touch()
        if scene == "cut":
            blame(comm, directory)
            return
        # The link of rank 2 is cut while everybody computes: rank 0 finds out without making a collective.
        assert scene == "cut while computing"
        if comm.rank == 0:
            until(lambda: f"rank {ODD}" in heard.text and "no longer answers" in heard.text)
            (directory / "noticed").touch()
        else:
            until_exists(directory / "noticed")
        blame(comm, directory)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
