"""Ranks, messages and settings of a run: any number of rows, of which those in view are drawn."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.geometry import Size

from pycobre.app.tui.drawing.bars import rank_legend, rank_rows, slowest
from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.reading.messages import Message
from pycobre.app.tui.reading.numbers import number
from pycobre.app.tui.reading.settings import flat_settings
from pycobre.app.tui.reading.watched import RunView
from pycobre.app.tui.widgets.rows import Rows, ScrolledRows, cut

__all__ = ["MessagesPane", "NewestMessages", "RanksBox", "RanksPane", "SettingsPane"]

SIGNS = {"note": "·", "asked": "→", "warning": "!", "error": "✗"}
SIGN_ROLES = {"note": "quiet", "asked": "bound", "warning": "warn", "error": "bad"}


def _ranks(view: RunView | None, width: int) -> list[Row]:
    """The bars, above them what they mean and who is slowest."""
    status = view.status if view is not None else None
    measured = [each for each in (status.seconds_per_rank or []) if isinstance(each, dict)] if status else []
    if status is None or not measured:
        return [[("Ranks", "title")], [("measured when an iteration ends", "quiet")]]
    slow = slowest(measured)
    said = ""
    if slow is not None:
        waits = [number(rank.get("wait_s")) for rank in measured]
        mean = sum(waits) / len(waits)
        said = f"slowest: rank {slow}; on average ranks waited {mean:,.1f} s"
    head: Row = [("Where the time of each rank went  ", "title"), (said, "warn")]
    legend = rank_legend(width)
    if sum(len(text) for text, _ in head) > width:
        return [[head[0]], [head[1]], legend, *rank_rows(measured, status.memory_per_rank, width)]
    return [head, legend, *rank_rows(measured, status.memory_per_rank, width)]


class RanksPane(ScrolledRows):
    """A bar for every rank."""

    view: RunView | None = None

    def show(self, view: RunView) -> None:
        self.view = view
        self.changed()

    def make(self, width: int) -> list[Row]:
        return _ranks(self.view, width)


class RanksBox(Rows):
    """As many of them as there is room for."""

    view: RunView | None = None

    def show(self, view: RunView) -> None:
        before = len(_ranks(self.view, self.size.width))
        self.view = view
        self.changed()
        if len(_ranks(view, self.size.width)) != before:
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(_ranks(self.view, width))

    def make(self, width: int, height: int) -> Sequence[Row]:
        rows = [cut(row, width) for row in _ranks(self.view, width)]
        if len(rows) <= height:
            return rows
        left = len(rows) - height + 1
        return [*rows[: height - 1], [(f"and {left} more, on the page Ranks (2)", "quiet")]]


def message_rows(messages: Sequence[Message], width: int) -> list[Row]:
    """A time and a sentence each, the sentence wrapped."""
    rows: list[Row] = []
    for message in messages:
        role = SIGN_ROLES[message.kind]
        at = "" if message.at is None else time.strftime("%m-%d %H:%M:%S", time.gmtime(message.at))
        lines = _wrapped(message.text, max(20, width - 17))
        for place, line in enumerate(lines):
            lead: Row = [(f"{at:<14} ", "quiet"), (f"{SIGNS[message.kind]} ", role)]
            rows.append(
                [*(lead if place == 0 else [(" " * 17, "")]), (line, "text" if role == "quiet" else role)]
            )
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width) or [""]


class MessagesPane(ScrolledRows):
    """What happened, oldest first; the end is followed."""

    view: RunView | None = None
    follows = True

    def show(self, view: RunView) -> None:
        self.view = view
        self.changed()

    def make(self, width: int) -> list[Row]:
        if self.view is None:
            return []
        rows = message_rows(self.view.messages, width)
        if self.view.unread_share > 0:
            share = 100 * (1 - self.view.unread_share)
            rows.insert(0, [(f"searching a long history for messages: {share:.0f} %", "quiet")])
        rows.insert(0, [("Messages  ", "title"), ("times in UTC", "quiet")])
        return rows if len(rows) > 1 else [*rows, [("nothing yet", "quiet")]]


class NewestMessages(Rows):
    """The last ones there is room for."""

    view: RunView | None = None

    def show(self, view: RunView) -> None:
        self.view = view
        self.changed()

    def make(self, width: int, height: int) -> Sequence[Row]:
        rows: list[Row] = []
        for message in reversed(self.view.messages if self.view is not None else ()):
            lines = message_rows([message], width)
            if len(lines) + len(rows) > height - 1:
                break
            rows = [*lines, *rows]
        return [[("Messages", "title")], *rows]


class SettingsPane(ScrolledRows):
    """Every setting by its path."""

    view: RunView | None = None

    def show(self, view: RunView) -> None:
        if self.view is None or view.study != self.view.study or view.directory != self.view.directory:
            self.view = view
            self.changed()

    def make(self, width: int) -> list[Row]:
        flat = flat_settings(self.view.study) if self.view is not None else {}
        if not flat:
            return [[("Settings", "title")], [("the run has not written its settings", "quiet")]]
        longest = min(max(len(path) for path in flat), max(20, width // 2))
        rows: list[Row] = [[("Settings  ", "title"), (f"{len(flat)} of them, by path", "quiet")]]
        for path, value in flat.items():
            lines = _wrapped(value, max(10, width - longest - 2))
            rows.append([(f"{path:<{longest}}  ", "quiet"), (lines[0], "text")])
            rows += [[(" " * (longest + 2), ""), (line, "text")] for line in lines[1:]]
        return rows
