"""Every screen at two sizes, as text that a person can read in `snapshots/`."""

from __future__ import annotations

from pathlib import Path

import pytest
import recorded

pytest.importorskip("textual", reason='watching needs the extra: pip install "pycobre[tui]"')

from shown import LARGE, SMALL, Shown, check_snapshot, drive

#: On the large terminal in `.ci/run` only; one of them always, below.
SIZES = pytest.mark.parametrize(
    "size", [pytest.param(SMALL, id="80x24"), pytest.param(LARGE, id="140x45", marks=pytest.mark.ci)]
)

#: Name, run to open at once, keys.
SCREENS = {
    "list": ("", ("f5",)),
    "filtered": ("", ("slash", *"four fin", "enter")),
    "run": ("new/output", ()),
    "zoomed": ("new/output", ("z", "z", "m", "m")),
    "ranks": ("new/output", ("2",)),
    "messages": ("new/output", ("3",)),
    "settings": ("new/output", ("4",)),
    "system": ("new/output", ("5",)),
    "results": ("done/output", ("6",)),
    "sources": ("done/output", ("6", "down", "down")),
    "one-plot": ("done/output", ("6", "f", "n")),
    "help": ("new/output", ("question_mark",)),
    "question": ("new/output", ("x",)),
    "limit": ("new/output", ("i",)),
    "compare": ("", ("space", "down", "space", "v")),
    "failed": ("failed", ()),
    "simulating": ("simulating", ()),
    "problem": ("problem", ()),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("recorded") / "runs"
    write_all(found)
    return found


@pytest.fixture(autouse=True)
def beside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are short, and what an environment says about terminals does not reach the screens."""
    monkeypatch.chdir(root.parent)
    for name in ("NO_COLOR", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_ANIMATIONS", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


HERE = Path("runs")


def write_all(root: Path) -> None:
    recorded.write_run(root / "new" / "output")
    recorded.write_finished(root / "done" / "output")
    recorded.write_run(
        root / "still",
        "20251201T000000Z-00ff00",
        event_age_s=900.0,
        case="two reservoirs",
        backend="mpi",
        ranks=64,
    )
    error = {"kind": "SolverError", "message": "stage 12: the LP is infeasible", "fields": {}, "rank": 2}
    recorded.write_run(
        root / "failed", "20251202T000000Z-00ff01", event_age_s=90_000.0, state="failed", error=error, eta_s=None,
        iteration=17, backend="tcp", ranks=2,
    )  # fmt: skip
    recorded.write_run(
        root / "simulating", "20251203T000000Z-00ff02", phase="simulating", scenarios=2000, scenarios_done=768,
        pass_name="simulation", stage="1931-02", stage_number=2, iteration=200, eta_s=33.0, event_age_s=12.0,
    )  # fmt: skip
    recorded.write_problem(root / "problem")


@SIZES
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_recorded(name: str, size: tuple[int, int]) -> None:
    directory, keys = SCREENS[name]

    async def act(app: Shown) -> None:
        await app.press(*keys)
        check_snapshot(name, size, app.text)

    drive(HERE, act, size, open_run=HERE / directory if directory else None)


def test_there_is_a_recording_of_every_screen_and_no_other() -> None:
    from shown import SNAPSHOTS

    there = {path.name for path in SNAPSHOTS.glob("*.txt")}
    assert there == {f"{name}.{w}x{h}.txt" for name in SCREENS for w, h in (SMALL, LARGE)}


def test_without_colours_and_in_light_ones_the_text_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def act(app: Shown) -> None:
        check_snapshot("run", SMALL, app.text)

    drive(HERE, act, open_run=HERE / "new" / "output")
    monkeypatch.delenv("NO_COLOR")
    drive(HERE, act, open_run=HERE / "new" / "output", light=True)


def test_another_size_gives_another_layout_and_back() -> None:
    async def act(app: Shown) -> None:
        await app.pilot.resize_terminal(*LARGE)
        await app.settle()
        check_snapshot("run", LARGE, app.text)
        await app.pilot.resize_terminal(20, 6)  # too small for anything; nothing breaks
        await app.settle()
        await app.pilot.resize_terminal(*SMALL)
        await app.settle()
        check_snapshot("run", SMALL, app.text)

    drive(HERE, act, open_run=HERE / "new" / "output")


def test_the_list_says_what_to_do_where_there_is_none(tmp_path: Path) -> None:
    async def act(app: Shown) -> None:
        assert "No run below" in app.text
        assert "pycobre run CASE --output DIR" in app.text
        recorded.write_run(tmp_path / "late")
        for _ in range(5):
            await app.press("f5")
        assert "late" in app.text

    drive(tmp_path, act)
