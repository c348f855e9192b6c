"""What programs build of the four collectives: bytes of one rank on every rank."""

from __future__ import annotations

import numpy as np

from pycobre.comm.api import Communicator
from pycobre.errors import CollectiveFailed

__all__ = ["broadcast_bytes"]

PIECE_BYTES = 64 << 20
"""Bytes are sent in pieces: what a rank allocates grows with what has arrived, not with what was announced."""


def broadcast_bytes(comm: Communicator, data: bytes, root: int = 0) -> bytes:
    """The `data` of rank `root`, on every rank (collective); what the others pass is ignored."""
    if comm.size == 1:
        return data
    length = np.array([len(data)], np.int64)
    comm.broadcast(length, root=root)
    remaining = int(length[0])
    if remaining < 0:
        raise CollectiveFailed(
            "broadcast",
            0,
            f"the length that rank {root} announced: expected 0 bytes or more, got {remaining}",
            rank=root,
        )
    if comm.rank == root:
        for at in range(0, len(data), PIECE_BYTES):
            comm.broadcast(np.frombuffer(data, np.uint8)[at : at + PIECE_BYTES].copy(), root=root)
        return data
    pieces = []
    while remaining:
        piece = np.empty(min(remaining, PIECE_BYTES), np.uint8)
        comm.broadcast(piece, root=root)
        pieces.append(piece.tobytes())
        remaining -= piece.size
    return b"".join(pieces)
