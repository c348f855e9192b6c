"""validate, simulate, export, compare, report and verify, as users type them."""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_helpers import pycobre

from pycobre.app.cli import main

SHORT = ("--iterations", "3", "--scenarios", "4", "--quiet")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cases") / "lake"
    assert pycobre("init", "one-reservoir", directory).returncode == 0
    assert pycobre("run", directory, *SHORT).returncode == 0
    return directory


def test_validate_says_valid_or_everything_that_is_wrong(case: Path, tmp_path: Path) -> None:
    good = pycobre("validate", case)
    assert (good.returncode, good.stdout.splitlines()[0]) == (0, f"{case}: valid")
    broken = tmp_path / "broken"
    assert pycobre("init", "one-reservoir", broken).returncode == 0
    buses = broken / "system" / "buses.json"
    buses.write_text(buses.read_text().replace('"name"', '"nmae"'))
    (broken / "penalties.json").unlink()
    bad = pycobre("validate", broken)
    assert bad.returncode == 1
    assert "penalties.json" in bad.stdout
    assert "Did you mean 'name'" in bad.stdout
    document = json.loads(pycobre("validate", broken, "--format", "json").stdout)
    assert document["valid"] is False
    assert {finding["file"] for finding in document["findings"]} >= {"penalties.json", "system/buses.json"}
    assert set(document["findings"][0]) >= {"kind", "file", "where", "entity", "value", "rule", "suggestion"}


def test_compare_tells_equal_runs_from_different_ones(case: Path, tmp_path: Path) -> None:
    assert pycobre("run", case, *SHORT, "--output", tmp_path / "same", "--workers", 2).returncode == 0
    assert pycobre("run", case, *SHORT, "--output", tmp_path / "other", "--seed", 7).returncode == 0
    same = pycobre("compare", case / "output", tmp_path / "same", "--bits")
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "the two runs are the same, bit for bit")
    other = pycobre("compare", case / "output", tmp_path / "other", "--bits")
    assert other.returncode == 1
    assert "convergence" in other.stdout
    assert "differs by up to" in other.stdout
    assert "training.tree_seed 42 against 7" in " ".join(other.stdout.split())
    assert re.search(r"differs by up to \S+ \(\w+\s+of\s+scenario\s+\d+,\s+stage\s+\d+", other.stdout)
    assert max(map(len, other.stdout.splitlines())) <= 80
    changed = tmp_path / "changed"
    assert pycobre("init", "one-reservoir", changed).returncode == 0
    hydros = changed / "system" / "hydros.json"
    hydros.write_text(hydros.read_text().replace('"max_storage_hm3": 900', '"max_storage_hm3": 901'))
    assert pycobre("run", changed, *SHORT).returncode == 0
    files = pycobre("compare", case / "output", changed / "output", "--bits").stdout
    assert re.search(r"^input_hash .* against \S+: system/hydros\.json$", files, re.MULTILINE)
    wrong = pycobre("compare", case, changed, "--bits")
    assert wrong.returncode == 2
    assert (
        f"{case}: this is a case; its results are in {case / 'output'}. Give that directory." in wrong.stderr
    )


def test_compare_tells_what_a_run_costs_more(case: Path, tmp_path: Path) -> None:
    assert pycobre("run", case, *SHORT, "--output", tmp_path / "other", "--seed", 7).returncode == 0
    told = pycobre("compare", case / "output", tmp_path / "other")
    assert told.returncode == 0, told.stderr
    assert re.search(r"^  total cost: mean, \$ +\S+ +\S+ +\S+", told.stdout, re.MULTILINE)
    assert re.search(r"B costs \S+ \$ (more|less) \(± \S+ \$, 95 %\)", told.stdout)
    assert max(map(len, told.stdout.splitlines()[2:-1])) <= 100
    document = json.loads(
        pycobre("compare", case / "output", tmp_path / "other", "--format", "json", "--limit", 5).stdout
    )
    assert len(document["quantities"]) == 5
    same = pycobre("compare", case / "output", case / "output").stdout
    assert "The two runs cost the same." in same
    assert " *" not in same


def test_diff_says_what_changed_between_two_cases(case: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    assert pycobre("init", "one-reservoir", changed).returncode == 0
    hydros = changed / "system" / "hydros.json"
    hydros.write_text(hydros.read_text().replace('"max_storage_hm3": 900', '"max_storage_hm3": 901'))
    told = pycobre("diff", case, changed)
    assert told.returncode == 0, told.stderr
    assert "max_storage_hm3 900.0 before, 901.0 now" in told.stdout
    table = pycobre("diff", case, changed, "--format", "table").stdout.splitlines()
    assert table[0].split() == ["category", "section", "entity", "field", "when", "before", "after"]
    assert table[1].split()[0] == "limit"
    assert json.loads(pycobre("diff", case, changed, "--format", "json").stdout)["equal"] is False
    assert pycobre("diff", case, case).stdout == "The two cases say the same.\n"
    assert "expected a case directory" in pycobre("diff", case, tmp_path / "none").stderr


def test_simulations_are_compared_too(case: Path, tmp_path: Path) -> None:
    for name, scenarios in (("a", 3), ("b", 3), ("c", 2)):
        done = pycobre("simulate", case, "--scenarios", scenarios, "--output", tmp_path / name, "--quiet")
        assert done.returncode == 0, done.stderr
    same = pycobre("compare", tmp_path / "a", tmp_path / "b", "--bits")
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "the two runs are the same, bit for bit")
    assert "iterations" not in same.stdout
    other = pycobre("compare", tmp_path / "a", tmp_path / "c", "--bits")
    assert other.returncode == 1
    assert re.search(r"^costs +36 rows against 24$", other.stdout, re.MULTILINE)
    trained = pycobre("compare", tmp_path / "a", case / "output", "--bits")
    # A long path stands whole in a line of its own.
    assert re.search(rf"^convergence +only in\s+{case / 'output'}$", trained.stdout, re.MULTILINE)


