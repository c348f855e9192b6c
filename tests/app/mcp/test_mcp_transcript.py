"""The session in the guide is a real one: its calls are made again, and its answers have to come back.

A line `→ tool {…}` is a call, `← {…}` what its answer holds, or begins with where it is a list. `$run` stands for
the id that the first answer with it has.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_helpers import over_stdio

from pycobre.hydro.examples import example
from pycobre.hydro.files import write_case

pytestmark = pytest.mark.xdist_group("mcp")
PAGE = Path(__file__).parents[3] / "docs" / "guides" / "ask-about-a-study.md"
LINE = re.compile(r"^(?P<mark>[→←]) (?:(?P<tool>\w+) )?(?P<document>\{.*\})$", re.MULTILINE)


def matches(said: Any, found: Any, names: dict[str, str]) -> bool:
    """Whether what the page says is what the answer holds."""
    if isinstance(said, str) and said.startswith("$"):
        return names.setdefault(said, str(found)) == found
    if isinstance(said, dict):
        return isinstance(found, dict) and all(
            key in found and matches(value, found[key], names) for key, value in said.items()
        )
    if isinstance(said, list):
        return isinstance(found, list) and all(
            matches(value, other, names) for value, other in zip(said, found[: len(said)], strict=True)
        )
    if isinstance(said, float):
        return isinstance(found, int | float) and found == pytest.approx(said, rel=1e-4)
    return bool(said == found)


def test_the_session_of_the_guide_happens_again(tmp_path: Path) -> None:
    steps = list(LINE.finditer(PAGE.read_text()))
    assert len(steps) >= 16
    names: dict[str, str] = {}

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        return names.get(value, value) if isinstance(value, str) else value

    async def again(client: Client) -> None:
        answer: Any = None
        for step in steps:
            document = json.loads(step["document"])
            if step["mark"] == "→":
                answer = (await client.call_tool(step["tool"], filled(document))).structured_content
            else:
                assert matches(document, answer, names), f"{step[0]}\n{json.dumps(answer)[:2000]}"

    async def session() -> None:
        async with over_stdio(tmp_path, "--allow-run") as client:
            await again(client)

    write_case(example("cascade").build(), tmp_path / "cascade")
    asyncio.run(session())
