"""The binary file format: stable bytes, nothing believed unchecked, nothing lost when a write fails."""

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pycobre._util.container import Container, pack, read, unpack
from pycobre.errors import PolicyError

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


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.cobre: cannot read the policy file: No such file"):
        read(tmp_path / "none.cobre", "policy", 1, error=PolicyError)
