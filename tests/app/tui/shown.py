"""The app without a terminal: keys in, the text of the screen out."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import recorded

SNAPSHOTS = Path(__file__).parent / "snapshots"
SMALL, LARGE = (80, 24), (140, 45)


class Shown:
    """An app that runs, and its pilot."""

    def __init__(self, app: Any, pilot: Any) -> None:
        self.app, self.pilot = app, pilot

    @property
    def text(self) -> str:
        """What is on the screen, without colours."""
        from rich.console import Console

        width, height = self.app.size
        console = Console(width=width, height=height, file=io.StringIO(), record=True, color_system=None)
        console.print(self.app.screen._compositor.render_update(full=True))
        return "\n".join(line.rstrip() for line in console.export_text(styles=False).splitlines()) + "\n"

    async def settle(self) -> None:
        """Read the files, and let everything that follows from it happen."""
        await self.pilot.pause()
        await self.app.read_now()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def press(self, *keys: str) -> str:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()
        return self.text

    @property
    def notices(self) -> list[str]:
        return [each.message for each in self.app._notifications]


@asynccontextmanager
async def shown(root: Path, size: tuple[int, int] = SMALL, **more: Any) -> AsyncIterator[Shown]:
    from pycobre.app.tui.app import WatchApp

    clock = more.pop("clock", lambda: recorded.NOW)
    roots = more.pop("roots", [root])
    app = WatchApp(roots, clock=clock, by_itself=False, **more)
    async with app.run_test(size=size) as pilot:
        found = Shown(app, pilot)
        await found.settle()
        yield found


def drive(
    root: Path, act: Callable[[Shown], Awaitable[None]], size: tuple[int, int] = SMALL, **more: Any
) -> Any:
    """Run `act` on the app; gives the app, which has ended then."""

    async def main() -> Any:
        async with shown(root, size, **more) as found:
            await act(found)
        return found.app

    return asyncio.run(main())


def check_snapshot(name: str, size: tuple[int, int], text: str) -> None:
    """Compare with the recorded text; `PYCOBRE_WRITE_SNAPSHOTS=1` records it."""
    path = SNAPSHOTS / f"{name}.{size[0]}x{size[1]}.txt"
    if os.environ.get("PYCOBRE_WRITE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), (
        f"{path.name} differs: look at it, then PYCOBRE_WRITE_SNAPSHOTS=1 records it"
    )
