"""Ctrl-C in a run that an MPI launcher started: the launcher's whole group, or one rank alone, is interrupted."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_helpers import PATIENCE_S, pycobre

sys.path.insert(0, str(Path(__file__).parents[2] / "comm"))

from mpi_environments import environment, job_variables, mpiexec, require_environment

# Each rank leaves its process number, so that it can be interrupted, and looked for in the end.
START = """
import mpi4py, os, pathlib, sys
rank = os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
pathlib.Path(sys.argv.pop(1), rank).write_text(str(os.getpid()))
from pycobre.app.cli import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cases") / "lake"
    assert pycobre("init", "one-reservoir", directory).returncode == 0
    return directory


# Open MPI's launcher, when it is itself interrupted, kills the ranks a quarter of a second later; see the docs.
@pytest.mark.parametrize(
    ("library", "whom"), [("mpich", "launcher"), ("mpich", "0"), ("mpich", "1"), ("openmpi", "1")]
)
def test_the_run_ends_after_the_iteration_with_a_checkpoint(
    library: str, whom: str, case: Path, tmp_path: Path
) -> None:
    require_environment(library)
    numbers, output = tmp_path / "numbers", tmp_path / "output"
    numbers.mkdir()
    command = [*mpiexec(library, 2), str(environment(library) / "bin/python"), "-c", START, str(numbers)]
    command += [
        "run",
        str(case),
        "--iterations",
        "100000",
        "--scenarios",
        "10",
        "--checkpoint-every",
        "100000",
    ]
    with subprocess.Popen(
        [*command, "--format", "jsonl", "--output", str(output)],
        env={**os.environ, **job_variables(library), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if '"iteration_finished"' in line:
                break
        if whom == "launcher":
            os.killpg(process.pid, signal.SIGINT)
        else:
            os.kill(int((numbers / whom).read_text()), signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGINT, said
    finished = [json.loads(line) for line in said.splitlines() if '"training_finished"' in line]
    assert [event["reason"] for event in finished] == ["interrupted"]
    reached = finished[0]["iterations"]
    assert reached < 100000
    assert "simulation" not in json.loads((output / "metadata.json").read_text())
    assert [file.name for file in (output / "checkpoints").glob("*.cobre")] == [f"{reached:08d}.cobre"]
    for number in numbers.iterdir():
        wait_for_the_end_of(int(number.read_text()))
    again = pycobre(
        *("run", case, "--iterations", reached + 1, "--scenarios", 0, "--resume", "--output", output),
        *("--format", "json"),
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["iterations"] == reached + 1


def wait_for_the_end_of(process: int) -> None:
    pause = threading.Event()
    for _ in range(round(PATIENCE_S / 0.01)):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        pause.wait(0.01)
    pytest.fail(f"rank process {process} outlived the job")
