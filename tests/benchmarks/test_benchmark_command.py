"""`python -m benchmarks` as a user types it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from benchmarks.__main__ import main
from benchmarks.harness.catalogue import CATALOGUE, ROOT
from benchmarks.harness.driver import Outcome, run_all
from benchmarks.harness.report import write_report

PATIENCE_S = 120
COMMAND = [sys.executable, "-m", "benchmarks"]


def benchmarks(*words, **environ):
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environ},
    )


def checkout(directory, source):
    """A checkout whose `sddp_scaling` is another program."""
    package = directory / "benchmarks"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "sddp_scaling.py").write_text(source)
    return directory


def test_the_list_names_them_all(capsys):
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == list(CATALOGUE)


def test_an_unknown_name_is_refused_with_the_nearest(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["policy_lod"])
    assert capsys.readouterr().err.splitlines()[-1] == (
        "python -m benchmarks: error: there is no benchmark 'policy_lod'. Did you mean 'policy_load'? "
        "`python -m benchmarks --list` names them all."
    )


def test_a_quick_run_prints_tables_and_writes_a_report(tmp_path):
    done = benchmarks("policy_load", "--quick", "--rounds", 2, "--output", tmp_path / "found")
    assert done.returncode == 0, done.stderr
    assert "| Policy.load |" in done.stdout
    report = (tmp_path / "found" / "report.md").read_text()
    assert "## policy_load: reading a large policy file" in report
    assert "python -m benchmarks.policy_load --quick --rounds 2" in report
    assert "Python " in report
    record = json.loads((tmp_path / "found" / "record.json").read_text())
    assert record["policy_load"]["machine"]["cores"] >= 1
    assert json.loads((tmp_path / "found" / "policy_load.json").read_text())["name"] == "policy_load"


def test_without_cobre_its_comparison_is_skipped_with_the_reason(tmp_path):
    environ = {"PYCOBRE_COBRE_PYTHON": str(tmp_path / "no-python")}
    done = benchmarks("cobre-base", "--quick", "--output", tmp_path, **environ)
    assert done.returncode == 0, done.stderr
    assert f"skipped: PYCOBRE_COBRE_PYTHON={tmp_path}/no-python cannot import cobre" in done.stdout
    assert "Skipped: PYCOBRE_COBRE_PYTHON" in (tmp_path / "report.md").read_text()


def test_a_failure_is_told_and_the_others_run(tmp_path):
    said: list[str] = []
    chosen = [CATALOGUE["sddp_scaling"]]
    root = checkout(tmp_path, "import sys\nif '--help' in sys.argv: print('--quick')\nelse: 1 / 0\n")
    (failed,) = run_all(chosen, tmp_path, root, quick=True, rounds=1, say=said.append)
    assert isinstance(failed, Outcome)
    assert failed.failed
    assert "ZeroDivisionError" in failed.text
    assert failed.command == "python -m benchmarks.sddp_scaling --quick"
    assert "ZeroDivisionError" in write_report(tmp_path).read_text()
    root = checkout(tmp_path, "import no_such_module\n")
    (failed,) = run_all(chosen, tmp_path, root, quick=True, rounds=1, say=said.append)
    assert failed.failed
    assert "No module named 'no_such_module'" in failed.text
    root = checkout(tmp_path, "print('no options')\n")
    (long,) = run_all(chosen, tmp_path, root, quick=True, rounds=1, say=said.append)
    assert long.skipped == "it has no quick form"


ENDLESS = """
import subprocess, sys
if "--help" in sys.argv:
    print("--quick")
else:
    subprocess.run([sys.executable, "-c", "import os, time; life = open(os.environ['LIFE'], 'w'); time.sleep(900)"])
"""


FROM_HERE = """
import sys
from pathlib import Path
from benchmarks.__main__ import main
try:
    sys.exit(main(sys.argv[2:], Path(sys.argv[1])))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_benchmark_and_what_it_started(tmp_path, number, code):
    """The grandchild opens a pipe to write; the end of all writers is the end of the file."""
    root, life = checkout(tmp_path, ENDLESS), tmp_path / "life"
    os.mkfifo(life)
    command = [sys.executable, "-c", FROM_HERE, str(root), "sddp_scaling", "--quick"]
    environ = {**os.environ, "LIFE": str(life), "PYTHONPATH": str(ROOT)}
    with (
        subprocess.Popen(
            [*command, "--output", str(tmp_path / "found")],
            cwd=tmp_path / "benchmarks",
            env=environ,
            stdout=subprocess.DEVNULL,
        ) as process,
        open(life) as living,  # waits until the grandchild is there
    ):
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
        assert living.read() == ""
