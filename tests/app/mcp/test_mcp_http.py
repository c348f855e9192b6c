"""Over HTTP: the SDK's own client, two at once, and who is kept out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_helpers import LONG, MARK, SHORT, ask, command, eventually, marked

from pycobre.app.answers.run_tables import RunTables
from pycobre.app.cli import main
from pycobre.app.mcp.serve import token_from
from pycobre.errors import OptionError

pytestmark = pytest.mark.xdist_group("mcp")
TOKEN = "a-token-of-many-letters"
ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@contextlib.contextmanager
def serving(root: Path, *options: str, host: str = "127.0.0.1", **environment: str) -> Iterator[str]:
    """A server on a free port, and its address."""
    server = subprocess.Popen(
        command(root, "--http", f"{host}:0", *options),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        text=True,
    )
    assert server.stderr is not None
    try:
        line = server.stderr.readline()
        assert line.startswith("listening on http://"), line + server.stderr.read()
        yield line.split()[-1]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=120)
        server.stderr.close()


def test_two_clients_at_once_get_their_own_answers(studies: Path, tables: RunTables) -> None:
    async def one(url: str, stage: int) -> list[Any]:
        async with Client(url) as client:
            where = [{"column": "stage_id", "op": "==", "value": stage}]
            mean = [{"function": "mean", "column": "marginal_cost"}]
            found = []
            for _ in range(5):
                asked = await ask(
                    client,
                    "query_table",
                    run=tables.run,
                    table="buses",
                    where=where,
                    group_by=["stage_id"],
                    aggregates=mean,
                )
                found.append(asked["rows"])
            names = {each.name for each in (await client.list_prompts()).prompts}
            assert "monthly_study" in names
            (case,) = (await client.read_resource("case://cascade")).contents
            assert '"stages": 12' in case.text  # type: ignore[union-attr]
            return found

    async def both(url: str) -> list[list[Any]]:
        return list(await asyncio.gather(one(url, 2), one(url, 9)))

    buses = tables.results.simulation("buses")
    stage, price = buses["stage_id"].to_numpy(), buses["marginal_cost"].to_numpy()
    with serving(studies) as url:
        for number, answers in zip((2, 9), asyncio.run(both(url)), strict=True):
            (row,) = answers[0]
            assert row == [number, pytest.approx(price[stage == number].mean())]
            assert all(each == answers[0] for each in answers)


def test_a_run_is_started_followed_and_ended_when_nobody_asks_after_it(studies: Path) -> None:
    mark = uuid.uuid4().hex

    async def work(url: str) -> None:
        async with Client(url) as client:
            run = (await ask(client, "start_run", case="cascade", overrides=SHORT, output="short"))["run"]
            told: list[float] = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                told.append(done)

            waited = await client.call_tool("wait_for_run", {"run": run}, progress_callback=progress)
            assert waited.structured_content is not None
            assert waited.structured_content["state"] == "finished"
            assert told
            await ask(client, "start_run", case="cascade", overrides=LONG, output="long")

    with serving(studies, "--allow-run", "--lease-seconds", "2", **{MARK: mark}) as url:
        asyncio.run(work(url))
        eventually(
            lambda: not any("run_process" in each for each in marked(mark).values()), lambda: marked(mark)
        )
    eventually(lambda: not marked(mark), lambda: marked(mark))


def test_host_origin_and_token_are_checked(studies: Path) -> None:
    async def listed(url: str) -> int:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return len((await client.list_tools()).tools)

    with serving(studies, PYCOBRE_MCP_TOKEN=TOKEN) as url, httpx2.Client() as http:

        def status(**headers: str) -> int:
            return http.post(url, json=ASK, headers=JSON | headers).status_code

        good = {"authorization": f"Bearer {TOKEN}"}
        assert status() == 401
        assert status(authorization="Bearer wrong") == 401
        assert status(authorization=f"Basic {TOKEN}") == 401
        assert status(**good, host="evil.example") == 421
        assert status(**good, origin="http://evil.example") == 403
        assert http.get(url.replace("/mcp", "/other"), headers=good).status_code == 404
        assert http.get(url.replace("/mcp", "/other")).status_code == 401
        huge = http.post(url, content=b"[" * (5 << 20), headers=JSON | good)
        assert huge.status_code == 413
        assert asyncio.run(listed(url)) == 22


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "0.0.0.0:0"], "expected a token beyond loopback"),
        (["--http", "nonsense"], "expected HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "expected HOST:PORT"),
        (["--http", "127.0.0.1:0", "--token-file", "/nowhere"], "expected a file with a token"),
        (["--runs", "0"], "expected more than 0"),
        (["--root", "/nowhere"], "expected a directory"),
    ],
)
def test_what_cannot_be_served_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["mcp", "--root", str(tmp_path), *options]) == 1
    found = capsys.readouterr().err
    assert said in found
    assert "hint: " in found


def test_a_port_in_use_and_a_host_without_names_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["mcp", "--root", str(tmp_path), "--http", f"127.0.0.1:{taken.getsockname()[1]}"]) == 1
    assert "cannot listen there: Address already in use" in capsys.readouterr().err
    monkeypatch.setenv("PYCOBRE_MCP_TOKEN", TOKEN)
    assert main(["mcp", "--root", str(tmp_path), "--http", "0.0.0.0:0"]) == 1
    assert "Give --allow-host NAME:PORT" in capsys.readouterr().err


def test_without_the_sdk_the_command_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pycobre.app.mcp.serve")
    monkeypatch.setitem(sys.modules, "mcp.server.transport_security", None)
    assert main(["mcp", "--root", str(tmp_path)]) == 1
    assert 'pip install "pycobre[mcp]"' in capsys.readouterr().err


def test_tokens_are_read_from_private_files_and_are_long(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert token_from(str(file), "other") == TOKEN
    assert token_from(None, None) is None
    assert token_from(None, "") is None
    assert token_from(None, TOKEN) == TOKEN
    file.chmod(0o644)
    with pytest.raises(OptionError, match="only its owner can read"):
        token_from(str(file), None)
    for short in ("short", "with a space in the middle"):
        with pytest.raises(OptionError, match="at least 16 characters"):
            token_from(None, short)
    (tmp_path / "empty").touch(0o600)
    with pytest.raises(OptionError, match="got an empty file"):
        token_from(str(tmp_path / "empty"), None)
