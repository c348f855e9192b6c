"""The tcp backend against gloo and mpi4py over TCP, and against what the loopback interface allows.

    python -m benchmarks.comm_tcp [--ranks 2 4] [--rounds 3] [--quick] [--json FILE] [--cache DIR] [--output DIR]
                                  [--cases small large] [--torch REQUIREMENT]

Prints a table (median, 99th percentile), where the bars are missed, how many bytes the coordinator moves against the
least a star can, and the limits; writes a plot where matplotlib is installed. Candidates live in virtual environments
under --cache (default: in the system's temporary directory), made on first use: Open MPI and MPICH from the wheels of
these names, kept off shared memory by their own switches; gloo from torch, whose edition for processors is enough:
set PIP_INDEX_URL or name a file or version with --torch. A candidate that cannot be had is left out, with the reason.
"""

from __future__ import annotations

import importlib.util
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import comm_common
from benchmarks.comm_common import (
    LARGE,
    SMALL,
    Candidate,
    Case,
    Durations,
    arguments,
    available,
    buffers,
    chosen_cases,
    mpi_candidate,
    plot,
    run_interleaved,
    table,
    write_json,
)

HERE = Path(__file__).parent
FASTER_THAN_GLOO = 5.0
CONGESTION = "the default congestion control here is {}; on loopback the backend asks for reno where it may"


# --- the candidates ---


def tcp_candidate(name: str = "tcp", variables: dict[str, str] | None = None) -> Candidate:
    """The backend over loopback, with more COBRE_TCP_* settings if wanted."""

    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        common = {
            "COBRE_COMM_BACKEND": "tcp",
            "COBRE_TCP_COORDINATOR": "127.0.0.1",
            "COBRE_TCP_BIND_ADDR": "127.0.0.1",
            "COBRE_TCP_PORT": str(port),
            "COBRE_TCP_SIZE": str(size),
            "COBRE_TCP_TOKEN": secrets.token_hex(16),
            **(variables or {}),
        }
        line = [sys.executable, *comm_common.this_module("pycobre")]
        return [(line, {**common, "COBRE_TCP_RANK": str(rank)}) for rank in range(size)]

    return Candidate(name, commands)


def openmpi_candidate(cache: Path) -> Candidate:
    options = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
    return Candidate("openmpi tcp", mpi_candidate("openmpi", cache, options).commands)


def mpich_candidate(cache: Path) -> Candidate:
    environ = {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "UCX_TLS": "tcp,self"}
    return Candidate("mpich tcp", mpi_candidate("mpich", cache, environ=environ).commands)


def gloo_candidate(cache: Path, torch: str) -> Candidate:
    python = torch_environment(cache, torch)

    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        common = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(size),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
        }
        line = [str(python), "-m", "benchmarks.comm_tcp", "--transport", "gloo"]
        return [(line, {**common, "RANK": str(rank)}) for rank in range(size)]

    return Candidate("gloo", commands)


def torch_environment(cache: Path, torch: str) -> Path:
    """The interpreter of a virtual environment with torch, made if it is not there."""
    home = cache / "bench-torch"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, "numpy", torch], check=True)
        (home / "complete").touch()
    return python


def gloo_calls(cases: Sequence[Case]) -> tuple[int, Iterator[Callable[[], object]]]:
    """The same through torch.distributed."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    def calls() -> Iterator[Callable[[], object]]:
        for case in cases:
            send, recv, counts, displs = (buffers(case, rank, size)) if case.nbytes else (None, None, (), ())
            if case.operation == "barrier":
                yield dist.barrier
                continue
            sent, received = torch.from_numpy(send), torch.from_numpy(recv)
            if case.operation == "allreduce":
                yield lambda s=sent, r=received: (r.copy_(s), dist.all_reduce(r))
            elif case.operation == "broadcast":
                yield lambda s=sent: dist.broadcast(s, 0)
            else:
                parts = [received[d : d + c] for c, d in zip(counts, displs, strict=True)]
                yield lambda s=sent, p=parts: dist.all_gather(p, s)
        dist.destroy_process_group()

    return rank, calls()


def synchronised_calls(cases: Sequence[Case]) -> tuple[int, Iterator[Callable[[], object]]]:
    """MPI's broadcast followed by a barrier: nobody leaves before all have entered, as everywhere in pycobre."""
    from mpi4py import MPI

    rank, calls = comm_common.mpi4py_calls(cases)

    def synchronise(call: Callable[[], object]) -> None:
        call()
        MPI.COMM_WORLD.Barrier()

    return rank, (partial(synchronise, call) for call in calls)


def synchronised(candidate: Candidate) -> Candidate:
    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        old, new = (
            comm_common.this_module("mpi4py"),
            ["-m", "benchmarks.comm_tcp", "--transport", "synchronised"],
        )
        return [([*line[: -len(old)], *new], environ) for line, environ in candidate.commands(size)]

    return Candidate(f"{candidate.name}, then a barrier", commands)


comm_common.TRANSPORTS["gloo"] = gloo_calls
comm_common.TRANSPORTS["synchronised"] = synchronised_calls


# --- the coordinator's bytes, and the limits ---


