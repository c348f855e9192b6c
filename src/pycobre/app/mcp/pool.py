"""The processes that answer calls, seen from the server: few, reused, and ended when a call takes too long.

The server itself reads nothing below the root and solves nothing. A call that is cancelled, that takes too long or
that brings its process down ends that process and no other; the next call gets a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

from pycobre.app.mcp.documents import Refused, refusal
from pycobre.app.mcp.limits import Limits

__all__ = ["Pool"]

LONGEST_LINE = 64 << 20


class Pool:
    """Answers calls on at most `limits.calls` processes at once."""

    def __init__(self, root: str, *, writing: bool, limits: Limits) -> None:
        self._command = [sys.executable, "-m", "pycobre.app.mcp.worker", "--root", root]
        self._command += ["--writing"] if writing else []
        self._limits = limits
        self._places = asyncio.Semaphore(limits.calls)
        self._idle: list[asyncio.subprocess.Process] = []
        self._all: set[asyncio.subprocess.Process] = set()
        self._ending: set[asyncio.Task[int]] = set()

    async def warm(self) -> None:
        """Start one process, so that the first call finds it ready."""
        if not self._all:
            self._idle.append(await self._start())

    async def call(
        self, name: str, arguments: dict[str, Any], *, most: int | None = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """The answer to one call; `Refused` with the error of one that fails."""
        limit = seconds or self._limits.call_s
        request = {"call": name, "arguments": arguments, "most": most or self._limits.answer_bytes}
        line = json.dumps(request).encode() + b"\n"
        async with self._places:
            process = self._idle.pop() if self._idle else await self._start()
            done = False
            try:
                async with asyncio.timeout(limit):
                    answer = await self._asked(process, line)
                done = True
            except TimeoutError:
                raise refusal(
                    "TimeLimit",
                    f"{name}: expected an answer within {limit:g} s, got none: it was ended.",
                    "ask for less, or start the server with a larger --call-seconds",
                    seconds=limit,
                ) from None
            finally:
                if done:
                    self._idle.append(process)
                else:
                    self._end(process)
        if "error" in answer:
            raise Refused(answer["error"])
        found: dict[str, Any] = answer["answer"]
        return found

    async def close(self) -> None:
        """End all processes and wait for them."""
        for process in list(self._all):
            self._end(process)
        self._idle.clear()
        await asyncio.gather(*self._ending)

    async def _asked(self, process: asyncio.subprocess.Process, line: bytes) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # that it has ended is seen below
            process.stdin.write(line)
            await process.stdin.drain()
        data = await process.stdout.readline()
        if not data.endswith(b"\n"):
            code = await process.wait()
            raise refusal(
                "ProcessEnded",
                f"the process that was answering ended with {code}",
                "ask for less; if it repeats, a file is damaged: `pycobre validate` and the run's manifest tell",
                exit_code=code,
            )
        found: dict[str, Any] = json.loads(data)
        return found

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self._all.add(process)
        return process

    def _end(self, process: asyncio.subprocess.Process) -> None:
        self._all.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        task = asyncio.create_task(process.wait())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
