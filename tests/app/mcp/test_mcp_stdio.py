"""The SDK's own client over standard input and output: every tool, resource and prompt."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest
from mcp import Client
from mcp_helpers import LONG, MARK, SHORT, ask, command, eventually, marked, over_stdio, refusal

from pycobre.app.answers.run_tables import RunTables

pytestmark = pytest.mark.xdist_group("mcp")


def test_every_tool_resource_and_prompt_answers(studies: Path, tables: RunTables) -> None:
    asyncio.run(_everything(studies, tables))


async def _everything(root: Path, tables: RunTables) -> None:
    used: set[str] = set()

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        used.add(tool)
        return await ask(client, tool, **arguments)

    async with over_stdio(root, "--allow-run") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool in tools.values():
            assert tool.output_schema is not None
            assert tool.output_schema["type"] == "object"
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint == (
                tool.name not in ("edit_case", "start_run", "stop_run")
            )
            assert tool.annotations.destructive_hint == (tool.name == "stop_run")
            assert tool.description
        run = tables.run
        assert [each["case"] for each in (await call("list_cases"))["cases"]] == ["cascade"]
        assert (await call("describe_case", case="cascade", kind="hydros"))["counts"]["hydros"] == 5
        assert (await call("validate_case", case="cascade"))["valid"]
        assert "system/hydros.json" in (await call("get_schema"))["available"]
        edit = {
            "case": "cascade",
            "target": "dry",
            "changes": [{"path": "load_stats.*.*.mean_mw", "factor": 1.1}],
        }
        shown = await call("edit_case", **edit)
        assert (await call("edit_case", **edit, confirm=shown["confirm"]))["written"]
        changed = await call("diff_cases", a="cascade", b="dry")
        assert {each["category"] for each in changed["differences"]} == {"load"}
        assert (await call("estimate_run", case="cascade", measure=False))["lps_per_iteration"] == 498
        started = await call("start_run", case="dry", overrides=SHORT, scenarios=8)
        told: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(done)
            assert total in (None, 4.0)

        used.add("wait_for_run")
        waited = await client.call_tool("wait_for_run", {"run": started["run"]}, progress_callback=progress)
        assert waited.structured_content is not None
        assert waited.structured_content["state"] == "finished"
        assert told == sorted(told)
        assert told[-1] == 4.0
        assert (await call("run_status", run=started["run"]))["iteration"] == 3
        assert {each["run"] for each in (await call("list_runs"))["runs"]} == {run, started["run"]}
        compared = await call("compare_runs", a=run, b=started["run"])
        assert any(each["group"] == "price" for each in compared["quantities"])
        assert not (await call("explain_failure", run=run))["failed"]
        assert (await call("is_converged", run=run))["iterations"] == 12
        mean = [{"function": "mean", "column": "marginal_cost"}]
        asked = await call("query_table", run=run, table="buses", group_by=["bus_id"], aggregates=mean)
        assert [row[0] for row in asked["rows"]] == [0, 1]
        assert (await call("water_value", run=run, plant="Springs", stage="2026-04"))["points"]
        assert (await call("cost_to_go", run=run, stage=3))["value"] > 0
        assert (await call("explain_price", run=run, bus="Coast", stage=3, scenario=2))["agrees"]
        assert (await call("deficit_risk", run=run, bus="Coast"))["scenarios"] == 24
        assert (await call("reservoir_risk", run=run, plant="Fork"))["plant"] == "Fork"
        used.add("plot")
        drawn = await client.call_tool("plot", {"run": run, "of": "convergence"})
        assert [part.type for part in drawn.content] == ["image", "text"]
        assert drawn.content[0].data.startswith("iVBORw0KGgo")  # type: ignore[union-attr]
        going = await call("start_run", case="dry", overrides=LONG, output="long")
        await call("stop_run", run=going["run"], now=True)
        ended = await call("wait_for_run", run=going["run"])
        assert ended["state"] in ("failed", "lost")
        assert used == set(tools)
        await _resources(client, run, tables)
        await _prompts(client)
        for name in ("case", "plot", "run"):
            assert (await refusal(client, "describe_case", **{name: "nothing"}))["kind"]


async def _resources(client: Client, run: str, tables: RunTables) -> None:
    templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
    read: set[str] = set()

    async def text(template: str, **values: str) -> str:
        read.add(template)
        (found,) = (await client.read_resource(template.replace("{+", "{").format(**values))).contents
        return str(getattr(found, "text", "")) or str(found.blob)  # type: ignore[union-attr]

    assert json.loads(await text("case://{+case}", case="cascade"))["stages"] == 12
    assert json.loads(await text("run://{run}/status", run=run))["state"] == "finished"
    events = [json.loads(line) for line in (await text("run://{run}/events", run=run)).splitlines()]
    assert events == list(tables.results.events())
    assert "<html" in await text("run://{run}/report", run=run)
    costs = tables.results.simulation("costs")
    as_csv = await text("run://{run}/tables/{table}.csv", run=run, table="costs")
    assert csv.read_csv(io.BytesIO(as_csv.encode())).to_pydict() == costs.to_pydict()
    arrow = await text("run://{run}/tables/{table}.arrow", run=run, table="costs")
    assert pa.ipc.open_file(base64.b64decode(arrow)).read_all().equals(costs)
    assert read == templates


async def _prompts(client: Client) -> None:
    prompts = {each.name for each in (await client.list_prompts()).prompts}
    assert prompts == {"monthly_study", "why_did_my_run_stop", "compare_two_months"}
    for name, arguments, said in (
        ("monthly_study", {"case": "march", "previous": "february"}, "diff_cases from 'february' to 'march'"),
        ("why_did_my_run_stop", {"run": "2026"}, "explain_failure"),
        (
            "compare_two_months",
            {"a": "x", "b": "y", "run_a": "1", "run_b": "2"},
            "compare_runs from '1' to '2'",
        ),
    ):
        (message,) = (await client.get_prompt(name, arguments)).messages
        assert said in message.content.text  # type: ignore[union-attr]


def test_a_server_that_only_answers_starts_stops_and_writes_nothing(studies: Path) -> None:
    async def refused() -> None:
        async with over_stdio(studies) as client:
            edit = {
                "case": "cascade",
                "target": "dry",
                "changes": [{"path": "config.training.tree_seed", "value": 1}],
            }
            shown = await ask(client, "edit_case", **edit)
            for tool, arguments in (
                ("edit_case", edit | {"confirm": shown["confirm"]}),
                ("start_run", {"case": "cascade"}),
                ("stop_run", {"run": "x"}),
            ):
                error = await refusal(client, tool, **arguments)
                assert "--allow-run" in error["remedy"]

    before = sorted(studies.rglob("*"))
    asyncio.run(refused())
    assert sorted(studies.rglob("*")) == before


def test_a_cancelled_wait_leaves_the_server_and_the_run_alone(studies: Path) -> None:
    async def cancelled() -> None:
        async with over_stdio(studies, "--allow-run", "--runs", "1") as client:
            run = (await ask(client, "start_run", case="cascade", overrides=LONG, output="long"))["run"]
            seen = asyncio.Event()

            async def progress(done: float, total: float | None, message: str | None) -> None:
                seen.set()

            wait = asyncio.create_task(
                client.call_tool("wait_for_run", {"run": run}, progress_callback=progress)
            )
            await seen.wait()
            wait.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wait
            assert (await ask(client, "run_status", run=run))["state"] in ("starting", "running")
            error = await refusal(client, "start_run", case="cascade", output="second")
            assert error["kind"] == "TooManyRuns"
            assert error["fields"] == {"running": [run]}
            await ask(client, "stop_run", run=run)
            assert (await ask(client, "wait_for_run", run=run))["state"] in ("interrupted", "failed")

    asyncio.run(cancelled())


def test_a_run_that_cannot_begin_is_refused_or_says_why(studies: Path) -> None:
    async def refused() -> None:
        async with over_stdio(studies, "--allow-run") as client:
            wrong = await refusal(client, "start_run", case="cascade", overrides={"training.tree_sed": 1})
            assert "tree_seed" in wrong["message"]
            # Nothing that is seen before a run begins: it ends at once, and says so where it is asked after.
            early = await ask(client, "start_run", case="cascade", resume=True, output="new", overrides=SHORT)
            ended = await ask(client, "wait_for_run", run=early["run"])
            assert ended["state"] == "failed"
            assert ended["error"]["kind"] == "PolicyError"
            assert "checkpoint" in ended["error"]["message"]
            first = await ask(client, "start_run", case="cascade", overrides=LONG, output="long")
            while (await ask(client, "run_status", run=first["run"]))["state"] == "starting":
                await asyncio.sleep(0.05)
            second = await refusal(client, "start_run", case="cascade", output="long")
            assert "in use by process" in second["message"]
            assert (await ask(client, "stop_run", run=first["run"], now=True))[
                "how"
            ] == "its processes were ended"

    asyncio.run(refused())


@pytest.mark.parametrize("killed", ["client", "server"])
def test_nothing_is_left_when_client_or_server_is_killed_in_mid_call(studies: Path, killed: str) -> None:
    mark = uuid.uuid4().hex
    server = subprocess.Popen(
        command(studies, "--allow-run"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {MARK: mark},
    )
    assert server.stdin is not None
    assert server.stdout is not None
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }

    def send(**message: Any) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()

    try:
        send(id=1, method="initialize", params=about)
        assert json.loads(server.stdout.readline())["id"] == 1
        send(method="notifications/initialized")
        start = {"case": "cascade", "overrides": LONG, "output": "long"}
        send(id=2, method="tools/call", params={"name": "start_run", "arguments": start})
        run = json.loads(server.stdout.readline())["result"]["structuredContent"]["run"]
        status = studies / "long" / "status.json"
        eventually(
            lambda: status.is_file() and json.loads(status.read_text())["iteration"] > 0, lambda: marked(mark)
        )
        send(id=3, method="tools/call", params={"name": "wait_for_run", "arguments": {"run": run}})
        send(id=4, method="tools/call", params={"name": "estimate_run", "arguments": {"case": "cascade"}})
        assert any("run_process" in each for each in marked(mark).values())
        if killed == "server":
            server.send_signal(signal.SIGKILL)
        else:  # its ends of the pipes are closed, as when it is killed
            server.stdin.close()
            server.stdout.close()
        eventually(lambda: not marked(mark), lambda: marked(mark))
        assert json.loads(status.read_text())["state"] == "interrupted"  # with a checkpoint
        assert list((studies / "long" / "checkpoints").iterdir())
    finally:
        server.kill()
        server.wait()
        for stream in (server.stdin, server.stdout):
            stream.close()


def test_a_detached_run_goes_on_without_the_server(studies: Path) -> None:
    mark = uuid.uuid4().hex

    async def started() -> str:
        async with over_stdio(studies, "--allow-run", **{MARK: mark}) as client:
            found = await ask(
                client, "start_run", case="cascade", overrides=LONG, output="long", detached=True
            )
            while (await ask(client, "run_status", run=found["run"]))["state"] == "starting":
                await asyncio.sleep(0.05)
            return str(found["run"])

    async def stopped(run: str) -> None:
        async with over_stdio(studies, "--allow-run", **{MARK: mark}) as client:
            assert (await ask(client, "run_status", run=run))["state"] == "running"
            assert (await refusal(client, "stop_run", run=run, now=True))["kind"] == "NotOwnRun"
            await ask(client, "stop_run", run=run)
            assert (await ask(client, "wait_for_run", run=run))["state"] == "interrupted"

    run = asyncio.run(started())
    eventually(lambda: len(marked(mark)) == 1, lambda: marked(mark))
    asyncio.run(stopped(run))
    eventually(lambda: not marked(mark), lambda: marked(mark))
