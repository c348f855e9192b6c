"""Draw the pictures of the page about watching, from recorded runs: `python docs/watch_pictures.py`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "app" / "tui"))

import recorded  # noqa: E402
from shown import shown  # noqa: E402

PICTURES = HERE / "guides" / "watch"
#: Name, size, run to open, keys, light.
WANTED = (
    ("list", (100, 24), None, (), False),
    ("run", (140, 45), "january/output", (), False),
    ("small", (80, 24), "january/output", (), True),
    ("results", (110, 32), "december/output", ("6",), False),
    ("compare", (140, 40), None, ("space", "down", "space", "v"), False),
)


async def draw() -> None:
    """Every picture, from the same runs as those of the tests."""
    recorded.write_run(Path("runs/january/output"))
    recorded.write_finished(Path("runs/december/output"))
    recorded.write_run(
        Path("runs/two-reservoirs"), "20251201T000000Z-00ff00", event_age_s=900.0, case="two reservoirs",
        iteration=60, backend="mpi", ranks=64,
    )  # fmt: skip
    for name, size, run, keys, light in WANTED:
        directory = None if run is None else Path("runs") / run
        async with shown(Path("runs"), size, open_run=directory, light=light) as app:
            await app.press(*keys)
            svg = app.app.export_screenshot(title=f"pycobre watch · {name}")
        # Pages open without a network: a typeface of the machine does, with the letters that plots are made of.
        svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
        svg = re.sub(
            r"font-family: Fira Code[^;]*;", 'font-family: "Fira Code", "DejaVu Sans Mono", monospace;', svg
        )
        svg = re.sub(r"terminal-\d+", "terminal", svg)
        svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
        (PICTURES / f"{name}.svg").write_text(svg)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        asyncio.run(draw())
