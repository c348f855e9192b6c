"""Random calls from the published schemas, most of them malformed: errors as documents, a server that stays up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp_helpers import content

from pycobre.app.answers.run_tables import RunTables
from pycobre.app.mcp.limits import Limits
from pycobre.app.mcp.serve import make_server

pytestmark = pytest.mark.xdist_group("mcp")

HOSTILE = (
    "..",
    "../..",
    "/etc/passwd",
    "/dev/zero",
    "~",
    "",
    "\0",
    "cascade/../..",
    "x" * 5000,
    "cascade",
    "0",
    "-1",
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def values(
    schema: dict[str, Any], definitions: dict[str, Any], runs: tuple[str, ...]
) -> st.SearchStrategy[Any]:
    """Values that a schema allows, more or less."""
    if "$ref" in schema:
        return values(definitions[schema["$ref"].rpartition("/")[2]], definitions, runs)
    if "anyOf" in schema:
        return st.one_of([values(each, definitions, runs) for each in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "integer":
            return st.integers(-3, 30) | st.integers()
        case "number":
            return st.floats(-10, 1e4) | st.floats()
        case "boolean":
            return st.booleans()
        case "string":
            names = (
                "hydros",
                "buses",
                "stage_id",
                "hydro_id",
                "mean",
                "storage_final_hm3",
                "Springs",
                "==",
                "2026-03",
            )
            return st.sampled_from((*HOSTILE, *runs, *names)) | st.text(max_size=12)
        case "array":
            return st.lists(values(schema.get("items", {}), definitions, runs), max_size=3)
        case "object":
            own = schema.get("properties")
            if own is None:
                return st.dictionaries(st.text(max_size=8), ANYTHING, max_size=3)
            return objects(own, definitions, runs)
        case _:
            return ANYTHING


@st.composite
def objects(
    draw: Any, properties: dict[str, Any], definitions: dict[str, Any], runs: tuple[str, ...]
) -> dict[str, Any]:
    """Arguments: some left out, some of another type, some that do not exist."""
    found: dict[str, Any] = {}
    for name, schema in properties.items():
        fate = draw(st.integers(0, 9))
        if fate == 0:
            found[name] = draw(ANYTHING)
        elif fate > 2:
            found[name] = draw(values(schema, definitions, runs))
    if draw(st.integers(0, 9)) == 0:
        found[draw(st.text(max_size=8))] = draw(ANYTHING)
    return found


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[tuple[Any, Client, list[Any]]]:
    """A client of a server in this process, whose answers come from processes of their own."""
    made = make_server(os.path.realpath(root), writing=False, limits=Limits(wait_s=0.1), lease=False)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(made.office.open()),
        portal.wrap_async_context_manager(Client(made, mode="legacy")) as client,
    ):
        yield portal, client, portal.call(client.list_tools).tools


def call_randomly(server: tuple[Any, Client, list[Any]], tables: RunTables, examples: int) -> None:
    portal, client, tools = server
    outcomes = {"answered": 0, "refused": 0}

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def call(data: st.DataObject) -> None:
        tool = data.draw(st.sampled_from(tools))
        schema = tool.input_schema
        arguments = data.draw(objects(schema.get("properties", {}), schema.get("$defs", {}), (tables.run,)))
        found = portal.call(client.call_tool, tool.name, arguments)
        assert isinstance(found.structured_content, dict)
        if found.is_error:
            error = found.structured_content["error"]
            assert error["kind"] != "InternalError", (tool.name, arguments, error)
            assert error["message"]
            assert error["remedy"]
            assert "Traceback" not in str(error)
        outcomes["refused" if found.is_error else "answered"] += 1

    call()
    assert outcomes["refused"] > examples / 4
    assert outcomes["answered"] > 0
    assert portal.call(client.call_tool, "list_cases", {}).structured_content["total"] == 1


def test_malformed_calls_are_refused_and_write_nothing(
    server: tuple[Any, Client, list[Any]], root: Path, tables: RunTables
) -> None:
    before = content(root)
    call_randomly(server, tables, 60)
    assert content(root) == before


@pytest.mark.ci
def test_a_thousand_malformed_calls_are_refused_and_write_nothing(
    server: tuple[Any, Client, list[Any]], root: Path, tables: RunTables
) -> None:
    before = content(root)
    call_randomly(server, tables, 1000)
    assert content(root) == before
