"""Without a terminal: lines of text from the command line, and how long histories are read."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import recorded

from pycobre.app.cli import main
from pycobre.app.tui import session
from pycobre.app.tui.lines import watch_lines
from pycobre.app.tui.reading import event_file
from pycobre.app.tui.reading.event_file import EventFile
from pycobre.app.tui.reading.listing import find_runs
from pycobre.app.tui.reading.points import RECENT, SAMPLED, History, point_of


def point(number: int):  # type: ignore[no-untyped-def]
    found = point_of({"at": 1.0, **recorded.iteration(number).to_dict()})
    assert found is not None
    return found


def test_a_run_is_followed_in_lines_until_it_ends(tmp_path: Path) -> None:
    run = recorded.write_run(tmp_path / "run")
    stream, waits = io.StringIO(), 0

    def wait(seconds: float) -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            recorded.write_run(run, iteration=125)
        if waits == 3:
            recorded.write_run(run, iteration=126, state="finished", phase="done", eta_s=None)

    watch_lines([tmp_path], stream, clock=lambda: recorded.NOW, wait=wait)
    lines = stream.getvalue().splitlines()
    assert lines[0].split()[:3] == ["run", "state", "iteration"]
    assert lines[1].split()[:3] == ["run", "training", "124/200"]
    assert lines[2].startswith(
        "training, iteration 124 of 200  lower bound 999,871,875  upper bound 1,022,145,046"
    )
    assert [line.split()[2] for line in lines[2:4]] == ["124", "125"]  # nothing where nothing has changed
    assert lines[-1] == "finished"
    assert waits == 3


def test_the_command_prints_lines_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.write_finished(tmp_path / "done")
    assert main(["watch", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "finished" in out
    assert "\x1b" not in out
    (tmp_path / "empty").mkdir()
    assert main(["watch", str(tmp_path / "empty"), "--once"]) == 0
    assert "no run here or below" in capsys.readouterr().out
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "there is no such directory. Check the path." in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_a_sentence_under_the_table(tmp_path: Path) -> None:
    recorded.write_run(tmp_path / "torn")
    (tmp_path / "torn" / "status.json").write_text("{")
    stream = io.StringIO()
    watch_lines([tmp_path], stream, once=True, clock=lambda: recorded.NOW)
    assert "unreadable" in stream.getvalue()
    assert "status.json: not valid JSON" in stream.getvalue()


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "has_terminal", lambda: True)
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    assert main(["watch", str(tmp_path)]) == 1
    assert 'install it with pip install "pycobre[tui]"' in capsys.readouterr().err
    assert main(["run", str(tmp_path), "--tui"]) == 1
    assert 'install it with pip install "pycobre[tui]"' in capsys.readouterr().err


def test_a_run_inside_needs_a_terminal_and_no_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("textual", reason='watching needs the extra: pip install "pycobre[tui]"')
    assert main(["run", str(tmp_path), "--tui"]) == 1
    assert "--tui: expected a terminal, got none" in capsys.readouterr().err
    assert main(["run", str(tmp_path), "--tui", "--format", "json"]) == 1
    assert "--tui: expected --format human, got json" in capsys.readouterr().err
    monkeypatch.setenv("PMI_SIZE", "3")
    assert main(["run", str(tmp_path), "--tui"]) == 1
    assert "got one of a job: PMI_SIZE announces 3 ranks" in capsys.readouterr().err


def test_terminals_that_cannot_show_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    for encoding, term, shown in (
        ("utf-8", "xterm", True),
        ("utf-8", "dumb", False),
        ("latin-1", "xterm", False),
    ):
        monkeypatch.setattr(sys, "stdin", Stream(io.BytesIO(), encoding=encoding))
        monkeypatch.setattr(sys, "stdout", Stream(io.BytesIO(), encoding=encoding))
        monkeypatch.setenv("TERM", term)
        assert session.has_terminal() is shown


def test_lines_need_neither_textual_nor_a_solver_nor_tables(tmp_path: Path) -> None:
    recorded.write_run(tmp_path / "run")
    code = (
        "import sys, io; from pathlib import Path; from pycobre.app.tui.lines import watch_lines\n"
        "watch_lines([Path(sys.argv[1])], io.StringIO(), once=True)\n"
        "print(sorted({'textual', 'rich', 'pyarrow', 'highspy', 'pydantic_core'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_of_a_long_history_the_end_and_a_sample_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file is read whole and in part: the end is equal, the sample is of it, rare events are all found."""
    run = recorded.write_run(tmp_path, iteration=3000)
    warning = {"kind": "warning", "message": "early", "at": 5.0, "run": "x", "worker_id": 0, "time_s": 0.0}
    lines = (run / "events.jsonl").read_text().splitlines()
    lines.insert(700, json.dumps(warning, separators=(",", ":")))
    (run / "events.jsonl").write_text("\n".join(lines) + "\n")
    whole = EventFile(run)
    whole.read()
    every = whole.history.points()
    monkeypatch.setattr(event_file, "END_BYTES", 1 << 15)
    monkeypatch.setattr(event_file, "SCAN_BYTES", 1 << 17)
    part = EventFile(run)
    part.read()
    assert part.unread_share > 0
    points = part.history.points()
    assert [each.iteration for each in points] == sorted({each.iteration for each in points})
    assert set(points) <= set(every)
    assert 300 < len(points) < len(every)
    assert points[0].iteration == 1
    assert part.history.points(30) == whole.history.points(30)
    while part.unread_share > 0:
        part.read()
    assert part.rare == whole.rare
    assert "early" in [event.get("message") for event in part.rare]
    with (run / "events.jsonl").open(
        "a"
    ) as file:  # what is appended is read on, a torn line only when it is whole
        line = json.dumps({"at": 6.0, **recorded.iteration(3001).to_dict()}) + "\n"
        file.write(line[:40])
        file.flush()
        part.read()
        assert part.history.latest == points[-1]
        file.write(line[40:])
    part.read()
    assert part.history.latest is not None
    assert part.history.latest.iteration == 3001


def test_memory_of_a_history_is_bounded_and_a_resumed_run_replaces_what_it_repeats() -> None:
    history = History()
    for number in range(1, 30_001):
        history.add(point(number))
    points = history.points()
    assert len(points) <= RECENT + SAMPLED
    assert [each.iteration for each in points[-RECENT:]] == list(range(30_001 - RECENT, 30_001))
    assert points[0].iteration == 1
    again = point(29_000)._replace(lower=-1.0)
    history.add(again)
    assert history.latest == again
    history.add(point(5))
    assert [each.iteration for each in history.points()][-1] == 5
    assert all(each.iteration < 5 for each in history.points()[:-1])


def test_runs_are_found_at_any_depth_and_links_are_not_followed(tmp_path: Path) -> None:
    recorded.write_run(tmp_path / "a" / "b" / "c" / "output")
    recorded.write_run(tmp_path / "a" / "b" / "c" / "output" / "previous" / "20200101T000000Z-aaaaaa")
    recorded.write_run(tmp_path / ".hidden" / "output")
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    found = find_runs([tmp_path])
    inside = {str(path.relative_to(tmp_path)) for path in found.directories}
    assert inside == {"a/b/c/output", "a/b/c/output/previous/20200101T000000Z-aaaaaa"}
    assert found.complete
