"""Ranks that send forged messages, and what the others make of them."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from pycobre._util.error_record import encode_error
from pycobre.comm import Communicator
from pycobre.comm.collectives import broadcast_result, gather_arrays, gather_rows
from pycobre.errors import CobreError, OutputError
from pycobre.sddp.error_agreement import AgreedError, CheckedCollectives
from pycobre.sddp.timing import Ledger


class Malicious:
    """Unpickled, this makes a directory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def send(comm: Communicator, length: int, data: bytes) -> None:
    comm.broadcast(np.array([length], np.int64), root=0)
    if data:
        comm.broadcast(np.frombuffer(data, np.uint8).copy(), root=0)


def messages(path: str) -> dict[str, tuple[int, bytes]]:
    """Forged messages of rank 0: an announced length, and the bytes that follow."""
    attack = pickle.dumps(Malicious(path))
    forged = {
        "a pickle": attack,
        "a pickle as the error": b"\1" + attack,
        "an error of a foreign class": b"\1"
        + b'{"class":"os.system","args":["x"],"fields":{},"notes":[],"origin":null}',
        "an error that ends the process": b"\1"
        + b'{"class":"SystemExit","args":[0],"fields":{},"notes":[],"origin":null}',
        "half a record": b"\1" + encode_error(OutputError("disk full"))[:-9],
        "an unknown status": b"\7data",
        "nothing": b"",
    }
    return {name: (len(data), data) for name, data in forged.items()} | {"a negative length": (-5, b"")}


def receive_forged(comm: Communicator, name: str, path: str) -> tuple[str, str]:
    """Rank 0 sends a forged message instead of its bytes; the others say what they raised."""
    if comm.rank == 0:
        send(comm, *messages(path)[name])
        return "", ""
    try:
        broadcast_result(comm, bytes)
    except Exception as error:  # noqa: BLE001 - to be looked at by the test
        return type(error).__name__, str(error)
    return "nothing", ""


def receive_forged_agreement(comm: Communicator, path: str) -> tuple[str, str]:
    """Rank 0 says that it failed, and sends a pickle as its error."""
    if comm.rank == 0:
        received = np.empty(2 * comm.size)
        comm.allgatherv(np.ones(2), received, (2,) * comm.size, tuple(range(0, 2 * comm.size, 2)))
        attack = pickle.dumps(Malicious(path))
        send(comm, len(attack), attack)
        return "", ""
    collectives = CheckedCollectives(comm, Ledger())
    try:
        collectives.gather(np.zeros((1, 1)), (1,) * comm.size)
    except AgreedError as agreed:
        return type(agreed.error).__name__, str(agreed.error)
    return "nothing", ""


def receive_error(comm: Communicator) -> tuple[str, str, list[str]]:
    """An error of rank 0 on every rank, with its notes."""

    def produce() -> bytes:
        error = OutputError("checkpoint: no space left")
        error.add_note("while the third was written")
        raise error

    try:
        broadcast_result(comm, produce)
    except CobreError as error:
        return type(error).__name__, str(error), list(error.__notes__)
    return "nothing", "", []


def receive_bytes(comm: Communicator, length: int, piece: int) -> list[bool]:
    """Whether rank 0's bytes arrive, also in several pieces."""
    from pycobre.comm import collectives

    collectives.PIECE_BYTES = piece
    wanted = np.arange(length, dtype=np.uint64).tobytes()
    return [broadcast_result(comm, lambda: wanted) == wanted, broadcast_result(comm, bytes) == b""]


def receive_forged_size(comm: Communicator) -> tuple[str, str]:
    """Rank 0 announces fewer than no elements."""
    if comm.rank == 0:
        comm.allgatherv(
            np.array([-3]), np.empty(comm.size, np.int64), (1,) * comm.size, tuple(range(comm.size))
        )
        return "", ""
    try:
        gather_arrays(comm, np.zeros(2))
    except CobreError as error:
        return type(error).__name__, str(error)
    return "nothing", ""


def gather(comm: Communicator, lengths: tuple[int, ...], dtype: str) -> list[bool]:
    """Whether arrays of different lengths arrive one after the other."""
    parts = [np.arange(100 * rank, 100 * rank + n).astype(dtype) for rank, n in enumerate(lengths)]
    rows = [np.stack([part, part + part], axis=1) for part in parts]
    return [
        np.array_equal(gather_arrays(comm, parts[comm.rank]), np.concatenate(parts)),
        np.array_equal(gather_rows(comm, rows[comm.rank], lengths), np.concatenate(rows)),
    ]
