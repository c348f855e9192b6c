"""What the ranks do in test_mpi: each function runs on every rank, with that rank's communicator."""

from __future__ import annotations

import gc
import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.comm import MpiBackend, ReduceOp
from pycobre.comm.api import Communicator
from pycobre.comm.mpi import backend as backend_module
from pycobre.comm.mpi.errors import translate
from pycobre.errors import AllocationFailed, InitializationFailed, InvalidCommunicator
from pycobre.testing.leaks import Holdings

FLOATS = np.dtype(np.float64)


def library() -> Any:
    """`mpi4py.MPI`, which is there once the communicator is."""
    from mpi4py import MPI

    return MPI


def values(rank: int, count: int, letter: str, seed: int) -> np.ndarray[Any, Any]:
    """Values of any bits but NaN: the payload of a NaN is nobody's promise."""
    rng = np.random.default_rng((seed, rank))
    dtype = np.dtype(letter)
    if dtype.kind == "f":
        spread = rng.standard_normal(count) * 10.0 ** rng.integers(-4, 5, count)
        spread[rng.random(count) < 0.05] = -0.0
        spread[rng.random(count) < 0.05] = np.inf
        return spread.astype(dtype)
    return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)


def program(comm: Communicator, seed: int, steps: int) -> str:
    """A random program of collectives, the same on every backend; the digest of all it received."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    for step in range(steps):
        kind = rng.integers(4)
        letter = str(rng.choice(list("bBhHiIqQefd")))
        # Most small, some beyond what is gathered whole and what one round carries.
        count = int(rng.choice([1, 2, 3, 17, 1000, 40_000, 400_001]))
        salt = 1000 * seed + step
        if kind == 0:
            recv = np.zeros(count, letter)
            op = list(ReduceOp)[rng.integers(3)]
            comm.allreduce(values(comm.rank, count, letter, salt), recv, op)
        elif kind == 1:
            counts = [count * int(rng.integers(3)) // 2 for _ in range(comm.size)]
            displs = [sum(counts[:rank]) + 2 * rank for rank in range(comm.size)]
            recv = np.zeros(sum(counts) + 2 * comm.size, letter)
            comm.allgatherv(values(comm.rank, counts[comm.rank], letter, salt), recv, counts, displs)
        elif kind == 2:
            recv = values(comm.rank, count, letter, salt)
            comm.broadcast(recv, int(rng.integers(comm.size)))
        else:
            recv = np.zeros(0)
            comm.barrier()
        digest.update(recv.tobytes())
    return digest.hexdigest()


def slices_and_bounds(comm: MpiBackend) -> None:
    """Large sums equal the fold of the whole, at sizes around every bound, in memory that does not grow."""
    bound = backend_module._GATHER_BYTES // 8 // comm.size
    per_round = backend_module._ROUND_BYTES // 8
    for count in (bound, bound + 1, per_round - 1, per_round, per_round + 1, 3 * per_round + comm.size + 1):
        parts = [values(rank, count, "d", count) for rank in range(comm.size)]
        expected = parts[0].copy()
        with np.errstate(invalid="ignore"):
            for part in parts[1:]:
                expected += part
        recv = np.empty(count)
        comm.allreduce(parts[comm.rank], recv, ReduceOp.SUM)
        assert recv.tobytes() == expected.tobytes(), f"allreduce of {count} values"
    assert comm._scratch.nbytes <= max(backend_module._GATHER_BYTES, backend_module._ROUND_BYTES)


def pieces(comm: MpiBackend, dtype: np.dtype[Any]) -> None:
    """What is too long for one call of MPI goes in pieces; the limits are lowered to make it happen."""
    limits = backend_module._MOST_ELEMENTS, backend_module._PIECE_BYTES
    backend_module._MOST_ELEMENTS, backend_module._PIECE_BYTES = 10, 7 * dtype.itemsize
    try:
        counts = [5 * rank + 9 for rank in range(comm.size)]
        displs = [sum(counts[rank + 1 :]) + comm.size - rank for rank in range(comm.size)]
        sends = [
            np.arange(rank, rank + counts[rank]).astype(np.int8).astype(dtype) for rank in range(comm.size)
        ]
        recv = np.zeros(sum(counts) + comm.size, dtype)
        expected = recv.copy()
        for rank, send in enumerate(sends):
            expected[displs[rank] : displs[rank] + counts[rank]] = send
        comm.allgatherv(sends[comm.rank], recv, counts, displs)
        assert recv.tobytes() == expected.tobytes(), "allgatherv in pieces"
        for root in range(comm.size):
            buf = np.full(50, comm.rank).astype(dtype)
            comm.broadcast(buf, root)
            assert buf.tobytes() == np.full(50, root).astype(dtype).tobytes(), "broadcast in pieces"
    finally:
        backend_module._MOST_ELEMENTS, backend_module._PIECE_BYTES = limits


def beyond_two_gigabytes(comm: MpiBackend) -> None:
    """More bytes, and more elements, than a C int counts."""
    count = 2**31 // comm.size + 1000
    recv = np.zeros(count * comm.size, np.uint8)
    displs = [count * rank for rank in range(comm.size)]
    comm.allgatherv(np.full(count, comm.rank + 1, np.uint8), recv, [count] * comm.size, displs)
    for rank in range(comm.size):
        part = recv[rank * count : (rank + 1) * count]
        assert part.min() == part.max() == rank + 1, f"allgatherv: part of rank {rank}"
    recv[...] = comm.rank
    comm.broadcast(recv, comm.size - 1)
    assert recv.min() == recv.max() == comm.size - 1, "broadcast"
    doubles = recv[: 2**31 + 8].view(np.float64)
    doubles[...] = comm.rank
    comm.broadcast(doubles, 0)
    assert doubles.min() == doubles.max() == 0, "broadcast of doubles"


def whoever_waits(comm: Communicator) -> None:
    """An allgatherv in which only the last rank gives something still waits for every rank."""
    directory = Path(os.environ["MPI_BODIES_DIRECTORY"])
    counts = [0] * (comm.size - 1) + [1]
    for step in range(20):
        if comm.rank == step % comm.size:
            (directory / f"{step}").touch()
        comm.allgatherv(np.zeros(counts[comm.rank]), np.zeros(1), counts, [0] * comm.size)
        assert (directory / f"{step}").exists(), f"step {step}: a rank that had not come was not waited for"


def nodes_of_two(mpi: Any, comm: Any) -> Any:
    """As if every two neighbours were a node of their own."""
    return comm.Split(mpi.COMM_WORLD.rank // 2, comm.rank)


def several_nodes(comm: MpiBackend) -> tuple[int, int, bool, float]:
    """Regions, fences and leaders per node, collectives across nodes."""
    original = backend_module.node_communicator
    backend_module.node_communicator = nodes_of_two
    try:
        with MpiBackend(library().COMM_WORLD) as world:
            node = world.rank // 2
            with world.create_shared_region(100, FLOATS) as region:
                if world.is_leader:
                    region.as_mut_array()[...] = node
                region.fence()
                assert (region.as_array() == node).all(), "the node's copy is another node's"
                if node == 0:  # a fence of one node does not wait for the others
                    region.fence()
            with world.split_local() as local:
                place = local.rank, local.size
                gathered = np.zeros(local.size, np.int64)
                ranks = np.array([world.rank])
                local.allgatherv(ranks, gathered, [1] * local.size, list(range(local.size)))
                assert (gathered // 2 == node).all()
            total = np.zeros(1)
            world.allreduce(np.array([float(node)]), total, ReduceOp.SUM)
            return *place, world.is_leader, float(total[0])
    finally:
        backend_module.node_communicator = original


def reclaimed_windows(comm: MpiBackend) -> None:
    """Closed and dropped regions are freed, in whatever order each rank lets them go; kept views stay."""

    count = 1_000_000

    def mapped() -> int:
        """Mapped files of a region's size: MPI's own are many, and change, but are of other sizes."""
        bounds = [mapping.rpartition(" ")[2].split("-") for mapping in Holdings.now().mappings]
        sizes = [int(last, 16) - int(first, 16) for first, last in bounds]
        return sum(8 * count <= size < 9 * count for size in sizes)

    assert mapped() == 0
    kept_region = comm.create_shared_region(count, FLOATS)
    if comm.is_leader:
        kept_region.as_mut_array()[...] = 3.5
    kept_region.fence()
    kept = kept_region.as_array()[10:20]
    kept_region.close()
    for step in range(6):
        pair = [comm.create_shared_region(count, FLOATS) for _ in range(2)]
        if (comm.rank + step) % 2:
            pair.reverse()
        pair.pop().close()
        del pair
    gc.collect()
    comm.barrier()
    comm.create_shared_region(1, FLOATS).close()
    assert mapped() == 1, f"{mapped()} windows are mapped, and one is used"
    assert (kept == 3.5).all(), "a kept view changed"


def small_mount(comm: MpiBackend) -> list[str]:
    """On a mount of 64 MiB: what fits is made; what does not is refused, also when the first look says yes."""
    from pycobre.comm.mpi import region as mpi_region

    texts = []
    check = mpi_region._check_space
    with comm.create_shared_region(1 << 20, np.uint8) as region:
        region.fence()
    # Open MPI looks too, and leaves the other ranks waiting.
    for blind in (False, True) if "MPICH" in library().Get_library_version() else (False,):
        if blind:
            mpi_region._check_space = lambda mount, size: 0
        try:
            comm.create_shared_region(200 << 20, np.uint8)
        except AllocationFailed as error:
            texts.append(str(error))
        finally:
            mpi_region._check_space = check
    comm.barrier()
    return texts


def full_mount(comm: MpiBackend, left_bytes: int) -> str:
    """On a mount that others have filled but for a few bytes: refused, by the very first region too."""
    ballast = Path("/dev/shm/ballast")
    if comm.rank == 0:
        with ballast.open("wb", buffering=0) as file:
            room = os.statvfs(ballast.parent)
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - left_bytes)
    comm.barrier()
    try:
        comm.create_shared_region(64, np.float64)
    except AllocationFailed as error:
        refusal = str(error)
    else:
        refusal = "not refused"
    comm.barrier()
    ballast.unlink(missing_ok=True)
    comm.barrier()
    with comm.create_shared_region(64, np.float64) as region:
        region.fence()
    return refusal


def users_communicator(comm: MpiBackend) -> tuple[int, int]:
    """A backend on a part of the world, in another order; the user's communicator stays the user's."""
    mpi = library()
    reverse = mpi.COMM_WORLD.Split(0, -mpi.COMM_WORLD.rank)
    reverse.Set_errhandler(mpi.ERRORS_ARE_FATAL)
    with MpiBackend(reverse) as backend:
        place = backend.rank, backend.size
        total = np.zeros(1)
        backend.allreduce(np.ones(1), total, ReduceOp.SUM)
        assert total[0] == comm.size
    assert reverse.Get_errhandler() == mpi.ERRORS_ARE_FATAL, "the error handler was changed"
    reverse.Barrier()
    reverse.Free()
    return place


def wrong_communicators(comm: MpiBackend) -> list[str]:
    mpi = library()
    texts = []
    for wrong in (mpi.COMM_NULL, "world", mpi.INFO_NULL):
        try:
            MpiBackend(wrong)
        except InvalidCommunicator as error:
            texts.append(str(error))
    return texts


def from_another_thread(comm: MpiBackend) -> float:
    """Any thread may call, one at a time."""
    recv = np.zeros(1)
    thread = threading.Thread(target=comm.allreduce, args=(np.ones(1), recv, ReduceOp.SUM))
    thread.start()
    thread.join()
    return float(recv[0])


def holdings(comm: MpiBackend) -> list[str]:
    """What further communicators, their splits and regions leave behind in the process."""

    def use() -> None:
        with MpiBackend(library().COMM_WORLD) as backend, backend.split_local() as local:
            with backend.create_shared_region(10, FLOATS) as region:
                region.fence()
            local.barrier()

    use()
    before = Holdings.now()
    for _ in range(3):
        use()
    gained = before.gained()
    # A window waits for the ranks to meet again on its communicator, which was closed.
    return [item for item in gained if not item.startswith("mapping")]


def mapped_errors(comm: MpiBackend) -> dict[str, tuple[str, str, str, int | None]]:
    """What becomes of each error class that the library knows: outside and inside of an allocation."""
    mpi = library()
    found = {}
    for name in dir(mpi):
        error_class = getattr(mpi, name)
        if not name.startswith("ERR_") or mpi.Exception(error_class).Get_error_class() != error_class:
            continue
        if error_class == mpi.ERR_UNKNOWN:  # stands for classes that this library does not have
            name = "ERR_UNKNOWN"
        error = translate(mpi, mpi.Exception(error_class), "broadcast", rank=1, size=4, root=7)
        code = getattr(error, "mpi_error_code", error_class)
        assert code == error_class, f"{name}: expected code {error_class}, got {code}"
        allocating = translate(mpi, mpi.Exception(error_class), "x", rank=1, size=4, requested_bytes=12)
        found[name] = type(error).__name__, str(error), type(allocating).__name__, error_class
    return found


def after_finalize(comm: MpiBackend) -> list[str]:
    """Every call after MPI_Finalize, by whomever, is refused before it reaches MPI."""
    library().Finalize()
    raised = []
    for call in (comm.barrier, lambda: comm.broadcast(np.zeros(1)), comm.split_local, MpiBackend):
        try:
            call()
        except InvalidCommunicator as error:
            raised.append(str(error))
    comm.abort("nobody is left to hear it")
    comm.close()
    return raised


def low_thread_level(environ: dict[str, str]) -> str:
    """A program that initialised MPI with too low a thread level."""
    import mpi4py

    mpi4py.rc.thread_level = "single"
    from mpi4py import MPI

    assert MPI.Query_thread() == MPI.THREAD_SINGLE
    try:
        MpiBackend()
    except InitializationFailed as error:
        return str(error)
    return "nothing"


def own_thread_level(comm: MpiBackend) -> int:
    return int(library().Query_thread() - library().THREAD_SERIALIZED)
