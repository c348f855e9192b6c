"""Policies and checkpoints with a valid checksum and invalid content: a PolicyError that names the entry."""

import hashlib
import json
import math
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sddp_runs import PATIENT

from pycobre._util import container
from pycobre.comm import LocalBackend
from pycobre.errors import PolicyError, SolverError
from pycobre.sddp import IterationLimit, Level1, Policy, TrainOptions, train
from pycobre.sddp.training import checkpoint
from pycobre.sddp.training.outcome import Receipt
from pycobre.testing import problems

PROBLEM = problems.reservoir(3)
OPTIONS = TrainOptions(2, IterationLimit(3), selection=Level1(every=2))
MORE = TrainOptions(2, IterationLimit(4), selection=Level1(every=2))


class Keep:
    """A checkpointer that keeps the last state as bytes."""

    def due(self, iteration, *, last):
        return last

    def write(self, state):
        self.data = checkpoint.pack_checkpoint(state)
        return Receipt("memory", len(self.data))


KEEP = Keep()
OUTCOME = train(PROBLEM, LocalBackend(), OPTIONS, checkpoint=KEEP)
VALID = {"policy": OUTCOME.policy.to_bytes(), "checkpoint": KEEP.data}
VERSIONS = {"policy": 1, "checkpoint": checkpoint.VERSION}


def content(kind):
    return container.unpack(VALID[kind], kind, VERSIONS[kind], where="here", error=PolicyError)


def forged(kind, *, arrays=None, meta=None, without=()):
    found = content(kind)
    kept = {name: array for name, array in {**found.arrays, **(arrays or {})}.items() if name not in without}
    return container.pack(container.Container(kind, found.version, {**found.meta, **(meta or {})}, kept))


def open_it(kind, data):
    """Read the file and use it: evaluate the policy, or go on training for an iteration."""
    if kind == "policy":
        policy = Policy.from_bytes(data, where="here")
        policy.check(PROBLEM)
        return policy.evaluate("1", np.zeros(1)).value
    state = checkpoint.unpack_checkpoint(data, "here")
    return train(PROBLEM, LocalBackend(), MORE, state=state).lower_bound


def refused(kind, data):
    with pytest.raises(PolicyError) as caught:
        open_it(kind, data)
    return str(caught.value)


def changed(kind, name, value, at=0):
    array = content(kind).arrays[name].copy()
    array.reshape(-1)[at] = value
    return {name: array}


def test_the_valid_files_are_read():
    assert math.isfinite(open_it("policy", VALID["policy"]))
    assert math.isfinite(open_it("checkpoint", VALID["checkpoint"]))


