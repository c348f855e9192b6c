"""One run: overview, ranks, messages, settings, system, results."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal, Vertical
from textual.widgets import Footer, Static, TabbedContent, TabPane

from pycobre.app.tui.reading.watched import RunView, WatchedRun
from pycobre.app.tui.screens import requests
from pycobre.app.tui.screens.base import ReadingScreen
from pycobre.app.tui.screens.operation import OperationPane
from pycobre.app.tui.screens.panes import MessagesPane, NewestMessages, RanksBox, RanksPane, SettingsPane
from pycobre.app.tui.widgets.facts import Facts, Headline, Now
from pycobre.app.tui.widgets.plots import METRICS, SCALES, Look, Plot, bounds_picture, metric_picture
from pycobre.app.tui.widgets.trees import SystemTree

__all__ = ["RunScreen"]

PAGES = ("overview", "ranks", "messages", "settings", "system", "results")
ZOOMS = (None, 1000, 200, 50, 10)


class RunScreen(ReadingScreen):
    """Everything that is known of one run, on six pages."""

    BINDINGS = [  # noqa: RUF012
        *(Binding(str(number), f"page('{name}')", show=False) for number, name in enumerate(PAGES, 1)),
        Binding("z", "zoom", "Zoom"),
        Binding("y", "scale", "Scale", show=False),
        Binding("m", "metric", "Metric"),
        *requests.REQUESTS,
        Binding("escape,backspace", "back", "Back", key_display="esc"),
    ]
    DEFAULT_CSS = """
    RunScreen TabPane { padding: 0 1; }
    RunScreen TabbedContent { height: 1fr; }
    RunScreen #problem {
        display: none; height: auto; max-height: 3; padding: 0 1; background: $error 20%; color: $text;
    }
    RunScreen #pictures { layout: horizontal; height: 1fr; }
    RunScreen #upper { width: 2fr; }
    RunScreen #lower { width: 1fr; margin-left: 1; }
    RunScreen #side { display: none; }
    RunScreen #lower Plot { display: none; }
    RunScreen #lower Plot.-chosen { display: block; }
    RunScreen.-tall Now, RunScreen.-tall Facts { margin-bottom: 1; }
    RunScreen.-tall #pictures { layout: vertical; }
    RunScreen.-tall #upper { width: 100%; height: 3fr; }
    RunScreen.-tall #lower { width: 100%; height: 2fr; margin: 1 0 0 0; }
    RunScreen.-tall.-wide #side { display: block; width: 56; margin-left: 2; }
    RunScreen.-tall.-wide #lower Plot { display: block; margin-right: 1; }
    RunScreen #side RanksBox { height: auto; max-height: 50%; margin-bottom: 1; }
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._watched: WatchedRun | None = None
        self.view: RunView | None = None
        self._look = Look()
        self._metric = 0

    def compose(self) -> ComposeResult:
        yield Headline(id="headline")
        yield Static("", id="problem", markup=False)
        with TabbedContent(initial="overview"):
            with TabPane("1 Overview", id="overview"):
                yield Now(id="now")
                yield Facts(id="facts")
                with Container(id="pictures"):
                    with Horizontal(id="upper"):
                        yield Plot(id="bounds")
                        with Vertical(id="side"):
                            yield RanksBox(id="ranks-box")
                            yield NewestMessages(id="newest")
                    with Horizontal(id="lower"):
                        for metric in METRICS:
                            yield Plot(id=f"metric-{metric.key}")
            with TabPane("2 Ranks", id="ranks"):
                yield RanksPane(id="ranks-pane")
            with TabPane("3 Messages", id="messages"):
                yield MessagesPane(id="messages-pane")
            with TabPane("4 Settings", id="settings"):
                yield SettingsPane(id="settings-pane")
            with TabPane("5 System", id="system"):
                yield SystemTree(id="system-tree")
            with TabPane("6 Results", id="results"):
                yield OperationPane(id="operation")
        yield Footer(compact=True, show_command_palette=False)

    def read_files(self) -> object:
        if self._watched is None:
            self._watched = WatchedRun(self.directory, self.watching.clock)
        return self._watched.read()

    def show_files(self, found: object) -> None:
        assert isinstance(found, RunView)
        before, self.view = self.view, found
        if before is None or before.running != found.running:
            self.refresh_bindings()  # draws the last line anew, so not at every reading
        problem = self.query_one("#problem", Static)
        problem.display = found.problem is not None
        problem.update(found.problem or "")
        self.query_one(Headline).show(found)
        self._show_page()

    def _show_page(self) -> None:
        """Only what is in front is drawn."""
        view = self.view
        if view is None:
            return
        page = self.query_one(TabbedContent).active
        if page == "overview":
            self.query_one(Now).show(view)
            self.query_one(Facts).show(view)
            self.query_one(RanksBox).show(view)
            self.query_one(NewestMessages).show(view)
            self._draw()
        elif page == "ranks":
            self.query_one(RanksPane).show(view)
        elif page == "messages":
            self.query_one(MessagesPane).show(view)
        elif page == "settings":
            self.query_one(SettingsPane).show(view)
        elif page == "system":
            self.query_one(SystemTree).show(view.study.get("system"))
        elif page == "results":
            self.query_one(OperationPane).show(view)

    def _draw(self) -> None:
        if self.view is None:
            return
        points = self.view.history.points(self._look.last)
        self.query_one("#bounds", Plot).show(bounds_picture(points, self._look, self.view.line.sense))
        for number, metric in enumerate(METRICS):
            plot = self.query_one(f"#metric-{metric.key}", Plot)
            plot.set_class(number == self._metric, "-chosen")
            plot.show(metric_picture(points, metric, self._look))

    def on_tabbed_content_tab_activated(self) -> None:
        self._show_page()
        self.refresh_bindings()
        active = self.query_one(TabbedContent).active
        target = {
            "ranks": "#ranks-pane",
            "messages": "#messages-pane",
            "settings": "#settings-pane",
            "system": "#system-tree",
            "results": "#quantities",
        }.get(active)
        if target is not None and not self.query_one("Tabs").has_focus:
            self.query_one(target).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are named on the last line where they mean something."""
        running = self.view is not None and self.view.running
        if action in ("zoom", "scale", "metric"):
            return self.query_one(TabbedContent).active == "overview"
        if action in ("checkpoint", "stop", "limit"):
            return running or self.view is None
        return not running if action == "report" else True

    def action_page(self, name: str) -> None:
        if self.query_one("Tabs").has_focus:
            self.set_focus(None)
        self.query_one(TabbedContent).active = name

    def action_zoom(self) -> None:
        """The next smaller number of iterations that shows fewer than now; after the smallest, all."""
        points = self.view.history.points() if self.view is not None else []
        count = points[-1].iteration - points[0].iteration + 1 if points else 0
        fitting = [zoom for zoom in ZOOMS if zoom is None or zoom < count]
        place = fitting.index(self._look.last) if self._look.last in fitting else 0
        last = fitting[(place + 1) % len(fitting)]
        self._look = Look(last, self._look.scale)
        self._draw()
        self.notify("All iterations" if last is None else f"The last {last:,} iterations", timeout=2)

    def action_scale(self) -> None:
        scale = SCALES[(SCALES.index(self._look.scale) + 1) % len(SCALES)]
        self._look = Look(self._look.last, scale)
        self._draw()
        self.notify(f"Scale: {scale}", timeout=2)

    def action_metric(self) -> None:
        self._metric = (self._metric + 1) % len(METRICS)
        self._draw()

    def action_checkpoint(self) -> None:
        if self.view is not None:
            requests.ask_checkpoint(self, self.view)

    def action_stop(self) -> None:
        if self.view is not None:
            requests.ask_stop(self, self.view)

    def action_limit(self) -> None:
        if self.view is not None:
            requests.ask_limit(self, self.view)

    def action_report(self) -> None:
        if self.view is not None:
            requests.open_report(self, self.view)

    def action_back(self) -> None:
        self.watching.back()