def test_simulate_uses_the_trained_policy(case: Path, tmp_path: Path) -> None:
    done = pycobre("simulate", case, "--scenarios", 5, "--output", tmp_path, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["simulation"]["scenarios"] == 5
    assert (tmp_path / "simulation" / "hydros.parquet").is_file()


def test_report_says_where_it_is(case: Path) -> None:
    done = pycobre("report", case / "output", "--no-png")
    assert done.returncode == 0, done.stderr
    assert str(case / "output" / "report.html") in done.stdout
    assert (case / "output" / "report.html").stat().st_size > 1_000_000


def test_a_report_without_its_libraries_says_what_to_install(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)  # importing it fails
    assert main(["report", str(case / "output"), "--no-png"]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert 'install them with pip install "pycobre[plot]"' in error
    assert hint.startswith("hint: install what is named above and repeat the command")


def test_verify_prints_a_table_and_a_verdict(case: Path) -> None:
    words = (
        "--ranks",
        "1,2",
        "--backends",
        "local,shm",
        "--threads",
        "1",
        "--iterations",
        2,
        "--scenarios",
        3,
    )
    done = pycobre("verify", case, *words)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:4]]
    assert [row[:3] for row in rows] == [["local", "1", "1"], ["shm", "1", "1"], ["shm", "2", "1"]]
    assert len({tuple(row[3:9]) for row in rows}) == 1
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.rstrip().endswith("all 3 runs are the same, bit for bit")
    wrong = pycobre("verify", case, "--backends", "smh")
    assert (wrong.returncode, "expected some of local, shm, tcp, mpi" in wrong.stderr) == (1, True)


def test_verify_tells_runs_that_fail(case: Path) -> None:
    words = (
        "--ranks",
        "2",
        "--backends",
        "local,shm,mpi",
        "--threads",
        "1",
        "--iterations",
        2,
        "--scenarios",
        3,
    )
    done = pycobre("verify", case, *words, COBRE_SHM_TIMEOUT_SECS="never")
    assert done.returncode == 1
    local, shm, mpi = done.stdout.splitlines()[1:4]
    assert "failed" not in local
    assert "failed: exit code 4: " in shm
    assert "COBRE_SHM_TIMEOUT_SECS" in shm
    if find_spec("mpi4py") is None:
        assert "skipped: " in mpi
    assert " runs failed: docs/guides/why-did-my-run-stop.md" in done.stdout
    assert "the same" not in done.stdout


def test_verify_compares_where_the_case_itself_stops(tmp_path: Path) -> None:
    """Its rules are kept, but for the clock's, and end at the given iteration at the latest."""
    case = tmp_path / "case"
    assert pycobre("init", "one-reservoir", case).returncode == 0
    config = json.loads((case / "config.json").read_text())
    stalling = {"type": "bound_stalling", "iterations": 3, "tolerance": 1e9}
    config["training"]["stopping_rules"] = [stalling, {"type": "iteration_limit", "limit": 50}]
    config["training"]["stopping_rules"].append({"type": "time_limit", "seconds": 1e-9})
    (case / "config.json").write_text(json.dumps(config))
    for limit, last in ((20, "3"), (2, "2")):
        words = ("--backends", "local", "--threads", "1", "--iterations", limit, "--scenarios", 3)
        done = pycobre("verify", case, *words)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[1].split()[:4] == ["local", "1", "1", last]


def test_verify_refuses_counts_that_compare_nothing(case: Path) -> None:
    for option in ("--iterations", "--scenarios"):
        done = pycobre("verify", case, option, 0)
        assert done.returncode == 1
        assert f"{option}: expected at least 1, got 0" in done.stderr


def test_export_writes_tables_with_units(tmp_path: Path, case: Path) -> None:
    done = pycobre("export", case / "output", "--to", "csv", "--table", "thermals", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "thermals.csv").read_text().splitlines()[0].endswith('"generation_mw [MW]","cost [$]"')
    assert "thermals" in done.stdout
    wrong = pycobre("export", case / "output", "--to", "csv", "--quantiles", "ten")
    assert wrong.returncode == 1
    assert "expected numbers from 0 to 1, got 'ten'" in wrong.stderr
