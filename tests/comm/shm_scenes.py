"""One rank of a scene in which something happens to rank 1; started by test_shm_failures.py as a script.

python shm_scenes.py MANNER MOMENT DIRECTORY      with COBRE_SHM_* set
python shm_scenes.py BYTES moving DIRECTORY
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from scenes import play, write_account
from waiting import until_exists

from pycobre.comm import CollectiveFailed, Communicator, ShmBackend, ShmConfig

ODD = 1


def move_for_ever(comm: Communicator, nbytes: int, directory: Path) -> None:
    """Gather large payloads until a peer is gone; the test kills rank 1 on the way."""
    send, recv = np.ones(nbytes, np.uint8), np.zeros(nbytes * comm.size, np.uint8)
    displs = tuple(nbytes * rank for rank in range(comm.size))
    for number in range(1_000_000):
        if number == 3:
            (directory / f"moving-{comm.rank}").touch()
        comm.allgatherv(send, recv, (nbytes,) * comm.size, displs)


def main(manner: str, moment: str, directory: Path) -> None:
    config = ShmConfig.from_env(os.environ)
    # An interpreter may take longer to start than the ranks are to wait for each other.
    (directory / f"up-{config.rank}").touch()
    for rank in range(config.size):
        until_exists(directory / f"up-{rank}")
    comm = ShmBackend(config)
    if moment == "moving":
        try:
            move_for_ever(comm, int(manner), directory)
        except CollectiveFailed as failure:
            write_account(comm, failure, directory)
        return
    play(comm, ODD, manner, moment, directory)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
