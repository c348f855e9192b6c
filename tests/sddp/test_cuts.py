"""Cut pools: growth keeps every number, views stay valid, and no more is reserved than a run can need."""

from __future__ import annotations

import numpy as np
import pytest

from pycobre.comm import LocalBackend
from pycobre.sddp import Cuts
from pycobre.sddp.cuts import CutPool, CutRecords
from pycobre.testing import run_ranks


def fill(comm, rounds: int) -> tuple[bytes, bytes, int]:
    pool = CutPool(comm, 3, 2)
    rng = np.random.default_rng(5)
    for iteration in range(1, rounds + 1):
        slope = rng.normal(size=(3, 3))
        pool.append(CutRecords.pack(slope[:, 0], slope, None), iteration, np.arange(3, dtype=np.int32), 7)
    cuts = pool.cuts()
    pool.close()
    return cuts.intercept.tobytes(), cuts.slope.tobytes(), len(cuts)


def test_growth_keeps_every_number_on_every_rank():
    rng = np.random.default_rng(5)
    slopes = np.concatenate([rng.normal(size=(3, 3)) for _ in range(20)])
    expected = (slopes[:, 0].tobytes(), slopes.tobytes(), 60)
    assert fill(LocalBackend(), 20) == expected
    assert run_ranks("shm", 3, fill, 20) == [expected] * 3


def keep_points(comm) -> tuple[bytes, bytes, int, int]:
    """Another policy's cuts, whose points are not known; then cuts with points; then all of it taken over."""
    rng = np.random.default_rng(8)
    pool = CutPool(comm, 3, 2, keep_points=True)
    pool.restore(Cuts.none(3))
    pool.close()
    pool = CutPool(comm, 3, 2, keep_points=True)
    first = rng.normal(size=(4, 3))
    zero = np.zeros(4, np.int32)
    pool.restore(Cuts(first[:, 0], first, zero, zero, zero, np.ones(4, np.uint8)))
    for iteration in range(1, 6):
        slope, state = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
        records = CutRecords.pack(slope[:, 0], slope, state)
        pool.append(records, iteration, np.arange(3, dtype=np.int32), 7)
    again = CutPool(comm, 3, 1, keep_points=True)
    again.restore(pool.cuts(), pool.points())
    same = again.points().tobytes() == pool.points().tobytes()
    found = pool.points().tobytes(), pool.cuts().slope.tobytes(), len(pool.points()), int(same)
    pool.close()
    again.close()
    return found


def test_points_stay_with_their_cuts_on_every_rank():
    rng = np.random.default_rng(8)
    slopes, points = [rng.normal(size=(4, 3))], []
    for _ in range(5):
        slopes.append(rng.normal(size=(3, 3)))
        points.append(rng.normal(size=(3, 3)))
    expected = (np.concatenate(points).tobytes(), np.concatenate(slopes).tobytes(), 15, 1)
    assert keep_points(LocalBackend()) == expected
    assert run_ranks("shm", 3, keep_points) == [expected] * 3


def test_without_a_selection_no_points_are_kept():
    pool = CutPool(LocalBackend(), 3, 2)
    pool.append(CutRecords.pack(np.zeros(2), np.zeros((2, 3)), None), 1, np.arange(2, dtype=np.int32), 0)
    assert pool.points().shape == (0, 3)


def test_views_outlive_growth_and_closing():
    pool = CutPool(LocalBackend(), 1, 2)
    one = np.ones((2, 1))
    pool.append(CutRecords.pack(one[:, 0], one, None), 1, np.arange(2, dtype=np.int32), 0)
    before = pool.view()
    pool.append(CutRecords.pack(2 * one[:, 0], 2 * one, None), 2, np.arange(2, dtype=np.int32), 0)
    assert before.intercept[: before.count].tolist() == [1.0, 1.0]
    cuts = pool.cuts()
    pool.close()
    assert cuts.slope[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert cuts.iteration.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(("expected", "capacity"), [(None, 12), (10, 10), (4, 9)])
def test_room_doubles_up_to_what_is_expected(expected, capacity):
    pool = CutPool(LocalBackend(), 1, 6, expected)
    for iteration in range(3):
        pool.append(CutRecords.pack(np.zeros(3), np.zeros((3, 1)), None), iteration, np.zeros(3, np.int32), 0)
    assert pool.capacity == capacity


def test_switching_off_is_a_mask():
    pool = CutPool(LocalBackend(), 1, 4)
    pool.append(CutRecords.pack(np.arange(4.0), np.zeros((4, 1)), None), 1, np.arange(4, dtype=np.int32), 0)
    assert pool.view().active is None
    pool.select(np.array([1, 0, 0, 1], np.uint8))
    assert pool.active_count == 2
    pool.append(CutRecords.pack(np.zeros(1), np.zeros((1, 1)), None), 2, np.zeros(1, np.int32), 0)
    assert pool.cuts().active.tolist() == [1, 0, 0, 1, 1]
    again = CutPool(LocalBackend(), 1, 1)
    again.restore(pool.cuts())
    assert again.active_count == 3
    assert len(Cuts.none(2)) == 0


@pytest.mark.parametrize("with_state", [False, True])
def test_records_are_read_as_they_were_packed(with_state):
    rng = np.random.default_rng(3)
    intercept, slope, state = rng.normal(size=4), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    records = CutRecords.pack(intercept, slope, state if with_state else None)
    assert records.rows.shape == (4, CutRecords.width(3, with_state=with_state))
    picked = records.take(np.array([3, 1]))
    assert picked.intercept.tolist() == intercept[[3, 1]].tolist()
    assert picked.slope.tobytes() == slope[[3, 1]].tobytes()
    assert picked.state.tobytes() == (state[[3, 1]].tobytes() if with_state else b"")
