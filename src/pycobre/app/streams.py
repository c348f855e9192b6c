"""Standard streams that are closed, or that nobody reads any more: a run goes on without them.

A process may be started with descriptor 0, 1 or 2 closed. The next file or socket that is opened takes the free
number, and what is printed then goes there. `open_standard_streams` puts the null device in such places first.
"""

from __future__ import annotations

import os
import sys
from typing import IO

__all__ = ["discard", "open_standard_streams", "print_error"]


def open_standard_streams() -> None:
    """Open what is closed of the three standard descriptors on the null device."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
            if opened != descriptor:  # a lower one was closed in the meantime
                os.dup2(opened, descriptor, inheritable=True)
                os.close(opened)
            else:
                os.set_inheritable(descriptor, True)
        if getattr(sys, name) is None:
            mode = "r" if descriptor == 0 else "w"
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def discard(stream: IO[str]) -> None:
    """Send what is still written to `stream` to the null device, at the interpreter's end too."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def print_error(text: str) -> None:
    """Print on standard error; nobody has to read it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        discard(sys.stderr)
