"""Watching real runs: attaching and leaving changes no bit, whichever backend; a run that was started inside."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("textual", reason='watching needs the extra: pip install "pycobre[tui]"')

from shown import Shown, drive

import pycobre
from pycobre.app.results.status import read_status
from pycobre.app.tui.launched import LaunchedRun
from pycobre.hydro.examples import EXAMPLES
from pycobre.testing.problems import reservoir

ITERATIONS = 300


def until(condition, patience_s: float = 240.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def iteration_of(directory: Path) -> int:
    status = read_status(directory)
    return 0 if status is None else status.iteration


async def look(app: Shown) -> None:
    """Attach, turn all pages, leave."""
    for key in "234561":
        await app.press(key)
    assert "lower bound" in app.text
    assert app.app.screen.view.problem is None
    await app.pilot.press("q")


@pytest.fixture(scope="module")
def unwatched() -> str:
    return pycobre.train(reservoir(6), {"iteration_limit": ITERATIONS}).policy_digest


def test_a_watched_run_on_shm_has_the_bits_of_one_that_nobody_watched(tmp_path: Path, unwatched: str) -> None:
    run = pycobre.start(reservoir(6), {"iteration_limit": ITERATIONS}, output=tmp_path / "run", num_workers=2)
    until(lambda: iteration_of(tmp_path / "run") > 0)
    for _ in range(2):  # attached and left twice while it goes on, or just after
        drive(tmp_path, look, open_run=tmp_path / "run", clock=time.time)
    assert run.result(timeout=240).metadata["policy_digest"] == unwatched
    assert read_status(tmp_path / "run").state == "finished"  # type: ignore[union-attr]
    assert not (tmp_path / "run" / "control.jsonl").exists()


RANK = """
import sys
import pycobre
from pycobre.testing.problems import reservoir
pycobre.train(reservoir(6), {"iteration_limit": int(sys.argv[2])}, backend="mpi", output=sys.argv[1])
"""


@pytest.mark.skipif(
    shutil.which("mpiexec", path=str(Path(sys.executable).parent)) is None, reason="no mpiexec"
)
def test_a_watched_run_on_mpi_has_the_same_bits(tmp_path: Path, unwatched: str) -> None:
    pytest.importorskip("mpi4py", reason='needs the extra: pip install "pycobre[mpi]"')
    mpiexec = Path(sys.executable).parent / "mpiexec"
    directory = tmp_path / "run"
    words = [mpiexec, "-n", "2", sys.executable, "-c", RANK, directory, str(ITERATIONS)]
    with subprocess.Popen([str(word) for word in words]) as process:
        until(lambda: directory.is_dir() and iteration_of(directory) > 0)
        drive(tmp_path, look, open_run=directory, clock=time.time)
        assert process.wait(240) == 0
    assert pycobre.open_results(directory).metadata["policy_digest"] == unwatched
    assert pycobre.open_results(directory).metadata["backend"] == "mpi"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    from pycobre.hydro.files import write_case

    write_case(EXAMPLES["one-reservoir"].build(), tmp_path / "case")
    return tmp_path / "case"


def launched(case: Path, *more: str) -> LaunchedRun:
    return LaunchedRun(["run", str(case), "--quiet", "--scenarios", "0", *more], case / "output")


async def wait_for_run(app: Shown) -> None:
    deadline = time.monotonic() + 240
    while "● running" not in app.text:
        assert time.monotonic() < deadline
        await app.settle()


def test_a_run_started_inside_is_left_alone_and_stopped_later(case: Path) -> None:
    started = launched(case, "--iterations", "1000000")

    async def leave(app: Shown) -> None:
        await wait_for_run(app)
        await app.press("q", "w")
        assert "● running" in app.text
        await app.press("q")
        await app.pilot.press("l")

    assert drive(case, leave, launched=started, clock=time.time).return_value == 0
    assert started.exit_code() is None
    before = iteration_of(case / "output")
    until(lambda: iteration_of(case / "output") > before)

    async def stop(app: Shown) -> None:
        await wait_for_run(app)
        await app.press("ctrl+c", "s")

    assert drive(case, stop, launched=started, clock=time.time).return_value == 130
    assert read_status(case / "output").state == "interrupted"  # type: ignore[union-attr]
    started.leave()


def test_a_run_that_does_not_begin_says_why(case: Path) -> None:
    (case / "stages.json").write_text("{")
    started = launched(case)
    started.wait()

    async def act(app: Shown) -> None:
        await app.press("f5")
        assert "The run ended with exit code" in app.text
        assert "stages.json" in app.text
        await app.pilot.press("q")

    assert drive(case, act, launched=started, clock=time.time).return_value == started.wait()
    started.leave()
