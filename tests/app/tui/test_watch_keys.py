"""Every key and the mouse, on every screen; what a person asks of a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import recorded

pytest.importorskip("textual", reason='watching needs the extra: pip install "pycobre[tui]"')

from shown import LARGE, Shown, drive


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    recorded.write_run(tmp_path / "b" / "output")
    recorded.write_run(
        tmp_path / "a", "20250101T000000Z-000001", iteration=60, case="two reservoirs", backend="tcp"
    )
    recorded.write_finished(tmp_path / "c")
    return tmp_path


def rows(app: Shown) -> list[str]:
    """The first words of the lines of the table."""
    return [line.split()[0] for line in app.text.splitlines()[2:] if line.startswith(("    ", "  ◆"))]


def asked(directory: Path) -> list[dict[str, Any]]:
    control = directory / "control.jsonl"
    return [json.loads(line) for line in control.read_text().splitlines()] if control.exists() else []


def test_the_list_is_sorted_turned_round_and_filtered(runs: Path) -> None:
    async def act(app: Shown) -> None:
        assert rows(app) == ["a", "b/output", "c"]
        await app.press("r")
        assert rows(app) == ["c", "b/output", "a"]
        await app.press("s")
        assert "by state ↑" in app.text
        assert rows(app) == ["c", "a", "b/output"]  # finished, training, training
        await app.press("s")
        assert rows(app) == ["c", "b/output", "a"]  # most iterations first
        await app.press("slash", *"reserv tcp")
        assert rows(app) == ["a"]
        await app.press(*"x", "enter")
        assert "No run contains 'reserv tcpx'. Escape shows all." in app.text
        await app.press("escape")
        assert len(rows(app)) == 3
        for _ in range(8):  # round through all columns that are shown, and on
            await app.press("s")
        assert len(rows(app)) == 3

    drive(runs, act)


def test_the_mouse_sorts_opens_and_turns_pages(runs: Path) -> None:
    from pycobre.app.tui.screens.run import RunScreen

    async def act(app: Shown) -> None:
        await app.pilot.click("#table", offset=(30, 0))  # the head of a column
        await app.settle()
        assert "by iteration ↑" in app.text
        await app.pilot.click("#table", offset=(30, 0))
        await app.settle()
        assert "by iteration ↓" in app.text
        await app.pilot.click("#table", offset=(8, 2))
        await app.pilot.click("#table", offset=(8, 2))
        await app.settle()
        assert isinstance(app.app.screen, RunScreen)
        await app.pilot.click("#--content-tab-settings")
        await app.settle()
        assert "training.tree_seed" in app.text
        await app.pilot.click("FooterKey")  # the first key named on the last line
        await app.settle()

    drive(runs, act)


def test_a_run_is_opened_and_its_pages_turned(runs: Path) -> None:
    async def act(app: Shown) -> None:
        await app.press("down", "enter")
        assert "four regions  ● running" in app.text
        said = {
            "2": "slowest: rank 3",
            "3": "asked for the iteration limit 200: done after iteration 90",
            "4": "training.tree_seed",
            "5": "SUDESTE",
            "6": "the tables are written when the run ends",
            "1": "lower bound",
        }
        for key, text in said.items():
            assert text in await app.press(key), key
        assert "pycobre watch" in await app.press("escape")
        await app.press("enter")
        assert "pycobre watch" in await app.press("backspace")

    drive(runs, act)


def test_zoom_scale_and_metric(runs: Path) -> None:
    async def act(app: Shown) -> None:
        await app.press("z")
        assert "115" in app.text.splitlines()[-2] or "80" in app.text.splitlines()[-2]
        assert app.notices[-1] == "The last 50 iterations"
        await app.press("z", "z")
        assert app.notices[-1] == "All iterations"
        await app.press("y", "y")
        assert "Bounds (log)" in app.text
        assert "Gap (log)" in app.text
        for title in ("Seconds per iteration", "LPs per second", "Active cuts", "Gap"):
            assert title in await app.press("m")

    drive(runs, act, open_run=runs / "b" / "output")


def test_requests_ask_first_and_reach_the_run(runs: Path) -> None:
    directory = runs / "b" / "output"

    async def act(app: Shown) -> None:
        await app.press("c", "n")
        await app.press("x", "escape")
        await app.press("i", "escape")
        assert asked(directory) == []
        await app.press("c", "y")
        assert app.notices[-1].startswith("Asked. The run does it when its iteration ends")
        await app.press("x", "enter")  # Yes has the focus
        await app.press("i", "enter")
        await app.press("i", *["backspace"] * 3, *"120", "enter")
        assert "expected a whole number above 124, got '120'" in app.text
        await app.press(*["backspace"] * 3, *"9x", "enter")
        assert "got '9x'" in app.text
        await app.press(*["backspace"] * 2, *"500", "enter")
        assert asked(directory) == [
            {"action": "checkpoint"},
            {"action": "stop"},
            {"action": "iteration_limit", "value": 200},
            {"action": "iteration_limit", "value": 500},
        ]

    drive(runs, act, open_run=directory)


def test_nobody_is_asked_where_nothing_runs_or_nothing_can_be_written(runs: Path) -> None:
    async def ended(app: Shown) -> None:
        from pycobre.app.tui.screens.requests import ask_stop

        ask_stop(app.app.screen, app.app.screen.view)  # the key does nothing
        await app.settle()
        assert app.notices == ["The run is finished: there is nobody to ask."]

    drive(runs, ended, open_run=runs / "c")
    (runs / "a" / "control.jsonl").mkdir()  # not a file

    async def unwritable(app: Shown) -> None:
        await app.press("c", "y")
        assert "cannot write: Is a directory" in app.notices[-1]

    drive(runs, unwritable, open_run=runs / "a")


def test_the_report_is_opened_or_its_place_said(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("pycobre.app.plot.write_report", lambda directory, png: written(directory))

    def written(directory: Path) -> Path:
        page = directory / "report.html"
        page.write_text("<p>")
        return page

    async def act(app: Shown) -> None:
        await app.press("o", "n")
        assert not (runs / "c" / "report.html").exists()
        await app.press("o", "y")
        assert app.notices[-1] == f"The report is {runs / 'c' / 'report.html'}"
        await app.press("o")
        assert app.notices[-1] == f"The report is {runs / 'c' / 'report.html'}"

    drive(runs, act, open_run=runs / "c")


def test_results_are_paged_filtered_and_shown_large(runs: Path) -> None:
    async def act(app: Shown) -> None:
        await app.press("6")
        assert "Storage  1–2 of 3" in app.text
        assert "Storage  3–3 of 3" in await app.press("n")
        assert "Storage  3–3 of 3" in await app.press("n")
        assert "Storage  1–2 of 3" in await app.press("p")
        assert "Storage  1–1 of 3" in await app.press("f")
        assert "Storage  1–2 of 3" in await app.press("f")
        await app.press("slash", *"vermel", "enter")
        assert "A. VERMELHA" in app.text
        assert "FURNAS" not in app.text
        await app.press("slash", *"zzz")
        assert "no name contains 'zzz'" in app.text
        await app.press("escape")
        assert "FURNAS" in app.text
        for title in ("Prices", "Generation by source", "Deficit", "Hydro generation", "Thermal generation"):
            assert f"{title}  " in await app.press("down")
        assert "pycobre watch" in await app.press("escape")

    drive(runs, act, open_run=runs / "c")


def test_runs_are_marked_and_compared(runs: Path) -> None:
    async def act(app: Shown) -> None:
        await app.press("v")
        assert "Mark two to 4 runs with Space" in app.notices[-1]
        await app.press("space", "space")
        assert "◆" not in app.text
        await app.press("space", "down", "down", "v")  # the marked one, and the one under the cursor
        assert "A a   B c" in app.text
        assert "Bounds over iterations" in app.text
        assert "Bounds over time" in await app.press("b")
        await app.press("y", "y")
        assert "(log)" in app.text
        await app.press("z")
        assert app.notices[-1] == "The last 1,000 iterations"
        await app.pilot.resize_terminal(*LARGE)
        await app.settle()
        assert "training.tree_seed" in app.text
        assert "Bounds over iterations" in app.text
        assert "Bounds over time" in app.text
        assert "pycobre watch" in await app.press("escape")

    drive(runs, act)


def test_help_names_every_key(runs: Path) -> None:
    from textual.binding import Binding

    from pycobre.app.tui.app import WatchApp
    from pycobre.app.tui.screens.compare import CompareScreen
    from pycobre.app.tui.screens.manual import TEXT
    from pycobre.app.tui.screens.operation import OperationPane
    from pycobre.app.tui.screens.run import RunScreen
    from pycobre.app.tui.screens.runs import RunsScreen

    told = {word.strip(",") for _, lines in TEXT for keys, _ in lines for word in keys.split()}
    said = {
        "slash": "/",
        "question_mark": "?",
        "escape": "Esc",
        "space": "Space",
        "f5": "F5",
        "ctrl+c": "Ctrl-C",
    }
    for owner in (WatchApp, RunsScreen, RunScreen, CompareScreen, OperationPane):
        for binding in owner.BINDINGS:
            assert isinstance(binding, Binding)
            keys = binding.key.split(",")
            assert any(said.get(key, key) in told or key in "123456" for key in keys), (
                owner.__name__,
                binding.key,
            )

    async def act(app: Shown) -> None:
        assert "Everywhere" in await app.press("question_mark")
        await app.press("end")
        assert "silent" in app.text
        await app.press("escape")
        assert "pycobre watch" in app.text

    drive(runs, act)


def test_the_theme_is_changed_and_the_app_left(runs: Path) -> None:
    async def act(app: Shown) -> None:
        assert app.app.current_theme.dark
        await app.press("t")
        assert not app.app.current_theme.dark
        await app.press("t")
        assert app.app.current_theme.dark
        await app.pilot.press("q")

    assert drive(runs, act).return_value == 0

    async def interrupt(app: Shown) -> None:
        await app.pilot.press("ctrl+c")

    assert drive(runs, interrupt).return_value == 0
    assert asked(runs / "b" / "output") == []
