"""One rank of a scene in which something happens to one of three ranks; started by test_tcp_failures.py.

python tcp_scenes.py ODD MANNER MOMENT DIRECTORY      with COBRE_TCP_* set
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scenes import play

from pycobre.comm import TcpBackend, TcpConfig


def main(odd: int, manner: str, moment: str, directory: Path) -> None:
    comm = TcpBackend(TcpConfig.from_env(os.environ))
    play(comm, odd, manner, moment, directory)
    comm.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]))
