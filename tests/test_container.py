"""The binary file format: stable bytes, nothing believed unchecked, nothing lost when a write fails."""

import errno
import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pycobre._util import container
from pycobre._util.container import Container, pack, read, unpack, write_atomically
from pycobre.errors import OutputError, PolicyError

SAMPLE = Container(
    "policy", 1, {"b": [1, 2.5], "a": "β"}, {"x": np.arange(6.0).reshape(2, 3), "n": np.array([], np.int32)}
)


def opened(data: bytes) -> Container:
    return unpack(data, "policy", 1, where="p.cobre", error=PolicyError)


@given(
    st.dictionaries(
        st.text(max_size=5),
        hnp.arrays(
            st.sampled_from(["<f8", "<i4", "|b1", "<u8", "<c16", ">f8"]),
            hnp.array_shapes(min_dims=0, min_side=0),
        ),
        max_size=3,
    )
)
def test_what_is_packed_comes_back_and_packs_to_the_same_bytes(arrays: dict[str, np.ndarray]) -> None:
    data = pack(Container("policy", 1, {"k": math.pi}, arrays))
    back = opened(data)
    assert back.meta == {"k": math.pi}
    assert set(back.arrays) == set(arrays)
    for name, array in arrays.items():
        assert back.arrays[name].shape == array.shape
        assert back.arrays[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()
        assert not back.arrays[name].flags.writeable
    assert pack(back) == data


def test_the_order_of_insertion_changes_no_byte() -> None:
    reversed_ = Container(
        "policy", 1, dict(reversed(SAMPLE.meta.items())), dict(reversed(SAMPLE.arrays.items()))
    )
    assert pack(reversed_) == pack(SAMPLE)


@given(st.data())
def test_any_changed_or_missing_byte_is_noticed(data: st.DataObject) -> None:
    good = pack(SAMPLE)
    at = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        bad = good[:at]
    else:
        bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    with pytest.raises(PolicyError, match=r"p\.cobre"):
        opened(bad)


def test_a_lying_header_with_a_right_checksum_allocates_nothing() -> None:
    good = pack(SAMPLE)
    body = good[:-32].replace(b"[2,3]", b"[9,9]")
    assert len(body) == len(good) - 32
    with pytest.raises(PolicyError, match="an array does not fit the file"):
        opened(body + hashlib.sha256(body).digest())


def test_another_kind_or_version_is_named() -> None:
    data = pack(SAMPLE)
    with pytest.raises(PolicyError, match="expected a pycobre problem file, got a policy file"):
        unpack(data, "problem", 1, where="f", error=PolicyError)
    with pytest.raises(PolicyError, match="expected version 2 of the policy format, got 1"):
        unpack(data, "policy", 2, where="f", error=PolicyError)
    with pytest.raises(PolicyError, match="got something else"):
        opened(b"PK\x03\x04")


def test_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="plain numeric dtype, got object"):
        pack(Container("policy", 1, {}, {"x": np.array([None])}))


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.cobre"
    write_atomically(path, b"old")
    write_atomically(path, pack(SAMPLE))
    assert read(path, "policy", 1, error=PolicyError).meta == SAMPLE.meta
    assert os.listdir(tmp_path) == ["a.cobre"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.cobre"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(container.os, "fsync", full)
    with pytest.raises(OutputError, match=r"No space left on device\. What was there before is untouched"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.cobre"]


def test_what_a_killed_writer_left_can_be_removed(tmp_path: Path) -> None:
    """A block that kills the writer leaves its temporary file, and nothing else is taken for one."""
    deeper = tmp_path / "deeper"
    deeper.mkdir()
    for name in ("whole.cobre", ".hidden", "named.part"):
        (deeper / name).write_bytes(b"kept")
    code = (
        "import os, sys\nfrom pycobre._util.container import write_atomically\n"
        "write_atomically(sys.argv[1], (os.kill(os.getpid(), 9) or b'' for _ in range(1)))"
    )
    done = subprocess.run([sys.executable, "-c", code, deeper / "torn.cobre"], timeout=250, check=False)
    assert done.returncode == -9
    assert len([path for path in deeper.iterdir() if path.name.startswith(".torn.cobre.")]) == 1
    container.remove_unfinished(tmp_path)
    assert sorted(path.name for path in deeper.iterdir()) == [".hidden", "named.part", "whole.cobre"]


def test_a_missing_file_and_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.cobre: cannot read the policy file: No such file"):
        read(tmp_path / "none.cobre", "policy", 1, error=PolicyError)
    with pytest.raises(OutputError, match="cannot write: No such file or directory"):
        write_atomically(tmp_path / "no" / "x", b"")
