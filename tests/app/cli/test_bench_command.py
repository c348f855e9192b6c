"""`pycobre bench` as a user types it."""

import json
import os
import signal
import subprocess

import pytest
from cli_helpers import PATIENCE_S, PYCOBRE, pycobre

from pycobre.app.cli import main
from pycobre.bench.catalogue import CATALOGUE
from pycobre.bench.driver import Outcome, run_all
from pycobre.bench.report import write_report


def test_the_list_names_them_all(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--list"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == list(CATALOGUE)


def test_an_unknown_name_is_refused_with_the_nearest(capsys):
    assert main(["bench", "policy_lod"]) == 1
    first = capsys.readouterr().err.splitlines()[0]
    assert first == (
        "error: there is no benchmark 'policy_lod'. Did you mean 'policy_load'? "
        "`pycobre bench --list` names them all."
    )


def test_a_quick_run_prints_tables_and_writes_a_report(tmp_path):
    done = pycobre("bench", "policy_load", "--quick", "--output", tmp_path / "found")
    assert done.returncode == 0, done.stderr
    assert "| Policy.load |" in done.stdout
    report = (tmp_path / "found" / "report.md").read_text()
    assert "## policy_load: reading a large policy file" in report
    assert "python -m pycobre.bench.policy_load --quick --rounds 3" in report
    assert "Python " in report
    record = json.loads((tmp_path / "found" / "record.json").read_text())
    assert record["policy_load"]["machine"]["cores"] >= 1
    assert json.loads((tmp_path / "found" / "policy_load.json").read_text())["name"] == "policy_load"


def test_without_the_peer_its_comparison_is_skipped_with_the_reason(tmp_path):
    environ = {"PYCOBRE_PEER_PYTHON": str(tmp_path / "no-python")}
    done = pycobre("bench", "peer-base", "--quick", "--output", tmp_path, **environ)
    assert done.returncode == 0, done.stderr
    assert f"skipped: PYCOBRE_PEER_PYTHON={tmp_path}/no-python cannot import cobre" in done.stdout
    assert "Skipped: PYCOBRE_PEER_PYTHON" in (tmp_path / "report.md").read_text()


def test_a_script_without_its_checkout_is_skipped_and_a_failure_is_told(tmp_path, monkeypatch):
    said = []
    script = CATALOGUE["sddp_scaling"]
    outcomes = run_all([script], tmp_path, None, quick=True, rounds=1, say=said.append)
    assert outcomes[0].skipped.endswith("run it from a checkout of the sources")
    scripts = tmp_path / "benchmarks"
    scripts.mkdir()
    (scripts / script.script).write_text(
        "import sys\nif '--help' in sys.argv: print('--quick')\nelse: 1 / 0\n"
    )
    (failed,) = run_all([script], tmp_path, scripts, quick=True, rounds=1, say=said.append)
    assert isinstance(failed, Outcome)
    assert failed.failed
    assert "ZeroDivisionError" in failed.text
    assert failed.command == "python benchmarks/sddp_scaling.py --quick"
    assert "ZeroDivisionError" in write_report(tmp_path).read_text()
    (scripts / script.script).write_text("print('no options')\n")
    (slow,) = run_all([script], tmp_path, scripts, quick=True, rounds=1, say=said.append)
    assert slow.skipped == "it has no quick form"


ENDLESS = """
import subprocess, sys
if "--help" in sys.argv:
    print("--quick")
else:
    subprocess.run([sys.executable, "-c", "import os, time; life = open(os.environ['LIFE'], 'w'); time.sleep(900)"])
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_benchmark_and_what_it_started(tmp_path, number, code):
    """The grandchild opens a pipe to write; the end of all writers is the end of the file."""
    script = CATALOGUE["sddp_scaling"]
    scripts, life = tmp_path / "benchmarks", tmp_path / "life"
    scripts.mkdir()
    (scripts / "comm_common.py").touch()  # by which a checkout's benchmarks are known
    (scripts / script.script).write_text(ENDLESS)
    os.mkfifo(life)
    command = [*PYCOBRE, "bench", script.name, "--quick", "--output", str(tmp_path / "found")]
    environ = {**os.environ, "LIFE": str(life)}
    with (
        subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL) as process,
        open(life) as living,  # waits until the grandchild is there
    ):
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
        assert living.read() == ""
