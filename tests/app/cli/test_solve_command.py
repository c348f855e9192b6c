"""`pycobre solve`: a file of another tool, solved, simulated and reported from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_helpers import pycobre

sys.path.insert(0, str(Path(__file__).parents[2] / "problem" / "formats"))
from format_files import INDEP, sof_newsvendor, write_msp, write_smps

SHORT = ("--iterations", 15, "--scenarios", 20)


@pytest.fixture
def newsvendor(tmp_path: Path) -> Path:
    path = tmp_path / "papers.sof.json"
    path.write_text(json.dumps(sof_newsvendor()))
    return path


def test_stochoptformat_with_validation(newsvendor: Path) -> None:
    done = pycobre("solve", newsvendor, *SHORT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "pycobre · newsvendor (maximise)"
    assert "2 stages · 2 nodes · 1 state · 3 openings" in lines[1]
    assert any(line.split()[:3] == ["iteration", "upper", "bound"] for line in lines)
    assert "  upper bound   5.00" in lines
    assert "  validation    paths 3, mean 4.50, least 3.50, most 5.00" in lines
    output = newsvendor.with_name("papers-output")
    assert (output / "manifest.json").is_file()
    report = pycobre("report", output, "--no-png")
    assert report.returncode == 0, report.stderr
    assert (output / "report.html").is_file()


def test_the_same_bits_on_workers(newsvendor: Path, tmp_path: Path) -> None:
    digests = set()
    for workers, backend in ((1, "auto"), (2, "shm"), (2, "tcp")):
        words = ("--workers", workers, "--backend", backend, "--format", "json", "--output", tmp_path / "out")
        done = pycobre("solve", newsvendor, *SHORT, *words)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["validation"]["paths"] == 3
        assert found["validation"]["mean"] == pytest.approx(4.5, abs=1e-9)
        digests.add(found["policy_digest"])
    assert len(digests) == 1


def test_mspformat_and_smps_and_settings(tmp_path: Path) -> None:
    words = (*SHORT, "--format", "json", "--set", "forward_passes=3", "--seed", 5)
    for path, value in ((write_msp(tmp_path), 25000 / 3), (write_smps(tmp_path, INDEP), None)):
        done = pycobre("solve", path, *words)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["seed"] == 5
        assert value is None or found["lower_bound"] == pytest.approx(value, rel=1e-9)


def test_a_file_that_is_wrong(tmp_path: Path) -> None:
    path = write_msp(tmp_path)
    path.write_text(path.read_text().replace('"EQ"', '"EG"', 1))
    done = pycobre("solve", path)
    assert done.returncode != 0
    assert "x.problem.json: constraints[0].type: expected 'EQ' or 'LEQ' or 'GEQ', got \"EG\"" in done.stderr
    assert not (tmp_path / "x-output").exists()
