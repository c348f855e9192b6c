"""Checkpoints that grow by what is new: a log of cuts beside them, refused when it is not theirs."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre._util import container
from pycobre.comm import LocalBackend
from pycobre.errors import PolicyError
from pycobre.sddp import IterationLimit, Level1, TrainOptions, train
from pycobre.sddp.training import checkpoint, cut_log
from pycobre.sddp.training.checkpoint import Checkpoints, latest, read_checkpoint
from pycobre.testing import problems

PROBLEM = problems.reservoir(4)


def options(iterations, **more):
    return TrainOptions(3, IterationLimit(iterations), selection=Level1(every=2), **more)


def run(directory, iterations, state=None, every=1, **more):
    writer = Checkpoints(directory, iterations=every)
    return train(PROBLEM, LocalBackend(), options(iterations, **more), checkpoint=writer, state=state)


def log_of(directory):
    (found,) = Path(directory).glob("*.cuts")
    return found


def segments(path):
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        found.append(
            container.unpack(data[at + 8 : at + 8 + size], "cuts", 1, where="log", error=PolicyError)
        )
        at += 8 + size
    return found


def test_a_checkpoint_writes_its_own_cuts(tmp_path):
    outcome = run(tmp_path, 6)
    found = segments(log_of(tmp_path))
    assert len(found) == 6
    for iteration, segment in enumerate(found, 1):
        assert set(segment.arrays["cuts/000000/iteration"].tolist()) == {iteration}
        assert segment.arrays["cuts/000000/slope"].shape == (3, 1)
    state = read_checkpoint(tmp_path / "00000006.cobre")
    for node, cuts in state.cuts.items():
        mine = outcome.policy.cuts[node]
        assert [getattr(cuts, part).tobytes() for part in ("slope", "intercept", "active")] == [
            getattr(mine, part).tobytes() for part in ("slope", "intercept", "active")
        ]
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.cobre"))]
    assert len(sizes) == 3
    assert not any(
        name.endswith("slope")
        for name in container.read(
            tmp_path / "00000006.cobre", "checkpoint", checkpoint.VERSION, error=PolicyError
        ).arrays
    )


def test_a_resumed_run_appends_to_the_same_log_and_ends_with_the_same_bytes(tmp_path):
    whole = run(tmp_path / "whole", 7).policy.digest
    run(tmp_path / "parts", 4)
    log = log_of(tmp_path / "parts")
    # A process that was killed while it appended: bytes that no checkpoint counts.
    log.write_bytes(log.read_bytes() + b"half a segment")
    state, faults = latest(tmp_path / "parts")
    assert (state.iteration, faults) == (4, [])
    assert run(tmp_path / "parts", 7, state).policy.digest == whole
    assert log_of(tmp_path / "parts").read_bytes() == log_of(tmp_path / "whole").read_bytes()


def test_resuming_from_an_earlier_checkpoint_cuts_the_log_back(tmp_path):
    whole = run(tmp_path / "whole", 7).policy.digest
    run(tmp_path / "parts", 5)
    newest = tmp_path / "parts" / "00000005.cobre"
    newest.write_bytes(newest.read_bytes()[:-1])
    state, faults = latest(tmp_path / "parts")
    assert state.iteration == 4
    assert "00000005.cobre: checksum mismatch" in faults[0]
    assert run(tmp_path / "parts", 7, state).policy.digest == whole
    assert log_of(tmp_path / "parts").read_bytes() == log_of(tmp_path / "whole").read_bytes()


def test_another_run_in_the_same_directory_begins_a_log_of_its_own(tmp_path):
    run(tmp_path, 2)
    outcome = run(tmp_path, 9, every=3, seed=5)
    assert log_of(tmp_path).name == "00000003.cuts"  # the other one is referred to by nothing that is kept
    state, _ = latest(tmp_path)
    assert state.cuts[0].slope.tobytes() == outcome.policy.cuts[0].slope.tobytes()


def test_a_truncated_log_invalidates_only_what_is_missing(tmp_path):
    run(tmp_path, 5)
    log = log_of(tmp_path)
    log.write_bytes(log.read_bytes()[:-1])
    state, faults = latest(tmp_path)
    assert state.iteration == 4
    assert f"{log}: log of cuts: expected" in faults[0]
    assert "it is truncated or not that of the checkpoint. Use an earlier copy." in faults[0]


@pytest.mark.parametrize("where", [20, 900])
def test_a_changed_log_is_refused(tmp_path, where):
    run(tmp_path, 3)
    log = log_of(tmp_path)
    data = bytearray(log.read_bytes())
    data[where] ^= 1
    log.write_bytes(bytes(data))
    with pytest.raises(PolicyError, match="none of its 3 checkpoints can be read"):
        latest(tmp_path)


def test_a_missing_log_is_said(tmp_path):
    run(tmp_path, 1)
    log_of(tmp_path).unlink()
    with pytest.raises(
        PolicyError, match=r"cannot read the log of cuts: No such file.*Keep it beside its check"
    ):
        read_checkpoint(tmp_path / "00000001.cobre")


def test_the_log_of_another_run_is_refused(tmp_path):
    run(tmp_path / "a", 2)
    run(tmp_path / "b", 2, seed=9)
    log_of(tmp_path / "a").write_bytes(log_of(tmp_path / "b").read_bytes())
    with pytest.raises(
        PolicyError, match="expected the segments that the checkpoint was written with, got others"
    ):
        read_checkpoint(tmp_path / "a" / "00000002.cobre")


def forged(path, **changes):
    """The checkpoint with another mark, and a right checksum."""
    found = container.read(path, "checkpoint", checkpoint.VERSION, error=PolicyError)
    log = {**found.meta["log"], **changes}
    data = container.pack(
        container.Container("checkpoint", found.version, {**found.meta, "log": log}, found.arrays)
    )
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"file": "../../secret"}, "'log' of the checkpoint: expected file, size, chain and rows"),
        ({"size": -1}, "'log' of the checkpoint"),
        ({"size": 2**70}, "'log' of the checkpoint"),
        ({"chain": "f" * 63}, "'log' of the checkpoint"),
        ({"rows": {"a": 1.5}}, "'log' of the checkpoint"),
        ({"chain": "f" * 64}, "expected the segments that the checkpoint was written with"),
        ({"size": 9}, "expected segments of 9 bytes"),
        ({"rows": {"cuts/000000/slope": 2**61}}, "a log that is shorter|rows of the checkpoint's arrays"),
        ({"size": 0, "chain": "0" * 64, "rows": {}}, "no such array"),
    ],
)
def test_a_forged_mark_is_refused(tmp_path, changes, text):
    run(tmp_path, 2)
    path = tmp_path / "00000002.cobre"
    forged(path, **changes)
    with pytest.raises(PolicyError, match=text):
        read_checkpoint(path)


def test_rows_of_another_kind_are_refused(tmp_path):
    first = cut_log.append(tmp_path, cut_log.Mark("00000001.cuts"), {"a": np.zeros((2, 3))})
    grown = cut_log.append(tmp_path, first, {"a": np.zeros((4, 5))})
    with pytest.raises(PolicyError, match=r"expected 4 rows float64 \[3\] of 'a', got 4 rows float64 \[5\]"):
        cut_log.read_rows(tmp_path, grown)
    assert cut_log.read_rows(tmp_path, first)["a"].shape == (2, 3)
    assert (
        cut_log.append(tmp_path, grown, {"a": np.zeros((4, 5))}) is grown
    )  # nothing new: nothing is written


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
    """Checkpoints of four iterations, the newest three kept, and what each of them holds."""
    directory = tmp_path_factory.mktemp("undamaged")
    run(directory, 4)
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    states = {}
    for path in sorted(directory.glob("*.cobre")):
        states[int(path.stem)] = checkpoint.pack_checkpoint(read_checkpoint(path))
    assert sorted(states) == [2, 3, 4]
    return files, states


def read_damaged(directory, files, states, name, data):
    """What is read where one file is damaged: one of the states as it was, or nothing; never anything else."""
    for other, content in files.items():
        (directory / other).write_bytes(data if other == name else content)
    try:
        state, _ = latest(directory)
    except PolicyError:
        return None
    assert checkpoint.pack_checkpoint(state) == states[state.iteration]
    return state.iteration


@given(st.data())
@settings(max_examples=150)
def test_a_flipped_bit_anywhere_is_never_accepted(undamaged, tmp_path_factory, data):
    files, states = undamaged
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    found = read_damaged(tmp_path_factory.mktemp("flipped"), files, states, name, bytes(content))
    if name == "00000004.cobre":
        assert found == 3
    elif name.endswith(".cobre"):
        assert found == 4
    else:
        assert found != 4  # the newest refers to every byte of the log


@given(st.data())
@settings(max_examples=100)
def test_a_file_that_was_cut_off_anywhere_is_never_accepted(undamaged, tmp_path_factory, data):
    files, states = undamaged
    name = data.draw(st.sampled_from(sorted(files)))
    size = data.draw(st.integers(0, len(files[name]) - 1))
    found = read_damaged(tmp_path_factory.mktemp("cut"), files, states, name, files[name][:size])
    assert found == (4 if name in ("00000002.cobre", "00000003.cobre") else found)
    assert name != "00000004.cobre" or found == 3


@pytest.mark.parametrize("survives", ["nothing", "half", "all but the last byte", "all"])
def test_a_writer_killed_while_it_appends_costs_nothing(undamaged, tmp_path, monkeypatch, survives):
    """Whatever part of a segment is on the disk: the checkpoints before it count, and resuming goes on from them."""
    files, _ = undamaged
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    class Killed(BaseException):
        pass

    def append(path, at, data):
        size = {
            "nothing": 0,
            "half": len(data) // 2,
            "all but the last byte": len(data) - 1,
            "all": len(data),
        }
        with path.open("r+b") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data[: size[survives]])
        raise Killed

    state, _ = latest(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(cut_log, "append_durably", append)
        with pytest.raises(Killed):
            run(tmp_path, 6, state)
    state, faults = latest(tmp_path)
    assert (state.iteration, faults) == (4, [])
    assert run(tmp_path, 6, state).policy.digest == run(tmp_path / "whole", 6).policy.digest
