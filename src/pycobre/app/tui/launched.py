"""A run that is started from here and does not depend on us: a process of its own, in a session of its own.

Closing the terminal, or leaving the app, ends neither it nor its workers; what it prints goes into a file that has no
name and ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pycobre.app.results.control import send_request
from pycobre.app.results.status import read_status
from pycobre.errors import OutputError

__all__ = ["LaunchedRun"]

WORDS_BYTES = 8192


class LaunchedRun:
    """`pycobre run` with the words of this command, and without its display."""

    def __init__(self, words: Sequence[str], directory: Path) -> None:
        self.directory = directory
        self._before = self._session()
        self._said = tempfile.TemporaryFile(prefix="pycobre-run-")  # noqa: SIM115 - as long as this object
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pycobre", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def _session(self) -> tuple[str, str, int] | None:
        try:
            status = read_status(self.directory)
        except OutputError:  # what an earlier version left; the run says what is wrong with it
            return None
        return None if status is None else (status.run, status.started, status.pid)

    def has_status(self) -> bool:
        """Whether the directory has the status of this run, and not that of an earlier one."""
        now = self._session()
        return now is not None and now != self._before

    def exit_code(self) -> int | None:
        """None while it goes on."""
        return self._process.poll()

    def words(self) -> str:
        """The end of what it has printed."""
        size = os.fstat(self._said.fileno()).st_size
        data = os.pread(self._said.fileno(), WORDS_BYTES, max(0, size - WORDS_BYTES))
        return data.decode(errors="replace").strip()

    def ask_to_stop(self) -> None:
        """Stop when the iteration ends; before there is a directory, at once."""
        if self.has_status():
            send_request(self.directory, "stop")
        else:
            self._process.terminate()

    def wait(self) -> int:
        return self._process.wait()

    def leave(self) -> None:
        """Let it go on without us."""
        self._process.returncode = (
            self._process.poll() or 0
        )  # else the interpreter warns of a process left behind
        self._said.close()
