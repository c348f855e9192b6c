"""From MPI's error classes to the contract's errors.

    class                                       error
    ERR_COMM, finalised MPI                     InvalidCommunicator
    ERR_ROOT                                    InvalidRoot
    ERR_BUFFER, ERR_COUNT, ERR_TYPE             InvalidBufferSize
    any class, while a region is made           AllocationFailed
    every other class                           CollectiveFailed

Each text holds the operation, the class's name, the code and the library's own words, and each error is
chained from mpi4py's. `ERR_TRUNCATE` and its like mean that the ranks disagree, which no rank can see alone:
they are failures of the collective, not of the caller's buffer.
"""

from __future__ import annotations

from typing import Any

from pycobre.errors import (
    AllocationFailed,
    CollectiveFailed,
    CommError,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
)

_BUFFER_CLASSES = ("ERR_BUFFER", "ERR_COUNT", "ERR_TYPE")
_DISAGREEMENT = ("ERR_TRUNCATE", "ERR_OP", "ERR_ARG")
_DEATH = ("ERR_PROC_ABORTED", "ERR_PROC_FAILED", "ERR_PROC_FAILED_PENDING", "ERR_REVOKED")


def class_name(mpi: Any, error_class: int) -> str:
    """The standard's name of an error class, such as `ERR_TRUNCATE`; the number where it has none here."""
    if error_class == mpi.ERR_UNKNOWN:  # mpi4py gives this value to every class that the library lacks
        return "ERR_UNKNOWN"
    names = [name for name in dir(mpi) if name.startswith("ERR_") and getattr(mpi, name) == error_class]
    return names[0] if names else f"error class {error_class}"


def _words(error: Any) -> str:
    """The library's description of an error, on one line."""
    try:
        return " ".join(str(error.Get_error_string()).split())
    except UnicodeDecodeError:  # MPICH has garbage in place of some
        return "no description"


def translate(
    mpi: Any,
    error: Any,
    operation: str,
    *,
    rank: int,
    size: int,
    root: int = 0,
    requested_bytes: int | None = None,
) -> CommError:
    """The contract's error for an `MPI.Exception` raised in `operation` on `rank`; not yet chained.

    `requested_bytes` is given while memory is being allocated.
    """
    code: int = error.Get_error_code()
    name = class_name(mpi, error.Get_error_class())
    told = f"MPI said {name} (code {code}): {_words(error)}"
    if name == "ERR_COMM":
        return InvalidCommunicator(f"{operation}: the communicator is not valid; {told}. Create a new one.")
    if requested_bytes is not None:
        return AllocationFailed(requested_bytes, told)
    if name == "ERR_ROOT":
        return InvalidRoot(root, size)
    if name in _BUFFER_CLASSES:
        return InvalidBufferSize(operation, "buffers that MPI accepts", told)
    advice = ""
    if name in _DISAGREEMENT:
        advice = ". Check that every rank made this call with the same counts, dtype and root"
    elif name in _DEATH:
        advice = ". A process of the job is gone: its own output and the launcher's say why"
    return CollectiveFailed(operation, code, f"on rank {rank} of {size} {told}{advice}")
