"""The tools: those that only ask, made from the signatures of what answers; and those that start and stop runs."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ImageContent, ToolAnnotations
from pydantic import Field, TypeAdapter

from pycobre.app.answers.case_records import Source
from pycobre.app.answers.run_records import RunState
from pycobre.app.mcp import case_calls, result_calls, run_calls
from pycobre.app.mcp.call_records import PictureOf, RunStarted, RunStopped
from pycobre.app.mcp.case_calls import CaseName
from pycobre.app.mcp.documents import Refused, refusal
from pycobre.app.mcp.run_calls import Overrides, RunName, Workers
from pycobre.app.mcp.server import StudyServer, answered
from pycobre.app.mcp.view_calls import PlotOf

__all__ = ["add_tools"]

POLL_S = 0.2
_GOING = ("starting", "running")
_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
_ENDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


def add_tools(server: StudyServer) -> None:
    """Give the server all of its tools."""
    for call in (*case_calls.CALLS, *run_calls.CALLS, *result_calls.CALLS):
        hints = _WRITES if call is case_calls.edit_case else _READS
        server.add_tool(_asking(server, call), annotations=hints, title=_title(call.__name__))
    for tool, hints in (
        (_start_run(server), _WRITES),
        (_run_status(server), _READS),
        (_wait_for_run(server), _READS),
        (_stop_run(server), _ENDS),
        (_plot(server), _READS),
    ):
        server.add_tool(tool, annotations=hints, title=_title(tool.__name__))


def _asking(server: StudyServer, call: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that passes its arguments to the function of the same signature in a worker process."""
    signature = inspect.signature(call, eval_str=True)
    parameters = list(signature.parameters.values())[1:]
    types: dict[str, TypeAdapter[Any]] = {each.name: TypeAdapter(each.annotation) for each in parameters}

    async def ask(**arguments: Any) -> CallToolResult:
        plain = {name: types[name].dump_python(value, mode="json") for name, value in arguments.items()}
        return answered(await server.office.pool.call(call.__name__, plain))

    returned = Annotated[CallToolResult, signature.return_annotation]
    ask.__name__, ask.__doc__ = call.__name__, call.__doc__
    ask.__signature__ = signature.replace(parameters=parameters, return_annotation=returned)  # type: ignore[attr-defined]
    ask.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": returned}
    return ask


def _start_run(server: StudyServer) -> Callable[..., Any]:
    async def start_run(
        case: CaseName,
        overrides: Overrides = {},  # noqa: B006 - read only
        output: Annotated[
            str, Field(description="result directory below the root; empty: output in the case's directory")
        ] = "",
        scenarios: Annotated[
            int | None, Field(ge=0, le=1_000_000, description="simulated; none: as the case says")
        ] = None,
        workers: Workers = 1,
        threads: Annotated[int, Field(ge=1, le=256, description="of each process")] = 1,
        resume: Annotated[bool, Field(description="go on from the newest checkpoint")] = False,
        detached: Annotated[
            bool, Field(description="let it go on when the client or the server is gone")
        ] = False,
    ) -> Annotated[CallToolResult, RunStarted]:
        """Start training and simulation of a case in processes of its own; returns the id of the run at once."""
        plain = {"case": case, "overrides": overrides, "output": output, "resume": resume}
        prepared = await server.office.pool.call("prepare_run", plain)
        order = {
            "name": case,
            "overrides": overrides,
            "scenarios": scenarios,
            "workers": workers,
            "threads": threads,
            "resume": resume,
            "detached": detached,
        }
        await server.office.runs.start(prepared, order)
        return answered(
            asdict(
                RunStarted(
                    run=prepared["run"],
                    directory=prepared["directory"],
                    detached=detached,
                    next="wait_for_run follows it; run_status says how far it is",
                    sources=[Source("case", case, "all files", prepared["digest"])],
                )
            )
        )

    return start_run


def _run_status(server: StudyServer) -> Callable[..., Any]:
    async def run_status(run: RunName) -> Annotated[CallToolResult, RunState]:
        """Say how far a run is: phase, iteration, bounds, time left."""
        return answered(await _state(server, run))

    return run_status


