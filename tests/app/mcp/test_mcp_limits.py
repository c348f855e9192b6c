"""What takes too long, is too much or is cancelled ends alone; the next call is answered."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pycobre.app.answers.run_tables import RunTables
from pycobre.app.mcp.documents import Refused
from pycobre.app.mcp.limits import Limits
from pycobre.app.mcp.pool import Pool

pytestmark = pytest.mark.xdist_group("mcp")
SCHEMA = {"name": "hydros"}


def pooled(root: Path, limits: Limits, use: Callable[[Pool], Awaitable[None]]) -> None:
    async def run() -> None:
        pool = Pool(str(root), writing=False, limits=limits)
        try:
            await use(pool)
        finally:
            await pool.close()

    asyncio.run(run())


def test_a_call_that_takes_too_long_is_ended_and_the_next_is_answered(root: Path) -> None:
    async def use(pool: Pool) -> None:
        with pytest.raises(Refused) as refused:
            await pool.call("estimate_run", {"case": "cascade"}, seconds=0.01)
        assert refused.value.document["kind"] == "TimeLimit"
        assert "0.01 s" in refused.value.document["message"]
        assert (await pool.call("get_schema", SCHEMA))["name"] == "system/hydros.json"

    pooled(root, replace(Limits(), calls=1), use)


def test_a_cancelled_call_ends_its_process_and_no_other(root: Path) -> None:
    async def use(pool: Pool) -> None:
        await pool.call("get_schema", SCHEMA)
        task = asyncio.create_task(pool.call("estimate_run", {"case": "cascade"}))
        await asyncio.sleep(0)  # the task has begun
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        both = await asyncio.gather(pool.call("get_schema", SCHEMA), pool.call("list_cases", {}))
        assert both[1]["total"] == 1

    pooled(root, Limits(), use)


def test_a_process_that_dies_is_replaced(root: Path) -> None:
    async def use(pool: Pool) -> None:
        await pool.call("get_schema", SCHEMA)
        (process,) = pool._idle
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        with pytest.raises(Refused) as refused:
            await pool.call("get_schema", SCHEMA)
        assert refused.value.document["kind"] == "ProcessEnded"
        assert refused.value.document["fields"] == {"exit_code": -9}
        assert (await pool.call("get_schema", SCHEMA))["name"] == "system/hydros.json"

    pooled(root, replace(Limits(), calls=1), use)


def test_an_answer_that_is_too_long_is_refused(root: Path, tables: RunTables) -> None:
    async def use(pool: Pool) -> None:
        arguments = {"run": tables.run, "table": "hydros", "limit": 1000}
        with pytest.raises(Refused) as refused:
            await pool.call("query_table", arguments)
        assert "expected at most 2,000 bytes" in refused.value.document["message"]
        assert (await pool.call("query_table", arguments | {"limit": 1}))["truncated"]

    pooled(root, replace(Limits(), answer_bytes=2000), use)
