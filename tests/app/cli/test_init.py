"""`pycobre init`: examples and synthetic systems as directories that run."""

from __future__ import annotations

import json

from pycobre.app.cli import main
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import load_case


def test_without_a_name_it_lists_them(capsys):
    assert main(["init"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown and e.summary in shown for name, e in EXAMPLES.items())
    assert "synthetic" in shown


def test_the_first_command_of_the_readme(tmp_path, capsys):
    demo = tmp_path / "demo"
    assert main(["init", "one-reservoir", str(demo)]) == 0
    shown = capsys.readouterr().out
    assert "12 months · 1 block · 12 openings · 1 hydro · 3 thermals · 1 bus" in shown
    assert f"next: pycobre run {demo}" in shown
    assert (demo / "README.md").read_text().startswith("# One reservoir")
    assert main(["validate", str(demo)]) == 0
    capsys.readouterr()
    assert main(["run", str(demo), "--iterations", "3", "--scenarios", "5", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 3


def test_the_directory_defaults_to_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "cascade"]) == 0
    assert load_case(tmp_path / "cascade") == EXAMPLES["cascade"].build()


def test_a_synthetic_system_of_the_size_asked_for(tmp_path, capsys):
    target = tmp_path / "synthetic"
    sizes = ["--hydros", "4", "--thermals", "2", "--stages", "3", "--openings", "2", "--seed", "9"]
    assert main(["init", "synthetic", str(target), *sizes]) == 0
    assert "3 months · 3 blocks · 2 openings · 4 hydros · 2 thermals" in capsys.readouterr().out
    assert len(load_case(target).hydros) == 4


def test_nothing_is_written_over(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("keep")
    assert main(["init", "cascade", str(tmp_path)]) == 2
    assert (
        "expected a new or empty directory, got a directory with files in it. Choose another name."
        in capsys.readouterr().err
    )
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_wrong_names_and_sizes(tmp_path, capsys):
    assert main(["init", "itaipu", str(tmp_path / "x")]) == 1
    assert "no example 'itaipu'" in capsys.readouterr().err
    assert main(["init", "cascade", str(tmp_path / "x"), "--hydros", "4"]) == 1
    assert "--hydros is for synthetic systems only" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