def _wait_for_run(server: StudyServer) -> Callable[..., Any]:
    async def wait_for_run(
        run: RunName,
        ctx: Context[Any, Any],
        timeout_s: Annotated[
            float, Field(gt=0.0, le=86_400.0, description="then the answer is how far it is by then")
        ] = 600.0,
    ) -> Annotated[CallToolResult, RunState]:
        """Wait until a run has ended, with progress notifications, and say how it ended."""
        begun, told = time.monotonic(), -1.0
        limit = min(timeout_s, server.office.limits.wait_s)
        while True:
            found = await _state(server, run)
            done, total, text = _progress(found)
            if done > told:
                await ctx.report_progress(done, total, text)
                told = done
            if found["state"] not in _GOING or time.monotonic() - begun >= limit:
                return answered(found)
            await asyncio.sleep(POLL_S)  # a run says how far it is in a file

    return wait_for_run


def _stop_run(server: StudyServer) -> Callable[..., Any]:
    async def stop_run(
        run: RunName,
        now: Annotated[
            bool, Field(description="end its processes at once; else after the iteration")
        ] = False,
    ) -> Annotated[CallToolResult, RunStopped]:
        """Stop a run after its iteration, with a checkpoint, or at once. Both can be resumed."""
        office = server.office
        if not office.writing:
            raise refusal(
                "OptionError",
                "stop_run: expected a server that may start, stop and write, got one that only answers.",
                "start it with --allow-run",
            )
        own = office.runs.own(run)
        if now:
            if own is None or not office.runs.kill(own):
                raise refusal(
                    "NotOwnRun",
                    f"stop_run: expected a run that this server started and that goes on, got {run[:80]!r}.",
                    "leave out now: any run stops after its iteration when it is asked",
                )
            return answered(asdict(RunStopped(own, "its processes were ended", _asked(own))))
        if own is not None and office.runs.ask_to_stop(own):
            return answered(asdict(RunStopped(own, "asked to stop after its iteration", _asked(own))))
        name = str((await office.pool.call("request_stop", {"run": run}))["run"])
        return answered(asdict(RunStopped(name, "asked to stop after its iteration", _asked(name))))

    return stop_run


def _plot(server: StudyServer) -> Callable[..., Any]:
    async def plot(
        run: RunName,
        of: PlotOf = "convergence",
        entity: Annotated[
            str | int | None, Field(description="one plant or bus, by name or id; none: all of them")
        ] = None,
    ) -> Annotated[CallToolResult, PictureOf]:
        """Draw a picture of a run as PNG: convergence, costs, storage, generation, prices, time."""
        found = await server.office.pool.call(
            "picture", {"run": run, "of": of, "entity": entity}, most=server.office.limits.resource_bytes
        )
        image = ImageContent(type="image", data=found.pop("png"), mime_type="image/png")
        return answered(found, image)

    return plot


async def _state(server: StudyServer, run: str) -> dict[str, Any]:
    """The state of a run on disk, or of one of this server's that has not come to write one."""
    runs = server.office.runs
    own = runs.own(run)
    if own is not None:
        runs.touch(own)
    try:
        found = await server.office.pool.call("run_status", {"run": own or run})
    except Refused:
        known = None if own is None else runs.state(own)
        if known is None or own is None:
            raise
        return _early(own, known)
    runs.touch(str(found["run"]))
    if own is not None and runs.alive(own) and found["state"] not in _GOING:
        found["state"] = "running"  # the last files are being written, or a resumed run has not begun
    return found


def _early(run: str, known: dict[str, Any]) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("iteration_limit", "lower_bound", "upper_bound", "half_width", "gap", "eta_s", "lps_per_s", "result")
    )
    zero = dict.fromkeys(("iteration", "scenarios", "scenarios_done", "memory_bytes"), 0)
    found = {"run": run, "phase": "starting", "elapsed_s": 0.0, "warnings": [], "sources": _asked(run)}
    return {**known, **empty, **zero, **found, "sources": [asdict(each) for each in _asked(run)]}


def _asked(run: str) -> list[Source]:
    return [Source("run", run, "process of this server")]


def _progress(found: dict[str, Any]) -> tuple[float, float | None, str]:
    """How far a run is, in iterations; the simulation counts as one more."""
    limit, scenarios = found["iteration_limit"], found["scenarios"]
    share = found["scenarios_done"] / scenarios if scenarios else 0.0
    done = float(found["iteration"]) + share
    text = f"{found['state']}, {found['phase']}: iteration {found['iteration']}"
    if found["lower_bound"] is not None:
        text += f", bound {found['lower_bound']:.6g}"
    if scenarios:
        text += f", {found['scenarios_done']} of {scenarios} scenarios"
    return done, None if limit is None else float(limit) + 1.0, text


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