def coordinator_bytes(size: int, cases: Sequence[Case]) -> str:
    """What rank 0 sends and receives for one call, counted by the kernel, against the least a star can."""
    from pycobre.comm import ReduceOp, TcpBackend, TcpConfig

    listening = threading.Event()
    port = [0]

    def note(chosen: int) -> None:
        port[0] = chosen
        listening.set()

    comms: dict[int, TcpBackend] = {}

    def start(rank: int) -> None:
        config = TcpConfig(rank, size, "127.0.0.1", port[0], "127.0.0.1")
        comms[rank] = TcpBackend(config, on_listening=note if rank == 0 else None)

    def on_all(body: Callable[[int], object], ranks: Sequence[int]) -> None:
        threads = [threading.Thread(target=body, args=(rank,)) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    first = threading.Thread(target=start, args=(0,))
    first.start()
    listening.wait()
    on_all(start, range(1, size))
    first.join()
    lines = [
        "| ranks | operation | sent | least | received | least | over the least |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        arrays = [buffers(case, rank, size) for rank in range(size)]

        def call(rank: int, case: Case = case, arrays: list[Any] = arrays) -> None:
            send, recv, counts, displs = arrays[rank]
            comm = comms[rank]
            if case.operation == "barrier":
                comm.barrier()
            elif case.operation == "allreduce":
                comm.allreduce(send, recv, ReduceOp.SUM)
            elif case.operation == "broadcast":
                comm.broadcast(send, 0)
            else:
                comm.allgatherv(send, recv, counts, displs)

        before = kernel_bytes(comms[0])
        on_all(call, range(size))
        sent, received = kernel_bytes(comms[0]) - before
        each = case.doubles(size) * 8
        workers = size - 1
        least = {
            "barrier": (0, 0),
            "allreduce": (workers * each, workers * each),
            "broadcast": (workers * each, 0),
            "allgatherv": (workers * workers * each, workers * each),
        }[case.operation]
        over = f"{(sent + received) / sum(least) - 1:.3%}" if sum(least) else f"{sent + received} bytes"
        lines.append(f"| {size} | {case.label} | {sent} | {least[0]} | {received} | {least[1]} | {over} |")
    for comm in comms.values():
        comm.close()
    return "\n".join(lines)


def kernel_bytes(comm: Any) -> np.ndarray[Any, Any]:
    """Bytes sent and received so far on all of rank 0's connections (tcpi_bytes_sent, _received of TCP_INFO)."""
    total = np.zeros(2, np.int64)
    for sock in comm._sockets.values():
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        total += np.frombuffer(info[200:208] + info[128:136], np.int64)
    return total


def limits_us(sizes: Sequence[int], cases: Sequence[Case]) -> dict[tuple[int, Case], float]:
    """How long as many bare processes take to give each other, over a connection per pair, the bytes of a case.

    R (R - 1) n bytes have to pass the loopback interface whatever the algorithm. Small cases are trips rather than
    bytes, so they have this limit at two ranks only. Nothing without a C compiler.
    """
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory) / "loopback")
        try:
            subprocess.run(["cc", "-O2", "-o", program, str(HERE / "loopback.c")], check=True)
        except (FileNotFoundError, subprocess.CalledProcessError):
            return {}
        for size in sizes:
            for case in cases if size == 2 else [case for case in cases if case in LARGE]:
                words = [str(max(1, case.doubles(size) * 8)), str(case.repetitions), str(size)]
                done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
                found[size, case] = float(done.stdout)
    return found


# --- the report ---


def misses(found: Durations, sizes: Sequence[int], cases: Sequence[Case], names: Sequence[str]) -> str:
    """The cells in which a bar is missed."""
    lines = []
    for size in sizes:
        for case in cases:
            ours = float(np.median(found["tcp", size, case]))
            for name in names:
                ratio = float(np.median(found[name, size, case])) / ours
                bar = FASTER_THAN_GLOO if name == "gloo" else 1.0
                if ratio < bar:
                    lines.append(
                        f"- {size} ranks, {case.label}: {ratio:.2f} times {name}, the bar is {bar:g}"
                    )
    return "Bars missed:\n" + "\n".join(lines) if lines else "No bar is missed."


def synchronised_broadcast(found: Durations, others: Sequence[Candidate], options: Namespace) -> str:
    """The broadcast again, with the candidates made to synchronise as pycobre does."""
    case = SMALL[-1]
    candidates = [synchronised(candidate) for candidate in others if candidate.name != "gloo"]
    same = run_interleaved(candidates, options.ranks, [case], options)
    lines = [
        f"- {size} ranks: tcp {np.median(found['tcp', size, case]) * 1e6:.4g} µs; "
        + "; ".join(
            f"{candidate.name} {np.median(same[candidate.name, size, case]) * 1e6:.4g} µs"
            for candidate in candidates
        )
        for size in options.ranks
    ]
    found.update(same)
    return f"{case.label} where nobody leaves before all have entered:\n" + "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--torch", default="torch", metavar="REQUIREMENT", help="what pip is to install")
    options = parser.parse_args()
    cases = chosen_cases(options)

    others = available(
        [
            partial(openmpi_candidate, options.cache),
            partial(mpich_candidate, options.cache),
            partial(gloo_candidate, options.cache, options.torch),
        ]
    )
    names = [candidate.name for candidate in others]
    found = run_interleaved([tcp_candidate(), *others], options.ranks, cases, options)
    limits = limits_us(options.ranks, cases)
    report = [table(found, "tcp", names, options.ranks, cases, limits)]
    report.append(misses(found, options.ranks, cases, names))
    if SMALL[-1] in cases:
        report.append(synchronised_broadcast(found, others, options))
    report += [coordinator_bytes(size, cases) for size in options.ranks]
    control = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    if control.exists():
        report.append(CONGESTION.format(control.read_text().strip()))
    text = "\n\n".join(report)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "comm_tcp.md").write_text(text + "\n")
    if options.json is not None:
        write_json(options.json, "comm_tcp", found, limits)
    if importlib.util.find_spec("matplotlib") is not None:
        plot(found, ["tcp", *names], options.ranks, cases, options.output / "comm_tcp.png")


if __name__ == "__main__":
    if "--transport" in sys.argv:
        comm_common.main()
    else:
        main()
