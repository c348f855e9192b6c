"""`pycobre run` as users type it: formats, exit codes, hints, launchers, a terminal."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import PATIENCE_S, PYCOBRE, held_port, pycobre

sys.path.insert(0, str(Path(__file__).parents[2] / "comm"))

from mpi_environments import environment, mpiexec, require_environment, variables

from pycobre.app.cli.screen import STOPPING
from pycobre.app.results import open_results
from pycobre.events import IterationFinished, TrainingFinished, TrainingStarted, event_from_dict

SHORT = ("--iterations", "4", "--scenarios", "6")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cases") / "lake"
    assert pycobre("init", "one-reservoir", directory).returncode == 0
    return directory


@pytest.fixture(scope="module")
def document(case: Path) -> dict[str, object]:
    done = pycobre("run", case, *SHORT, "--format", "json", "--output", case.parent / "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_the_json_document_has_what_programs_need(case: Path, document: dict[str, object]) -> None:
    names = "lower_bound upper_bound gap iterations termination_reason policy_digest backend ranks output_dir"
    assert set(names.split()) <= set(document)
    assert (document["iterations"], document["backend"], document["ranks"]) == (4, "local", 1)
    assert Path(str(document["output_dir"]), "manifest.json").is_file()


def test_lines_in_a_pipe_and_the_summary(case: Path, document: dict[str, object], tmp_path: Path) -> None:
    done = pycobre("run", case, *SHORT, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pycobre · lake\n  12 stages · 1 hydro · 3 thermals · 1 bus\n")
    assert re.search(r"^iteration +lower bound +upper bound +gap", done.stdout, re.MULTILINE)
    assert str(document["policy_digest"]) in done.stdout
    assert done.stdout.rstrip().endswith(f"next: pycobre report {tmp_path / 'out'}")
    paths_apart = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]
    assert max(len(line) for line in paths_apart) <= 80
    assert "\x1b" not in done.stdout


def test_quiet_prints_the_summary_only(case: Path, tmp_path: Path) -> None:
    done = pycobre("run", case, *SHORT, "--quiet", "--output", tmp_path)
    assert "LP/s" not in done.stdout
    assert "12 stages" not in done.stdout
    assert "lower bound" in done.stdout


def test_json_lines_are_the_events(case: Path, document: dict[str, object], tmp_path: Path) -> None:
    done = pycobre("run", case, *SHORT, "--format", "jsonl", "--workers", "2", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    events = [event_from_dict(json.loads(line)) for line in done.stdout.splitlines()]
    assert isinstance(events[0], TrainingStarted)
    own = [event for event in events if event.worker_id == 0]
    assert [e.iteration for e in own if isinstance(e, IterationFinished)] == [1, 2, 3, 4]
    assert {e.policy_digest for e in events if isinstance(e, TrainingFinished)} == {document["policy_digest"]}


def test_a_reader_that_goes_away_does_not_end_the_run(case: Path, tmp_path: Path) -> None:
    command = [*PYCOBRE, "run", str(case), *SHORT, "--format", "jsonl", "--output", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (tmp_path / "manifest.json").is_file(), errors
    assert (process.returncode, errors) == (0, "pycobre: stdout closed (broken pipe); the run continues.\n")


def test_nobody_reads_the_table_either(case: Path, tmp_path: Path) -> None:
    command = [*PYCOBRE, "run", str(case), *SHORT, "--output", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "error" in errors) == (0, False), errors
    assert (tmp_path / "manifest.json").is_file()


def test_the_live_table_on_a_terminal(case: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [
        *PYCOBRE,
        "run",
        str(case),
        "--iterations",
        "20",
        "--scenarios",
        "5",
        "--output",
        str(tmp_path),
    ]
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "30"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        shown = b""
        while True:
            ready, _, _ = select.select([ours], [], [], PATIENCE_S)
            assert ready, "the terminal stayed silent"
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other side is closed: the run is over
                break
            if not data:
                break
            shown += data
        assert process.wait() == 0
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "lower bound" in text
    assert "20/20" in text or "5/5 scenarios" in text
    assert "━" in text
    assert "next: pycobre report" in text
    table = [line for line in text.replace("\r", "\n").splitlines() if "iteration" in line]
    assert table
    assert max(map(len, table)) <= 80


@pytest.mark.parametrize(
    ("words", "code", "text", "hint"),
    [
        (("run", "nowhere"), 2, "expected a case directory", "pycobre init"),
        (("run", "{case}", "--backend", "smh"), 4, "there is no backend 'smh'", "pycobre doctor"),
        (("run", "{case}", "--workers", "0"), 1, "--workers: expected at least 1, got 0", "--help"),
        (("run", "{case}", "--iterations", "-3"), 1, "--iterations: expected at least 1, got -3", "--help"),
        (("simulate", "{case}", "--threads", "0"), 1, "--threads: expected at least 1, got 0", "--help"),
        (("run", "{case}", "--set", "training.tree_sed=1"), 1, "tree_sed", None),
        (("run", "{case}", "--set", "training"), 1, "expected PATH=VALUE", None),
        (
            ("run", "{case}", "--resume", "--output", "{tmp}/none"),
            2,
            "expected checkpoints of an earlier run",
            None,
        ),
        (("run", "{case}", "--output", "/proc/x"), 2, "cannot create the directory", None),
        (
            ("run", "{case}", "--output", "/proc/x", "--workers", "2"),
            2,
            "cannot create the directory",
            "what was there is untouched; name another file or directory",
        ),
        (("run", "{case}", "--warm-start", "none.cobre"), 2, "cannot read the policy file", None),
        (("simulate", "{case}", "--policy", "none.cobre"), 2, "cannot read the policy file", None),
        (("report", "nowhere"), 2, "there is no such result directory", None),
        (("compare", "nowhere", "{case}"), 2, "there is no such result directory", None),
        (("validate", "nowhere"), 2, "expected a case directory", "check that the path exists"),
        (("replay", "none.cobre"), 2, "cannot read the lp bundle file", "name another file"),
        (("verify", "{case}", "--ranks", "two"), 1, "--ranks: expected numbers separated by commas", None),
        (("verify", "{case}", "--threads", "0"), 1, "--threads: expected numbers above 0", None),
        (("init", "one-reservor"), 1, "there is no example 'one-reservor'", None),
    ],
)
def test_exit_codes_and_hints(
    words: tuple[str, ...], code: int, text: str, hint: str | None, case: Path, tmp_path: Path
) -> None:
    done = pycobre(*(word.format(case=case, tmp=tmp_path) for word in words), cwd=tmp_path)
    said = done.stderr + done.stdout
    assert done.returncode == code, said
    assert text in said
    assert "Traceback" not in said
    if hint is not None:
        assert f"hint: {hint}" in said or hint in said.splitlines()[-1]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_ends_after_the_iteration_and_resumes(workers: str, case: Path, tmp_path: Path) -> None:
    command = [*PYCOBRE, "run", str(case), "--iterations", "100000", "--scenarios", "0", "--format", "jsonl"]
    command += ["--output", str(tmp_path), "--workers", workers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if '"iteration_finished"' in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == f"{STOPPING}\n"
    finished = [json.loads(line) for line in rest.splitlines() if "training_finished" in line]
    assert finished[0]["reason"] == "interrupted"
    reached = json.loads((tmp_path / "metadata.json").read_text())["iterations"]
    again = pycobre(
        *("run", case, "--iterations", reached + 2, "--scenarios", 0, "--resume", "--output", tmp_path),
        *("--format", "json"),
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["iterations"] == reached + 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_changed_case_is_not_resumed_and_says_what_changed(
    workers: str, case: Path, tmp_path: Path
) -> None:
    changed, output = tmp_path / "case", tmp_path / "output"
    assert pycobre("init", "one-reservoir", changed).returncode == 0
    hydros = changed / "system" / "hydros.json"
    text = hydros.read_text()
    assert '"max_storage_hm3": 900' in text
    hydros.write_text(text.replace('"max_storage_hm3": 900', '"max_storage_hm3": 901'))
    assert pycobre("run", case, *SHORT, "--quiet", "--output", output).returncode == 0
    words = ("--resume", "--output", output, "--workers", workers, "--iterations", 5)
    refused = pycobre("run", changed, *words, "--seed", 9)
    assert refused.returncode == 2
    assert (
        "resume: expected the case of the earlier run, got another: training.tree_seed was 42, is 9; "
        "system/hydros.json has changed. Train afresh, or warm-start from its policy."
    ) in refused.stderr
    more = pycobre("run", case, *words, "--scenarios", 0)
    assert more.returncode == 0, more.stderr
    assert "resumed after iteration 4\n" in more.stdout
    assert "  iterations    5, stopped by iteration limit\n" in more.stdout


def test_one_of_a_thing_is_not_called_many(case: Path, tmp_path: Path) -> None:
    done = pycobre(
        "run", case, "--iterations", 2, "--forward-passes", 1, "--scenarios", 1, "--output", tmp_path
    )
    assert "  1 forward pass · seed 42 · local backend, 1 rank × 1 thread\n" in done.stdout
    assert "simulated 1 scenario: mean cost " in done.stdout
    assert re.search(r"^  simulation    1 scenario, mean [\d,]+$", done.stdout, re.MULTILINE)
    again = pycobre(
        "simulate", case, "--policy", tmp_path / "policy/policy.cobre", "--output", tmp_path / "s"
    )
    assert "  simulation only · seed 42 · local backend, " in again.stdout


def join_tcp(case: Path, output: Path, environ: dict[str, str]) -> subprocess.Popen[str]:
    """One rank of a tcp run, as its variables tell it."""
    words = ["run", str(case), *SHORT, "--backend", "tcp", "--format", "json", "--output", str(output)]
    pipe = subprocess.PIPE
    patience = {"COBRE_TCP_CONNECT_TIMEOUT_MS": "200000"}  # one rank may start long before the other
    return subprocess.Popen(
        [*PYCOBRE, *words], stdout=pipe, stderr=pipe, text=True, env={**os.environ, **patience, **environ}
    )


def test_two_tcp_processes_by_hand(case: Path, document: dict[str, object], tmp_path: Path) -> None:
    common = {
        "COBRE_TCP_COORDINATOR": "127.0.0.1",
        "COBRE_TCP_BIND_ADDR": "127.0.0.1",
        "COBRE_TCP_SIZE": "2",
        "COBRE_TCP_TOKEN": "for this test",
    }
    with held_port() as port:
        common["COBRE_TCP_PORT"] = str(port)
        ranks = [join_tcp(case, tmp_path, {**common, "COBRE_TCP_RANK": str(rank)}) for rank in (1, 0)]
        (silent, worker_errors), (spoken, errors) = (rank.communicate(timeout=PATIENCE_S) for rank in ranks)
    assert [rank.returncode for rank in ranks] == [0, 0], worker_errors + errors
    assert silent == ""
    found = json.loads(spoken)
    assert (found["backend"], found["ranks"]) == ("tcp", 2)
    assert found["policy_digest"] == document["policy_digest"]


SLURM_STEP = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": "1"}
TORCHRUN = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}


@pytest.mark.parametrize(
    ("platform", "rank_variable"),
    [(SLURM_STEP, "SLURM_PROCID"), (TORCHRUN, "RANK")],
    ids=["slurm", "torchrun"],
)
def test_processes_of_a_platform_join_tcp(
    case: Path, document: dict[str, object], tmp_path: Path, platform: dict[str, str], rank_variable: str
) -> None:
    given = {**platform, "COBRE_TCP_TOKEN": "step", "COBRE_TCP_BIND_ADDR": "127.0.0.1"}
    with held_port() as port:
        given["COBRE_TCP_PORT"] = str(port)
        tasks = [join_tcp(case, tmp_path, {**given, rank_variable: str(rank)}) for rank in (0, 1)]
        said = [task.communicate(timeout=PATIENCE_S) for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert json.loads(said[0][0])["policy_digest"] == document["policy_digest"]


def test_mpiexec_joins_mpi(case: Path, document: dict[str, object], tmp_path: Path) -> None:
    require_environment("mpich")
    start = "import mpi4py, sys; from pycobre.app.cli import main; sys.exit(main())"
    command = [*mpiexec("mpich", 2), str(environment("mpich") / "bin/python"), "-c", start]
    command += ["run", str(case), *SHORT, "--format", "json", "--output", str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **variables("mpich")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["backend"], found["ranks"]) == ("mpi", 2)
    assert found["policy_digest"] == document["policy_digest"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("{tmp}/absent",), 2, "hint: check that the path exists"),
        (("{case}", "--output", "/proc/x"), 2, "hint: what was there is untouched"),
        (("{case}", "--set", "training.tree_sed=1"), 1, "Did you mean 'training.tree_seed'?"),
        (("{case}", "--workers", "2"), 1, "expected 1 under a launcher, got 2: PMI_SIZE announces 2 ranks"),
    ],
)
def test_an_error_under_mpiexec_keeps_its_code_and_hint(
    words: tuple[str, ...], code: int, text: str, case: Path, tmp_path: Path
) -> None:
    require_environment("mpich")
    start = "import mpi4py, sys; from pycobre.app.cli import main; sys.exit(main())"
    command = [*mpiexec("mpich", 2), str(environment("mpich") / "bin/python"), "-c", start, "run"]
    command += [word.format(case=case, tmp=tmp_path) for word in words]
    environ = {**os.environ, **variables("mpich")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env=environ, check=False
    )
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rank_that_cannot_read_the_case_ends_the_launchers_job(case: Path, tmp_path: Path) -> None:
    """MPICH's launcher lets the others wait for a rank that ends before it joins."""
    require_environment("mpich")
    start = "import mpi4py, sys; from pycobre.app.cli import main; sys.exit(main())"
    python = [str(environment("mpich") / "bin/python"), "-c", start]
    command = [*mpiexec("mpich", 1), *python, "run", str(case), *SHORT, "--output", str(tmp_path / "out")]
    command += [":", "-n", "1", *python, "run", str(tmp_path / "absent")]
    environ = {**os.environ, **variables("mpich")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env=environ, check=False
    )
    assert done.returncode != 0
    assert "pycobre: rank 1 of 2 aborted: " in done.stderr
    assert str(tmp_path / "absent") in done.stderr
    assert "Traceback" not in done.stderr


def test_help_loads_nothing_heavy() -> None:
    helped = "import sys, pycobre.app.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: pass\n"
    code = f"{helped}print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    for heavy in (
        "'highspy'",
        "'pyarrow'",
        "'rich'",
        "'pydantic'",
        "'pydantic_core'",
        "'mpi4py'",
        "'matplotlib'",
    ):
        assert heavy not in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_do_not_end_a_run(
    closed: str, workers: str, case: Path, tmp_path: Path
) -> None:
    """A socket that took the place of a closed stream would receive what is printed."""
    words = shlex.join(
        [*PYCOBRE, "run", str(case), "--iterations", "2", "--scenarios", "2", "--workers", workers]
    )
    done = subprocess.run(
        ["sh", "-c", f"{words} --output {tmp_path / 'out'} {closed}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert open_results(tmp_path / "out").metadata["iterations"] == 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_closed_pipe_on_both_streams_does_not_end_a_run(workers: str, case: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = ["run", str(case), "--iterations", "2", "--scenarios", "2", "--workers", workers]
    try:
        done = subprocess.run(
            [*PYCOBRE, *words, "--output", str(tmp_path)],
            stdout=writing,
            stderr=writing,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 0
    assert open_results(tmp_path).metadata["iterations"] == 2
