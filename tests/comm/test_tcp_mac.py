"""Tags: known answers, both implementations against each other and against plain arithmetic, and session keys."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.comm.tcp import engine as engines
from pycobre.comm.tcp import mac as macs
from pycobre.comm.tcp.mac import KEY_BYTES, TAG_BYTES, Mac, session_keys

LONG = 16 * macs._LANES[0]  # from here on NumPy evaluates in most parts
MEDIUM = 16 * macs._LANES[1]
PRIME = 2**130 - 5


def plain_polynomial(point: bytes, message: bytes) -> int:
    """Poly1305 without the pad, as RFC 8439 writes it down."""
    clamped = int.from_bytes(point, "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for start in range(0, len(message), 16):
        total = (total + int.from_bytes(message[start : start + 16] + b"\1", "little")) * clamped % PRIME
    return total


def plain_tags(key: bytes, messages: list[bytes]) -> list[bytes]:
    """Tags by the definition in the docstring of `mac`, by other means."""
    tags = []
    for number, message in enumerate(messages):
        pads = hashlib.blake2b((number // 4).to_bytes(8, "little"), key=key[16:]).digest()
        pad = int.from_bytes(pads[16 * (number % 4) :][:16], "little")
        tags.append(((plain_polynomial(key[:16], message) + pad) % 2**128).to_bytes(16, "little"))
    return tags


def python_tags(key: bytes, messages: list[bytes], pieces: list[int] | None = None) -> list[bytes]:
    mac = Mac(key)
    tags = []
    for message in messages:
        start = 0
        for piece in pieces or []:
            mac.add(message[start : start + piece])
            start += piece
        mac.add(memoryview(message)[start:])
        tags.append(mac.tag())
    return tags


def native_tags(key: bytes, messages: list[bytes]) -> list[bytes]:
    if engines.native is None:
        pytest.skip("pycobre._native.tcp was not built")
    return engines.native.tags(key, tuple(messages))


def test_the_polynomial_of_rfc_8439() -> None:
    """Section 2.5.2: the tag minus its pad."""
    key = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
    message = b"Cryptographic Forum Research Group"
    tag = int.from_bytes(bytes.fromhex("a8061dc1305136c6c22b8baf0c0127a9"), "little")
    pad = int.from_bytes(key[16:], "little")
    session = key[:16] + bytes(32)
    first_pad = int.from_bytes(hashlib.blake2b(bytes(8), key=bytes(32)).digest()[:16], "little")
    expected = ((tag - pad + first_pad) % 2**128).to_bytes(16, "little")
    assert python_tags(session, [message]) == [expected]
    assert native_tags(session, [message]) == [expected]


# RFC 8439, appendix A.3, vectors 7 to 11 without their pads: sums that wrap around the prime in every way.
WRAPPING = [
    ("02", "ff" * 16, "03"),
    ("02", "02" + "00" * 15, "04"),
    ("01", "ff" * 16 + "f0" + "ff" * 15 + "11" + "00" * 15, "05"),
    ("01", "ff" * 16 + "fb" + "fe" * 15 + "01" * 16, "00"),
    ("02", "fd" + "ff" * 15, "faffffffffffffffffffffffffffffff"),
]


@pytest.mark.parametrize(("point", "message", "expected"), WRAPPING)
def test_sums_that_wrap(point: str, message: str, expected: str) -> None:
    key = bytes.fromhex(point).ljust(16, b"\0") + bytes(32)
    text = bytes.fromhex(message)
    known = int.from_bytes(bytes.fromhex(expected).ljust(16, b"\0"), "little")
    assert plain_polynomial(key[:16], text) % 2**128 == known
    tags = plain_tags(key, [text])
    assert python_tags(key, [text]) == tags
    assert native_tags(key, [text]) == tags


@settings(max_examples=300, deadline=None)
@given(
    st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES),
    st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 70).map(lambda n: b"\xff" * n)), max_size=9),
)
def test_both_implementations_are_the_definition(key: bytes, messages: list[bytes]) -> None:
    expected = plain_tags(key, messages)
    assert python_tags(key, messages) == expected
    if engines.native is not None:
        assert native_tags(key, messages) == expected


@settings(max_examples=15, deadline=None)
@given(
    st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES),
    st.sampled_from([MEDIUM - 1, MEDIUM + 1, LONG - 1, LONG, LONG + 1, 3 * LONG + MEDIUM + 17, 256 * 1024]),
    st.sampled_from([b"\xff", b"\0", b"\x01\xfe\x80", b"reservoir"]),
    st.lists(st.integers(1, 2 * LONG), max_size=4),
)
def test_long_messages_in_any_pieces(key: bytes, length: int, filling: bytes, pieces: list[int]) -> None:
    message = (filling * (length // len(filling) + 1))[:length]
    expected = plain_tags(key, [message, message])
    assert python_tags(key, [message, message], pieces) == expected
    if engines.native is not None:
        assert native_tags(key, [message, message]) == expected


def test_no_two_tags_use_the_same_pad() -> None:
    tags = python_tags(bytes(range(KEY_BYTES)), [b""] * 100)
    assert len(set(tags)) == 100
    assert all(len(tag) == TAG_BYTES for tag in tags)


def test_a_key_of_another_length() -> None:
    with pytest.raises(ValueError, match="key: expected 48 bytes, got 47"):
        Mac(bytes(47))
    if engines.native is not None:
        with pytest.raises(ValueError, match="expected a key of 48 bytes"):
            engines.native.tags(bytes(47), ())


def test_session_keys_differ_by_direction_token_and_handshake() -> None:
    worker, coordinator = (session_keys("token", b"handshake", coordinator=end) for end in (False, True))
    assert (worker.receive, worker.send) == (coordinator.send, coordinator.receive)
    keys = {
        *worker,
        *session_keys("tokeN", b"handshake", coordinator=False),
        *session_keys("token", b"handshakE", coordinator=False),
    }
    assert len(keys) == 6
    assert {len(key) for key in keys} == {KEY_BYTES}


def test_the_key_derivation_is_hkdf() -> None:
    """Against RFC 5869 written out with hashlib alone."""

    def hmac_sha256(key: bytes, text: bytes) -> bytes:
        key = key.ljust(64, b"\0") if len(key) <= 64 else hashlib.sha256(key).digest().ljust(64, b"\0")
        inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + text).digest()
        return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()

    secret = hmac_sha256(b"salt " * 20, b"token")
    info = b"pycobre tcp frames, worker to coordinator"
    first = hmac_sha256(secret, info + b"\x01")
    second = hmac_sha256(secret, first + info + b"\x02")
    assert session_keys("token", b"salt " * 20, coordinator=False).send == (first + second)[:48]
