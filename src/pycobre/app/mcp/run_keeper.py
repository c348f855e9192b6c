"""The runs that this server started: at most so many at once, ended with the server unless they are detached."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from pycobre.app.mcp.documents import refusal
from pycobre.app.mcp.limits import Limits

__all__ = ["RunKeeper"]

GRACE_S = 1.5
"""How long a server that ends waits for its runs; they end by themselves a little later, with a checkpoint."""


@dataclass
class _Kept:
    process: asyncio.subprocess.Process
    directory: str
    case: str
    detached: bool
    asked: float = field(default_factory=time.monotonic)
    error: dict[str, Any] | None = None
    watcher: asyncio.Task[None] | None = None


class RunKeeper:
    """Starts runs in processes of their own. `lease` is whether a run ends that nobody asks after."""

    def __init__(self, root: str, limits: Limits, *, lease: bool) -> None:
        self._root, self._limits, self._lease = root, limits, lease
        self._runs: dict[str, _Kept] = {}

    async def start(self, prepared: dict[str, Any], order: dict[str, Any]) -> None:
        """Start the run that was prepared; it is known by its id from here on."""
        going = [name for name, kept in self._runs.items() if kept.process.returncode is None]
        if len(going) >= self._limits.runs:
            raise refusal(
                "TooManyRuns",
                f"start_run: expected at most {self._limits.runs} runs of this server at once, got another while "
                f"{', '.join(going)} go on.",
                "wait for one of them, stop one, or start the server with a larger --runs",
                running=going,
            )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pycobre.app.mcp.run_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # so that it can be ended with all of its workers
        )
        assert process.stdin is not None
        whole = order | {key: prepared[key] for key in ("case", "output", "run")} | {"root": self._root}
        process.stdin.write(json.dumps(whole).encode() + b"\n")
        await process.stdin.drain()
        kept = _Kept(process, prepared["directory"], order["name"], order["detached"])
        if order["detached"]:
            process.stdin.close()
        kept.watcher = asyncio.create_task(self._watch(kept))
        self._runs[prepared["run"]] = kept

    def touch(self, run: str) -> None:
        """Somebody has asked after a run."""
        if run in self._runs:
            self._runs[run].asked = time.monotonic()

    def own(self, run: str) -> str | None:
        """The id of the one run of this server that begins so."""
        found = [name for name in self._runs if name == run or (len(run) >= 8 and name.startswith(run))]
        return found[0] if len(found) == 1 else None

    def state(self, run: str) -> dict[str, Any] | None:
        """What is known of a run of this server that has not written a status yet, or that never will."""
        kept = self._runs.get(run)
        if kept is None:
            return None
        ended = kept.process.returncode is not None
        return {
            "state": "failed" if ended else "starting",
            "directory": kept.directory,
            "case": kept.case,
            "error": kept.error,
        }

    def alive(self, run: str) -> bool:
        """Whether the process of a run of this server goes on."""
        return run in self._runs and self._runs[run].process.returncode is None

    def kill(self, run: str) -> bool:
        """End a run of this server at once, with its workers; whether there was one to end."""
        kept = self._runs.get(run)
        if kept is None or kept.process.returncode is not None:
            return False
        _signal(kept, signal.SIGKILL)
        return True

    def ask_to_stop(self, run: str) -> bool:
        """Ask a run of this server to stop after its iteration; whether there was one to ask."""
        if not self.alive(run):
            return False
        _signal(self._runs[run], signal.SIGTERM)
        return True

    async def expire(self) -> None:
        """Stop runs that nobody asks after, for ever."""
        while self._lease:
            await asyncio.sleep(min(1.0, self._limits.lease_s / 4))
            for kept in self._runs.values():
                late = time.monotonic() - kept.asked > self._limits.lease_s
                if late and not kept.detached and kept.process.returncode is None:
                    kept.asked = time.monotonic()  # once more after as long, if it does not end
                    _signal(kept, signal.SIGTERM)

    async def close(self) -> None:
        """The server ends: its runs end too, but for those that are detached."""
        going = [
            kept for kept in self._runs.values() if kept.process.returncode is None and not kept.detached
        ]
        for kept in going:
            assert kept.process.stdin is not None
            kept.process.stdin.close()
        waiting = [asyncio.create_task(kept.process.wait()) for kept in going]
        if waiting:
            await asyncio.wait(waiting, timeout=GRACE_S)
        for kept in self._runs.values():
            if kept.watcher is not None:
                kept.watcher.cancel()

    async def _watch(self, kept: _Kept) -> None:
        """Take what the run says at its end, and wait for it."""
        assert kept.process.stdout is not None
        async for line in kept.process.stdout:
            with contextlib.suppress(ValueError):
                kept.error = json.loads(line).get("error", kept.error)
        await kept.process.wait()


def _signal(kept: _Kept, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(kept.process.pid, number)
        else:
            os.kill(kept.process.pid, number)
