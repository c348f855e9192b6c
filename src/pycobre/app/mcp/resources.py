"""Resources: cases, events, reports and tables by address."""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from pycobre.app.mcp.documents import Refused
from pycobre.app.mcp.server import StudyServer

__all__ = ["add_resources"]

ARROW = "application/vnd.apache.arrow.file"


def add_resources(server: StudyServer) -> None:
    """Give the server its resources."""

    async def ask(call: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await server.office.pool.call(call, arguments, most=server.office.limits.resource_bytes)
        except Refused as error:
            document = error.document
            raise MCPError(INVALID_PARAMS, str(document["message"]), data={"error": document}) from error

    @server.resource("case://{+case}", mime_type="application/json", title="Case")
    async def case(case: str) -> str:
        """What a case is about, as JSON."""
        return json.dumps(await ask("describe_case", case=case))

    @server.resource("run://{run}/status", mime_type="application/json", title="Status of a run")
    async def status(run: str) -> str:
        """How far a run is, as JSON."""
        return json.dumps(await ask("run_status", run=run))

    @server.resource("run://{run}/events", mime_type="application/x-ndjson", title="Events of a run")
    async def events(run: str) -> str:
        """The events of a run, one JSON object per line."""
        return str((await ask("events", run=run))["text"])

    @server.resource("run://{run}/report", mime_type="text/html", title="Report of a run")
    async def report(run: str) -> str:
        """The report of a run: one page with its pictures."""
        return str((await ask("report", run=run))["text"])

    @server.resource("run://{run}/tables/{table}.csv", mime_type="text/csv", title="Table as CSV")
    async def table_csv(run: str, table: str) -> str:
        """A table of a run as CSV."""
        return str((await ask("table", run=run, name=table, form="csv"))["text"])

    @server.resource("run://{run}/tables/{table}.arrow", mime_type=ARROW, title="Table as Arrow file")
    async def table_arrow(run: str, table: str) -> bytes:
        """A table of a run as an Arrow file."""
        return base64.b64decode((await ask("table", run=run, name=table, form="arrow"))["base64"])
