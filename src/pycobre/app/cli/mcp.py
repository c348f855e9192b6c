"""`pycobre mcp --root DIR`: serve questions about the cases and runs below a directory to MCP clients."""

from __future__ import annotations

import argparse
import gc
import os

from pycobre.app.mcp.limits import Limits
from pycobre.errors import OptionError

TOKEN = "PYCOBRE_MCP_TOKEN"
_DEFAULTS = Limits()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", metavar="DIR", required=True, help="directory with cases and results")
    parser.add_argument("--allow-run", action="store_true", help="let clients start, stop and write")
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="serve over HTTP instead of standard input and output"
    )
    parser.add_argument("--token-file", metavar="FILE", help=f"bearer token for --http (else ${TOKEN})")
    parser.add_argument(
        "--allow-host", metavar="NAME:PORT", action="append", default=[], help="a Host header to accept"
    )
    parser.add_argument(
        "--allow-origin", metavar="URL", action="append", default=[], help="an Origin to accept"
    )
    parser.add_argument(
        "--runs", type=int, metavar="N", default=_DEFAULTS.runs, help=f"runs at once ({_DEFAULTS.runs})"
    )
    parser.add_argument(
        "--calls", type=int, metavar="N", default=_DEFAULTS.calls, help=f"answers at once ({_DEFAULTS.calls})"
    )
    parser.add_argument(
        "--call-seconds",
        type=float,
        metavar="S",
        default=_DEFAULTS.call_s,
        help=f"longest time for one answer ({_DEFAULTS.call_s:g})",
    )
    parser.add_argument(
        "--lease-seconds",
        type=float,
        metavar="S",
        default=_DEFAULTS.lease_s,
        help=f"over HTTP: stop runs that nobody asks after for so long ({_DEFAULTS.lease_s:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client is gone, or until a signal."""
    for name in ("runs", "calls", "call_seconds", "lease_seconds"):
        if getattr(arguments, name) <= 0:
            option = name.replace("_", "-")
            raise OptionError(f"--{option}: expected more than 0, got {getattr(arguments, name)}.")
    root = os.path.realpath(arguments.root)
    if not os.path.isdir(root):
        raise OptionError(
            f"--root {arguments.root}: expected a directory, got none. Name the one with the cases."
        )
    limits = Limits(
        runs=arguments.runs,
        calls=arguments.calls,
        call_s=arguments.call_seconds,
        lease_s=arguments.lease_seconds,
    )
    gc.disable()  # loading the SDK makes very many objects and no garbage: a seventh of its time
    try:
        from pycobre.app.mcp.serve import serve_http, serve_stdio, token_from
    except ImportError as cause:
        raise OptionError(
            'pycobre mcp needs the package mcp: install it with pip install "pycobre[mcp]".'
        ) from cause
    finally:
        gc.enable()
        gc.freeze()
    if arguments.http is None:
        serve_stdio(root, writing=arguments.allow_run, limits=limits)
    else:
        serve_http(
            root,
            arguments.http,
            writing=arguments.allow_run,
            limits=limits,
            token=token_from(arguments.token_file, os.environ.get(TOKEN)),
            hosts=tuple(arguments.allow_host),
            origins=tuple(arguments.allow_origin),
        )
    return 0
