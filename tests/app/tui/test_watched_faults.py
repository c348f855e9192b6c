"""Torn and foreign files, a run that dies, a directory that vanishes: sentences, and what was known stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import recorded

pytest.importorskip("textual", reason='watching needs the extra: pip install "pycobre[tui]"')

from shown import Shown, drive

from pycobre.app.tui.reading.watched import WatchedRun


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return recorded.write_run(tmp_path / "run")


def tear(run: Path, name: str, text: str) -> None:
    (run / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("status.json", '{"schema": 1, "state": "run', "status.json: not valid JSON"),
        ("status.json", "[1, 2]", "status.json: expected a JSON object, got list"),
        ("status.json", '{"schema": 9}', "status.json: expected schema 1, got another"),
        ("status.json", '{"schema": 1, "colour": "blue"}', "status.json: expected the fields of a status"),
        ("run.json", "\x00\x01", "run.json: not valid JSON"),
        ("study.json", "{", "study.json: not valid JSON"),
        ("metadata.json", '"text"', "metadata.json: expected a JSON object, got str"),
        (
            "events.jsonl",
            "a letter to somebody\n" * 3,
            "events.jsonl: none of its lines is an event of pycobre",
        ),
    ],
)
def test_a_torn_or_foreign_file_is_a_sentence(name: str, text: str, said: str, run: Path) -> None:
    async def act(app: Shown) -> None:
        assert "lower bound 999,871,875" in app.text
        tear(run, name, text)
        await app.press("f5")
        assert said.replace(" ", "") in "".join(app.text.split())
        assert "lower bound 999,871,875" in app.text  # what was seen stays

    drive(run, act, open_run=run)

    async def fresh(app: Shown) -> None:
        for key in "123456":
            await app.press(key)
        await app.press("escape")  # the list shows it too

    drive(run, fresh, open_run=run)


def test_every_field_of_a_status_may_have_a_wrong_type(run: Path) -> None:
    whole = json.loads((run / "status.json").read_text())
    watched = WatchedRun(run, lambda: recorded.NOW)
    for name in whole:
        if name == "schema":
            continue
        tear(run, "status.json", json.dumps({**whole, name: {"a": [1]} if name != "error" else 7}))
        view = watched.read()
        if name in ("result",):  # any object is one
            continue
        assert view.problem is not None, name
        assert name in view.problem


def test_lists_of_a_status_may_hold_anything(run: Path) -> None:
    """What a list holds is looked at where it is shown."""
    whole = json.loads((run / "status.json").read_text())
    odd = [None, 3, "x", {"rank": 0}, {"solve_s": "long", "wait_s": None}]
    tear(
        run,
        "status.json",
        json.dumps({**whole, "seconds_per_rank": odd, "warnings": [1, {}], "sense": "up\x1b[2J"}),
    )

    async def act(app: Shown) -> None:
        for key in "123456":
            await app.press(key)
        assert "rank 0" in await app.press("2")

    drive(run, act, open_run=run)


def test_lists_of_numbers_may_hold_anything_too(run: Path) -> None:
    whole = json.loads((run / "status.json").read_text())
    tear(run, "status.json", json.dumps({**whole, "memory_per_rank": ["much", None]}))

    async def act(app: Shown) -> None:
        assert "memory" in app.text

    drive(run, act, open_run=run)


def test_events_of_odd_content_break_nothing(run: Path) -> None:
    lines = [
        '{"kind": "iteration_finished"}',
        '{"kind": "iteration_finished", "iteration": 125, "lower_bound": "high", "gap": null, "elapsed_s": [1]}',
        '{"kind": "warning", "message": {"a": 1}, "at": "now"}',
        '{"kind": "checkpoint_written", "iteration": null}',
        '{"kind": "simulation_finished"}',
        '{"kind": "run_failed", "error": "x"}',
        '{"kind": "run_finished"}',
        '{"kind": "warning", "message": "\\u001b[31mred\\u0007", "at": 1e300}',
        "{" + '"a":' * 30_000 + "1",
        "x" * 200_000,
        '{"kind": "warning", "message": "torn',
    ]
    with (run / "events.jsonl").open("a") as file:
        file.write("\n".join(lines))

    async def act(app: Shown) -> None:
        assert "[31mred" in await app.press("3")
        assert "\x1b" not in app.text

    drive(run, act, open_run=run)


def test_a_run_that_dies_is_lost_and_one_that_falls_silent_is_told(run: Path) -> None:
    now = [recorded.NOW]

    async def act(app: Shown) -> None:
        assert "● running" in app.text
        now[0] += 600
        assert "silent for 10 min" in await app.press("f5")
        (run / ".lock").write_text("")  # the process is gone
        assert "● lost" in await app.press("f5")
        assert "its process is gone; the same command with --resume continues" in app.text
        assert "lost" in await app.press("escape")

    drive(run, act, open_run=run, clock=lambda: now[0])


def test_a_directory_that_vanishes_is_a_sentence(run: Path) -> None:
    async def act(app: Shown) -> None:
        await app.press("2", "1")
        shutil.rmtree(run)
        await app.press("f5")
        assert "the directory has vanished; this is what was seen last" in " ".join(app.text.split())
        assert "lower bound 999,871,875" in app.text
        await app.press(*"23456c", "n", "escape")
        for _ in range(5):
            await app.press("f5")
        assert "No run below" in app.text

    drive(run.parent, act, open_run=run)


def test_results_that_cannot_be_read_are_a_sentence(tmp_path: Path) -> None:
    run = recorded.write_finished(tmp_path / "run")
    (run / "simulation" / "hydros.parquet").write_bytes(b"PAR1 nothing")

    async def act(app: Shown) -> None:
        assert "Storage: cannot be shown" in await app.press("6")
        assert "SUDESTE" in await app.press("down")
        shutil.rmtree(run / "simulation")
        assert "cannot be shown" in await app.press("down", "down")

    drive(run, act, open_run=run)


def test_another_run_in_the_same_directory_begins_anew(run: Path) -> None:
    async def act(app: Shown) -> None:
        assert "iteration 124 of 200" in app.text
        (run / "events.jsonl").unlink()
        recorded.write_run(run, "20260101T000000Z-ffffff", iteration=3)
        assert "iteration 3 of 200" in await app.press("f5")
        assert [point.iteration for point in app.app.screen.view.history.points()] == [1, 2, 3]

    drive(run, act, open_run=run)
