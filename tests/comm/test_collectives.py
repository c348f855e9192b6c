"""Rows of all ranks, rank 0's bytes or its error on every rank, and forged messages of a rank 0."""

import pytest
from forged_ranks import (
    gather,
    messages,
    receive_bytes,
    receive_error,
    receive_forged,
    receive_forged_agreement,
    receive_forged_size,
)
from hypothesis import given
from hypothesis import strategies as st

from pycobre.comm.collectives import displacements
from pycobre.testing import run_ranks

EXPECTED = {
    "a pickle": ("CollectiveFailed", "the status byte of rank 0: expected 0 or 1, got b'\\x80"),
    "a pickle as the error": ("CommError", "the error record of rank 0: expected JSON, got"),
    "an error of a foreign class": ("CommError", "expected a known class of errors, got 'os.system'"),
    "an error that ends the process": ("CommError", "expected a known class of errors, got 'SystemExit'"),
    "half a record": ("CommError", "the error record of rank 0: expected JSON, got"),
    "an unknown status": ("CollectiveFailed", "expected 0 or 1, got b'\\x07data'"),
    "nothing": ("CollectiveFailed", "the status byte of rank 0: expected 0 or 1, got b''"),
    "a negative length": ("CollectiveFailed", "that rank 0 announced: expected 0 bytes or more, got -5"),
}


def test_every_forgery_has_an_expectation():
    assert messages("").keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_forged_message_of_rank_zero_is_an_error(name, tmp_path):
    target = tmp_path / "made"
    _, *survivors = run_ranks("threads", 3, receive_forged, name, str(target), timeout=60)
    kind, text = EXPECTED[name]
    for found, said in survivors:
        assert found == kind
        assert text in said
    assert not target.exists()


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_no_process_runs_what_rank_zero_pickled(backend, tmp_path):
    target = tmp_path / "made"
    _, survivor = run_ranks(backend, 2, receive_forged, "a pickle as the error", str(target), timeout=60)
    assert survivor[0] == "CommError"
    _, survivor = run_ranks(backend, 2, receive_forged_agreement, str(target), timeout=60)
    assert survivor[0] == "CommError"
    assert survivor[1].startswith("the error record of rank 0: expected JSON")
    assert not target.exists()


@pytest.mark.parametrize("backend", ["threads", "shm"])
def test_an_error_of_rank_zero_is_raised_on_every_rank(backend):
    found = run_ranks(backend, 2, receive_error, timeout=60)
    notes = ["while the third was written"]
    assert found == [("OutputError", "checkpoint: no space left", notes)] * 2


@pytest.mark.parametrize(
    ("length", "piece"), [(1, 1 << 20), (1000, 999), (1000, 8000), (1000, 8001), (1000, 1)]
)
def test_bytes_arrive_in_pieces_of_any_size(length, piece, monkeypatch):
    monkeypatch.setattr("pycobre.comm.collectives.PIECE_BYTES", piece)  # put back what the ranks change
    assert run_ranks("threads", 2, receive_bytes, length, piece, timeout=60) == [[True, True]] * 2


@pytest.mark.parametrize("backend", ["threads", "shm", "tcp"])
@pytest.mark.parametrize("lengths", [(3, 0, 5), (0, 0, 0), (1, 1, 1)])
def test_rows_and_arrays_of_all_ranks_are_gathered_in_rank_order(backend, lengths):
    for dtype in ("f8", "i4", "?"):
        assert run_ranks(backend, 3, gather, lengths, dtype, timeout=60) == [[True, True]] * 3


def test_a_forged_number_of_elements_is_an_error():
    _, survivor = run_ranks("threads", 2, receive_forged_size, timeout=60)
    text = "allgatherv: the length that rank 0 announced: expected 0 elements or more, got -3"
    assert survivor == ("CollectiveFailed", text)


@given(st.lists(st.integers(0, 9)).map(tuple))
def test_displacements_follow_one_another(counts):
    assert displacements(counts) == tuple(sum(counts[:rank]) for rank in range(len(counts)))
