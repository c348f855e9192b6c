"""The dispatcher: which command runs, what an exception becomes, and that nothing is loaded in vain."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pycobre
from pycobre import errors
from pycobre.app.cli import COMMANDS, main, version
from pycobre.app.failures import describe, exit_code
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import write_case


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown and purpose.split(",")[0] in shown for name, purpose in COMMANDS.items())
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_module_and_its_help(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"pycobre {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "usage", "text", "hint"),
    [
        ([], "pycobre [", "COMMAND", "`pycobre --help` lists what there is"),
        (["fly"], "pycobre [", "invalid choice: 'fly'", "`pycobre --help` lists what there is"),
        (["rnu", "x"], "pycobre [", "invalid choice: 'rnu'", "did you mean `pycobre run`?"),
        (["run", "x", "--wrokers=2"], "pycobre run", "--wrokers", "did you mean `--workers`?"),
        (["run", "x", "y"], "pycobre run", "unrecognized arguments: y", "`pycobre run --help` lists"),
        (
            ["run", "x", "--iterations", "z"],
            "pycobre run",
            "invalid int value: 'z'",
            "`pycobre run --help` lists",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_hint(words, usage, text, hint, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage: {usage}")
    error, last = shown.splitlines()[-2:]
    assert error.startswith("error: ")
    assert text in error
    assert last.startswith("hint: ")
    assert hint in last


def test_a_reader_that_goes_away_ends_a_command_as_it_ends_others():
    """Without a word, and with the code of a closed pipe: what was not read was not a success."""
    command = [sys.executable, "-m", "pycobre", "init"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        process.stdout = None
        _, said = process.communicate(timeout=250)
    assert (process.returncode, said) == (141, "")


def test_version(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"{pycobre.__version__}\n"


@pytest.mark.parametrize(
    "command", [["-m", "pycobre", "version"], ["-c", "from pycobre.app.cli import main; main()", "version"]]
)
def test_both_ways_to_start_it(command):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=250, check=True)
    assert done.stdout == f"{pycobre.__version__}\n"


@pytest.mark.parametrize(
    ("error", "code", "hint"),
    [
        (errors.CaseError("bad case"), 1, "pycobre validate CASE"),
        (errors.OptionError("no such option"), 1, "--help"),
        (errors.OutputError("no results"), 2, "pycobre run"),
        (FileNotFoundError(2, "No such file", "x"), 2, "check that the path exists"),
        (errors.SolverError("stuck", bundle="lp.bundle"), 3, "pycobre replay lp.bundle"),
        (errors.SolverError("stuck"), 3, "why-did-my-run-stop"),
        (errors.InvalidBackend("x", ("local",)), 4, "pycobre doctor"),
        (errors.CollectiveFailed("barrier", 0, "rank 1 died", rank=1), 4, "the rank named above"),
        (errors.WorkerError(1, -9, None), 4, "--resume goes on from the newest checkpoint"),
        (errors.WorkerError(1, 7, None), 4, "the rank named above"),
        (errors.WorkerError(1, 1, IndexError("a bug")), 4, "the rank named above"),
        (errors.InitializationFailed("tcp", "wrong token"), 4, "why-did-my-run-stop"),
        (
            errors.WorkerError(1, None, errors.SolverError("stuck", bundle="lp.bundle")),
            3,
            "pycobre replay lp.bundle",
        ),
        (errors.WorkerError(0, None, errors.OutputError("disk full")), 2, "name another file or directory"),
        (errors.WorkerError(1, None, errors.CaseError("bad case")), 1, "pycobre validate CASE"),
        (errors.ProblemError("no root"), 1, "building-problems"),
    ],
)
def test_an_exception_becomes_an_exit_code_and_a_hint(error, code, hint, monkeypatch, capsys):
    def fail(arguments):
        raise error

    monkeypatch.setattr(version, "run", fail)
    assert main(["version"]) == code
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == ("error: x: No such file." if isinstance(error, OSError) else f"error: {error}")
    assert len(shown) == 2
    assert shown[1].startswith("hint: ")
    assert hint in shown[1]


def test_an_interrupt_ends_with_130(monkeypatch, capsys):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(version, "run", interrupt)
    assert main(["version"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_bug_is_not_dressed_up(monkeypatch):
    def fail(arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(version, "run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["version"])


def test_help_loads_neither_numpy_nor_a_command():
    code = (
        "import sys, json\nfrom pycobre.app.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: print('@' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=True
    )
    loaded = set(json.loads(done.stdout.rpartition("@")[2]))
    assert not loaded & {
        "numpy",
        "pyarrow",
        "highspy",
        "mpi4py",
        "rich",
        "pycobre.comm",
        "pycobre.app.cli.doctor",
    }


def test_every_exception_has_a_code_and_a_text():
    for name in errors.__all__:
        error = getattr(errors, name).__new__(getattr(errors, name))
        error.__dict__.update(inner=None, findings=(), bundle=None)
        assert exit_code(error) in (1, 2, 3, 4)
    assert exit_code(KeyboardInterrupt()) == 130
    assert describe(errors.CobreError("odd")).startswith("error: odd\nhint: ")


def test_restarts_without_workers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_case(EXAMPLES["one-reservoir"].build(), tmp_path / "case")
    assert main(["run", str(tmp_path / "case"), "--restarts", "1"]) == 1
    assert "--restarts: expected 0 without --workers, got 1." in capsys.readouterr().err