@pytest.mark.parametrize("kind", ["policy", "checkpoint"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("part", ["slope", "intercept"])
def test_a_cut_that_is_not_finite(kind, part, value):
    name = f"cuts/000000/{part}"
    assert refused(kind, forged(kind, arrays=changed(kind, name, value))) == (
        f"here: array '{name}' of the {kind}: expected finite numbers, got {value} among them. "
        "Use an earlier copy."
    )


CASES = [
    (
        "policy",
        {"arrays": {"cuts/000000/slope": np.zeros((6, 1), np.float32)}},
        "array 'cuts/000000/slope' of the policy: expected float64 [6, 1], got float32 [6, 1]",
    ),
    (
        "policy",
        {"arrays": {"cuts/000000/slope": np.zeros((6, 2))}},
        "array 'cuts/000000/slope' of the policy: expected float64 [6, 1], got float64 [6, 2]",
    ),
    (
        "policy",
        {"without": ["cuts/000001/depth"]},
        "array 'cuts/000001/depth' of the policy: expected int32 [6], got no such array",
    ),
    (
        "policy",
        {"arrays": {"more": np.zeros(1)}},
        "array 'more' of the policy: expected no such array, got one",
    ),
    (
        "policy",
        {"arrays": {"cuts/000000/active": np.full(6, 7, np.uint8)}},
        "array 'cuts/000000/active' of the policy: expected numbers up to 1, got 7 among them",
    ),
    (
        "policy",
        {"arrays": {"cuts/000000/iteration": np.full(6, 99, np.int32)}},
        "array 'cuts/000000/iteration' of the policy: expected numbers up to 3, got 99 among them",
    ),
    (
        "policy",
        {"arrays": {"theta_lower": np.array([np.nan, 0.0, -np.inf])}},
        "array 'theta_lower' of the policy: expected finite numbers, got nan among them",
    ),
    (
        "policy",
        {"arrays": {"theta_lower": np.full(3, -np.inf)}},
        "node '1' of the policy: expected no cuts, because nothing follows it, got 6",
    ),
    ("policy", {"meta": {"sense": "up"}}, "'sense' of the policy: expected minimise or maximise, got 'up'"),
    ("policy", {"meta": {"iterations": -1}}, "'iterations' of the policy: expected a count, got -1"),
    (
        "policy",
        {"meta": {"lower_bound": math.nan}},
        "'lower_bound' of the policy: expected a finite number or -Infinity, got nan",
    ),
    (
        "policy",
        {"meta": {"states": ["a", "a"]}},
        "'states' of the policy: expected different texts, got one of them twice",
    ),
    ("policy", {"meta": {"nodes": 10**9}}, "'nodes' of the policy: expected a list of texts, got 1000000000"),
    ("policy", {"meta": {"problem": None}}, "'problem' of the policy: expected a text, got None"),
    (
        "checkpoint",
        {"arrays": {"history/lower_bound": np.zeros(2)}},
        "array 'history/lower_bound' of the checkpoint: expected float64 [3], got float64 [2]",
    ),
    (
        "checkpoint",
        {"arrays": {"history/cuts_total": np.array([4, 8, 13])}},
        "array 'history/cuts_total' of the checkpoint: expected 12 at its end, got 13",
    ),
    (
        "checkpoint",
        {"arrays": {"starts/000000/pool_starts": np.array([0, -1, 0], np.int32)}},
        "array 'starts/000000/pool_starts' of the checkpoint: expected numbers from 0, got -1 among them",
    ),
    (
        "checkpoint",
        {"arrays": {"starts/000000/col_status": np.full((2, 5), 9, np.int8)}},
        "array 'starts/000000/col_status' of the checkpoint: expected numbers up to 4, got 9 among them",
    ),
    (
        "checkpoint",
        {"meta": {"nodes": [1, 0]}},
        "'nodes' of the checkpoint: expected rising node numbers, got [1, 0]",
    ),
    (
        "checkpoint",
        {"meta": {"starts": [-5]}},
        "'starts' of the checkpoint: expected a list of node numbers, got [-5]",
    ),
    (
        "checkpoint",
        {"meta": {"options": [1]}},
        "'options' of the checkpoint: expected texts by name, got [1]",
    ),
]


@pytest.mark.parametrize(("kind", "change", "text"), CASES, ids=[text[:50] for _, _, text in CASES])
def test_every_entry_is_checked(kind, change, text):
    assert refused(kind, forged(kind, **change)) == f"here: {text}. Use an earlier copy."


def test_a_slot_beyond_the_cuts():
    found = content("checkpoint").arrays
    name = next(name for name in sorted(found) if name.endswith("pool_slots") and len(found[name]))
    text = refused("checkpoint", forged("checkpoint", arrays=changed("checkpoint", name, 10**6)))
    assert text == (
        f"here: array '{name}' of the checkpoint: expected numbers up to 5, got 1000000 among them. "
        "Use an earlier copy."
    )


@pytest.mark.parametrize(
    ("name", "what"), [("col_status", "columns"), ("row_status", "rows"), ("trial_point", "states in starts")]
)
def test_sizes_of_another_problem(name, what):
    array = content("checkpoint").arrays[f"starts/000000/{name}"]
    wider = np.concatenate([array, array], axis=1)
    text = refused("checkpoint", forged("checkpoint", arrays={f"starts/000000/{name}": wider}))
    assert text.startswith(f"resume: {what} of the checkpoint: expected ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
NUMBERS = st.sampled_from([math.nan, math.inf, -math.inf, -1, 0, 1, 2, 5, 127, 1e300, -1e300, 2**31 - 1])
DTYPES = st.sampled_from(["<f8", ">f8", "<f4", "<i4", "<i8", "|i1", "|u1", "<u8", "<c16", "|b1"])


@given(st.data(), st.sampled_from(["policy", "checkpoint"]))
@settings(PATIENT, max_examples=300)
def test_any_change_is_refused_or_leads_to_numbers(data, kind):
    """No traceback, no MemoryError, and never a bound that is not a number."""
    found = content(kind)
    meta, arrays = dict(found.meta), dict(found.arrays)
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    match data.draw(st.sampled_from(["value", "dtype", "shape", "drop", "meta", "key"])):
        case "value" if array.size:
            with np.errstate(all="ignore"):
                new = array.copy()
                number = np.array(data.draw(NUMBERS)).astype(array.dtype, casting="unsafe")
                new.reshape(-1)[data.draw(st.integers(0, array.size - 1))] = number
            arrays[name] = new
        case "dtype":
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(data.draw(DTYPES))
        case "shape":
            arrays[name] = np.resize(array, data.draw(st.lists(st.integers(0, 4), max_size=3)))
        case "drop":
            del arrays[name]
        case "meta":
            meta[data.draw(st.sampled_from(sorted(meta)))] = data.draw(JSON)
        case _:
            meta.pop(data.draw(st.sampled_from(sorted(meta))))
    try:
        used = open_it(kind, container.pack(container.Container(kind, found.version, meta, arrays)))
    except (PolicyError, SolverError):
        return
    assert math.isfinite(used)


def with_header(kind, change):
    """The file with another header and the right checksum."""
    data = VALID[kind]
    (size,) = struct.unpack_from("<Q", data, 8)
    header = json.loads(data[16 : 16 + size])
    text = json.dumps(change(header)).encode()
    body = data[-(-(16 + size) // 64) * 64 : -32]
    start = data[:8] + struct.pack("<Q", len(text)) + text
    whole = start + b"\0" * (-len(start) % 64) + body
    return whole + hashlib.sha256(whole).digest()


@pytest.mark.parametrize("kind", ["policy", "checkpoint"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda entry: [*entry[:3], -64], "offset -64"),
        (lambda entry: [*entry[:3], 8], "offset 8"),
        (lambda entry: [*entry[:2], [2**62, 0], entry[3]], "4611686018427387904, 0"),
        (lambda entry: [*entry[:2], [10**30], entry[3]], "elements of"),
        (lambda entry: [*entry[:2], [-1], entry[3]], r"shape \[-1\]"),
        (lambda entry: [*entry[:2], "ab", entry[3]], "shape ab"),
        (lambda entry: [entry[0], "O", *entry[2:]], "dtype O"),
        (lambda entry: [entry[0], {"names": ["a"]}, *entry[2:]], "dtype"),
        (lambda entry: entry[:2], "not enough values"),
        (
            lambda entry: ["theta_lower" if entry[0] != "theta_lower" else "x", *entry[1:]],
            "one name twice|no such array",
        ),
    ],
)
def test_a_forged_header_is_refused(kind, change, text):
    def apply(header):
        return {**header, "arrays": [change(header["arrays"][0]), *header["arrays"][1:]]}

    with pytest.raises(PolicyError, match=text):
        open_it(kind, with_header(kind, apply))


@pytest.mark.parametrize("place", ["pipe", "device"])
@pytest.mark.parametrize("read", [Policy.load, checkpoint.read_checkpoint])
def test_a_pipe_or_a_device_is_no_file(tmp_path, place, read):
    """Neither is waited for, nor read without an end."""
    path = tmp_path / "00000001.cobre"
    if place == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(PolicyError, match=r"cannot read the .* file: it is a pipe or a device"):
        read(path)


def test_a_pipe_in_place_of_the_log_of_cuts(tmp_path):
    writer = checkpoint.Checkpoints(tmp_path, iterations=1)
    train(problems.reservoir(3), LocalBackend(), TrainOptions(2, IterationLimit(1)), checkpoint=writer)
    (log,) = tmp_path.glob("*.cuts")
    log.unlink()
    os.mkfifo(log)
    with pytest.raises(PolicyError, match="cannot read the log of cuts: it is a pipe or a device"):
        checkpoint.read_checkpoint(tmp_path / "00000001.cobre")
