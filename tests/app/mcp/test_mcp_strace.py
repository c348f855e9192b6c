"""Every file that the processes of a server touch, libraries in C included, as the kernel sees it."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp_helpers import SHORT, ask, command, refusal

from pycobre.app.answers.run_tables import RunTables

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mcp")]
CALL = re.compile(r'^\d+ +(?P<name>\w+)\((?:AT_FDCWD, )?"(?P<path>[^"]*)"(?P<rest>.*)$')
CHANGES = {
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "symlink",
    "link",
}


def test_the_kernel_sees_no_file_of_others_opened_and_none_outside_written(
    studies: Path, tables: RunTables, tmp_path: Path
) -> None:
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-f", "-o", "/dev/null", "true"], check=False).returncode:
        pytest.skip("strace is missing or not permitted here: install it to trace the server")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.json").write_text("{}")
    (studies / "out").symlink_to(outside)
    (studies / "bad" / "system").mkdir(parents=True)
    (studies / "bad" / "config.json").symlink_to(outside / "secret.json")
    trace = tmp_path / "trace"
    server = StdioServerParameters(
        command=strace,
        args=[
            "-f",
            "-qq",
            "-s",
            "4096",
            "-e",
            "trace=%file",
            "-o",
            str(trace),
            *command(studies, "--allow-run"),
        ],
    )

    async def session() -> None:
        async with Client(server, read_timeout_seconds=500) as client:
            for case in ("out", "bad", str(outside), "../outside"):
                await refusal(client, "describe_case", case=case)
                await refusal(client, "run_status", run=case)
            await ask(client, "list_cases")
            await ask(client, "query_table", run=tables.run, table="hydros", group_by=["stage_id"])
            await ask(client, "explain_price", run=tables.run, bus="Coast", stage=2)
            await client.read_resource(f"run://{tables.run}/tables/buses.arrow")
            started = await ask(
                client, "start_run", case="cascade", overrides=SHORT, output="new", scenarios=4
            )
            assert (await ask(client, "wait_for_run", run=started["run"]))["state"] == "finished"

    asyncio.run(session())
    opened, written = set(), set()
    for line in trace.read_text(errors="replace").splitlines():
        call = CALL.match(line)
        if call is None or " = -1 " in call["rest"]:
            continue
        if call["name"] in ("open", "openat", "creat"):
            opened.add(call["path"])
            if any(flag in call["rest"] for flag in ("O_WRONLY", "O_RDWR", "O_CREAT")):
                written.add(call["path"])
        elif call["name"] in CHANGES:
            written.add(call["path"])
    assert any(path.startswith(str(studies)) for path in written)  # the trace sees the run
    assert any(path.endswith("hydros.parquet") for path in opened)  # and what Arrow opens
    assert not {path for path in opened | written if path.startswith(str(outside))}
    allowed = (str(studies), "/dev/null", "/dev/shm/", "/proc/self/")
    assert not {
        path
        for path in written
        if path.startswith("/") and not path.startswith(allowed) and "__pycache__" not in path
    }
