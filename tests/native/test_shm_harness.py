"""The native shm code under sanitizers: threads as ranks, the headers as they are compiled into the module.

ThreadSanitizer must find nothing; and, so that this means something, each of the mutants that weaken one thing the
protocol rests on must be found out: by a data race, or by wrong contents.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HEADERS = Path(__file__).parents[2] / "src" / "pycobre" / "_native"
HARNESS = Path(__file__).with_name("shm_harness.c")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def build(directory: Path, sanitizer: str, headers: Path = HEADERS) -> Path:
    program = directory / "harness"
    flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-O1",
        "-g",
        f"-fsanitize={sanitizer}",
    ]
    command = ["cc", *flags, f"-I{headers}", str(HARNESS), "-o", str(program), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if "cannot find" in done.stderr:
        pytest.skip(f"the compiler has no {sanitizer} sanitizer")
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, ranks: int, rounds: int, timeout_s: int) -> subprocess.CompletedProcess[str]:
    command = [program, str(ranks), str(rounds), str(timeout_s)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    if "FATAL: ThreadSanitizer: unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel places memory where this compiler's ThreadSanitizer cannot follow")
    return done


def changed_headers(directory: Path, file: str, *changes: tuple[str, str]) -> Path:
    """A copy of the headers in which each text, found once in that file, is replaced by the other."""
    headers = directory / "headers"
    shutil.copytree(HEADERS, headers)
    text = (headers / file).read_text()
    for original, replacement in changes:
        assert text.count(original) == 1
        text = text.replace(original, replacement)
    (headers / file).write_text(text)
    return headers


def expect_clean(done: subprocess.CompletedProcess[str]) -> None:
    assert done.stderr == ""
    assert done.stdout == "0 wrong\n"
    assert done.returncode == 0


def test_no_race(tmp_path: Path) -> None:
    expect_clean(run(build(tmp_path, "thread"), 3, 300, 180))


def test_no_race_while_ranks_sleep_and_look_around(tmp_path: Path) -> None:
    """With slices so short that most waits end in sleep, and look for dead peers many times."""
    short = (
        ("#define SHM_SLICE_NS 20000000 ", "#define SHM_SLICE_NS 20000 "),
        ("#define SHM_YIELD_NS 1000000 ", "#define SHM_YIELD_NS 5000 "),
    )
    expect_clean(run(build(tmp_path, "thread", changed_headers(tmp_path, "shm_wait.h", *short)), 4, 200, 180))


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "rounds"), [(2, 20_000), (3, 5_000), (4, 3_000), (8, 500)])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_no_race_and_no_stray_access(sanitizer: str, ranks: int, rounds: int, tmp_path: Path) -> None:
    expect_clean(run(build(tmp_path, sanitizer), ranks, rounds, 180))


RACE = "WARNING: ThreadSanitizer: data race"
MUTANTS = {
    "a slot's arrival is read without acquire": (
        "shm_wait.h",
        "return atomic_load_explicit(&slot->round, memory_order_acquire) == round;",
        "return atomic_load_explicit(&slot->round, memory_order_relaxed) == round;",
        RACE,
    ),
    "a slot is published without release": (
        "shm_wait.h",
        "atomic_store(&slot->round, channel->round);",
        "atomic_store_explicit(&slot->round, channel->round, memory_order_relaxed);",
        RACE,
    ),
    "one slot per rank instead of two": ("shm_wait.h", "(round & 1u)", "(round & 0u)", "wrong: "),
    "a broadcast's root does not wait for the readers": (
        "shm_collectives.h",
        "            if (r == channel->rank) continue;\n",
        "            if (r == channel->rank || is_root) continue;\n",
        "wrong: ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTANTS)
def test_mutants_are_found_out(what: str, tmp_path: Path) -> None:
    file, original, mutated, found = MUTANTS[what]
    program = build(tmp_path, "thread", changed_headers(tmp_path, file, (original, mutated)))
    assert found in run(program, 3, 300, 2).stderr
