"""A run in figures, in as many columns as there is room for; what it does now as a bar."""

from __future__ import annotations

from collections.abc import Sequence

from pycobre.app.tui.drawing.bars import progress_bar
from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.reading.numbers import number
from pycobre.app.tui.reading.watched import RunView
from pycobre.app.tui.widgets.rows import Rows, cut
from pycobre.app.wording import age, amount, counted, duration, percent

__all__ = ["Facts", "Headline", "Now", "facts_of"]

STATE_ROLES = {"running": "bound", "finished": "good", "interrupted": "warn", "failed": "bad", "lost": "bad"}
UNKNOWN = "–"


def _amount(value: float) -> str:
    return UNKNOWN if value != value else amount(value)


def facts_of(view: RunView) -> list[tuple[str, str]]:
    """What is known of a run, with names, in the order of importance by columns of four."""
    line, status = view.line, view.status
    bound, mean = ("upper bound", "mean") if line.sense == "maximise" else ("lower bound", "upper bound")
    half = f" ± {_amount(line.half_width)}" if line.half_width > 0 else ""
    found = [
        (bound, _amount(line.lower)),
        (mean, _amount(line.upper)),
        ("95 %", half.strip() or UNKNOWN),
        ("gap", percent(line.gap) if line.gap == line.gap else UNKNOWN),
    ]
    latest = view.history.latest
    seconds = number(status.iteration_s) if status else number(None)
    seconds = seconds if seconds == seconds or latest is None else latest.elapsed_s
    rate = number(status.lps_per_s) if status else number(None)
    cuts = float(status.cuts) if status and status.cuts else latest.cuts if latest else number(None)
    found += [
        ("iteration", _seconds(seconds)),
        ("LPs/s", UNKNOWN if rate != rate else f"{rate:,.0f}"),
        ("LPs", f"{status.lp_solves:,}" if status else UNKNOWN),
        ("cuts", UNKNOWN if cuts != cuts else f"{cuts:,.0f}"),
    ]
    held = [number(each) for each in (status.memory_per_rank or [status.memory_bytes])] if status else []
    memory = max((each for each in held if each == each), default=0.0)
    found += [
        ("elapsed", duration(status.elapsed_s) if status else UNKNOWN),
        ("memory", f"{memory / 2**20:,.0f} MiB" if memory else UNKNOWN),
        ("checkpoint", _checkpoint(view)),
        ("last event", f"{age(line.event_age_s)} ago" if line.event_age_s == line.event_age_s else UNKNOWN),
    ]
    return found


def _seconds(value: float) -> str:
    if value != value:
        return UNKNOWN
    return f"{1000 * value:.1f} ms" if value < 1 else duration(value)


def _checkpoint(view: RunView) -> str:
    if view.status is None or view.status.checkpoint_iteration is None:
        return "none"
    return f"iteration {view.status.checkpoint_iteration}"


def _width(column: Sequence[tuple[str, str]]) -> int:
    """What a column of names and figures needs."""
    return max(len(name) for name, _ in column) + max(len(value) for _, value in column) + 3


class RunRows(Rows):
    """Rows that show one run."""

    view: RunView | None = None

    def show(self, view: RunView) -> None:
        self.view = view
        self.changed()


class Facts(RunRows):
    """Names and figures, four to a column."""

    DEFAULT_CSS = "Facts { height: 4; }"

    def make(self, width: int, height: int) -> Sequence[Row]:
        if self.view is None:
            return []
        facts = facts_of(self.view)
        columns = [facts[first : first + 4] for first in range(0, len(facts), 4)]
        widths = [_width(column) for column in columns]
        spare = max(0, width - sum(widths)) // len(columns)
        rows: list[Row] = []
        for place in range(4):
            row: Row = []
            for column, least in zip(columns, widths, strict=True):
                name, value = column[place]
                label = max(len(each) for each, _ in column) + 1
                room = least + min(spare, 12) - label - 2
                strong = name in ("lower bound", "upper bound", "gap")
                row += [
                    (f"{name:<{label}}", "quiet"),
                    (f"{value:<{room}.{room}}  ", "title" if strong else "text"),
                ]
            rows.append(row)
        return rows


class Headline(RunRows):
    """The name of the run and how it is, in one row."""

    DEFAULT_CSS = "Headline { height: 1; background: $panel; }"

    def make(self, width: int, height: int) -> Sequence[Row]:
        if self.view is None:
            return [[(" reading …", "quiet")]]
        line = self.view.line
        where = f"{line.backend}, {counted(line.ranks, 'rank')}" if line.ranks and line.backend else ""
        status = self.view.status
        if status is not None and where and status.threads > 1:
            where += f" × {counted(status.threads, 'thread')}"
        silent = f"  silent for {age(line.event_age_s)}" if line.silent else ""
        row: Row = [
            (f" {line.case or self.view.directory.name}", "title"),
            ("  ", ""),
            (f"● {line.state}", STATE_ROLES.get(line.state, "quiet")),
            (silent, "bad"),
            (f"   {where}   {line.run}", "quiet"),
        ]
        return [cut(row, width)]


class Now(RunRows):
    """What the run does now: how far it is, and the stage of the pass."""

    DEFAULT_CSS = "Now { height: 2; }"

    def make(self, width: int, height: int) -> Sequence[Row]:
        if self.view is None:
            return []
        bar = max(8, min(40, width - 60))
        return [cut(row, width) for row in (self._progress(bar), self._stage(bar))]

    def _progress(self, bar: int) -> Row:
        assert self.view is not None
        line, status = self.view.line, self.view.status
        left = f"   {duration(line.eta_s)} left" if line.eta_s == line.eta_s else ""
        if status is not None and status.scenarios and status.phase in ("simulating", "writing", "done"):
            done, total = status.scenarios_done, status.scenarios
            said = f"  scenario {done:,} of {total:,}"
            return [
                ("simulation  ", "quiet"),
                *progress_bar(done / total, bar),
                (said, "text"),
                (left, "title"),
            ]
        done, limit = line.iteration or 0, line.limit
        if limit:
            said = f"  iteration {done:,} of {limit:,}"
            return [
                ("training    ", "quiet"),
                *progress_bar(done / limit, bar),
                (said, "text"),
                (left, "title"),
            ]
        return [("training    ", "quiet"), (counted(done, "iteration"), "text"), (left, "title")]

    def _stage(self, bar: int) -> Row:
        assert self.view is not None
        status, line = self.view.status, self.view.line
        if status is None:
            return []
        if status.pass_name and status.stages and status.stage_number and self.view.running:
            share = status.stage_number / status.stages
            said = f"  stage {status.stage_number} of {status.stages}, node {status.stage}"
            return [(f"{status.pass_name:<12}", "quiet"), *progress_bar(share, bar, "mean"), (said, "text")]
        if status.state == "failed":
            said = str((status.error or {}).get("message", "no reason was written"))
            return [("failed      ", "bad"), (said, "text")]
        if status.state == "lost":
            return [
                ("lost        ", "bad"),
                ("its process is gone; the same command with --resume continues", "text"),
            ]
        if status.state in ("finished", "interrupted"):
            reason = str((status.result or {}).get("termination_reason", "")).replace("_", " ")
            role = STATE_ROLES[status.state]
            said = f"stopped by {reason}" if reason else ""
            if status.state == "interrupted":
                said = "as asked, after a checkpoint; --resume continues"
            return [(f"{status.state:<12}", role), (said, "text")]
        return [(f"{line.phase:<12}", "quiet"), ("between two passes", "quiet")]
