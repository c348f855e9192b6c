"""What protecting the messages of the tcp backend costs: none, authenticated frames, TLS.

    python -m benchmarks.comm_tcp_auth [--ranks 2 4] [--rounds 3] [--quick] [--clock cpu] [--json FILE] [--output DIR]

All of them over loopback, where frames are authenticated on request (COBRE_TCP_AUTH=always). TLS runs in the Python
engine, so the Python engine is also measured by itself, without and with authenticated frames. The certificate is
made by the `openssl` command; without it TLS is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import comm_common
from benchmarks.comm_common import (
    LARGE,
    SMALL,
    Candidate,
    Case,
    Durations,
    arguments,
    run_interleaved,
    write_json,
)
from benchmarks.comm_tcp import tcp_candidate

ALLREDUCE_32_B = SMALL[1]
CASES = [ALLREDUCE_32_B, *LARGE[:2]]
PLAIN, AUTHENTICATED = "not protected", "authenticated"
PYTHON_PLAIN, PYTHON_AUTHENTICATED, TLS = "Python, not protected", "Python, authenticated", "Python, TLS"


def python_calls(cases: Sequence[Case]) -> tuple[int, Iterator[Callable[[], object]]]:
    """The tcp backend without its native module."""
    from pycobre.comm.tcp import engine

    engine.native = None  # type: ignore[assignment]
    return comm_common.pycobre_calls(cases)


comm_common.TRANSPORTS["python"] = python_calls


def certificate(directory: Path) -> dict[str, str]:
    """The settings of TLS with a certificate for this machine that is its own authority."""
    key, cert = str(directory / "key.pem"), str(directory / "cert.pem")
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    make += ["-keyout", key, "-out", cert, "-subj", "/CN=rank", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(make, check=True, capture_output=True)
    return {"COBRE_TCP_TLS_CERT": cert, "COBRE_TCP_TLS_KEY": key, "COBRE_TCP_TLS_CA": cert}


def in_python(candidate: Candidate) -> Candidate:
    def commands(size: int) -> list[tuple[list[str], dict[str, str]]]:
        line = [sys.executable, "-m", "benchmarks.comm_tcp_auth", "--transport", "python"]
        return [(line, variables) for _, variables in candidate.commands(size)]

    return Candidate(candidate.name, commands)


def candidates(directory: Path) -> list[Candidate]:
    always = {"COBRE_TCP_AUTH": "always"}
    found = [
        tcp_candidate(PLAIN),
        tcp_candidate(AUTHENTICATED, always),
        in_python(tcp_candidate(PYTHON_PLAIN)),
        in_python(tcp_candidate(PYTHON_AUTHENTICATED, always)),
    ]
    try:
        found.append(tcp_candidate(TLS, certificate(directory)))
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"TLS is left out: {error}", file=sys.stderr)
    return found


def table(found: Durations, names: Sequence[str], options: Namespace) -> str:
    """Markdown: medians in µs, and each as a multiple of the unprotected native engine."""
    lines = ["| ranks | operation | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for size in options.ranks:
        for case in CASES:
            medians = [float(np.median(found[name, size, case])) * 1e6 for name in names]
            cells = [f"{median:,.4g} ({median / medians[0]:.2f})" for median in medians]
            lines.append(f"| {size} | {case.label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--clock", choices=sorted(comm_common.CLOCKS), default="wall", help="what is measured"
    )
    options = parser.parse_args()
    os.environ["BENCH_CLOCK"] = options.clock
    with tempfile.TemporaryDirectory() as directory:
        chosen = candidates(Path(directory))
        found = run_interleaved(chosen, options.ranks, CASES, options)
    text = table(found, [candidate.name for candidate in chosen], options)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "comm_tcp_auth.md").write_text(text + "\n")
    if options.json is not None:
        write_json(options.json, "comm_tcp_auth", found, {})


if __name__ == "__main__":
    if "--transport" in sys.argv:
        comm_common.main()
    else:
        main()
