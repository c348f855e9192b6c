"""Cut selection against its definition, evaluated the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sddp_runs import PATIENT

from pycobre.errors import OptionError
from pycobre.sddp import Level1, LimitedMemoryLevel1
from pycobre.sddp.selection import SelectionMemory
from pycobre.solver import CutView


@st.composite
def histories(draw):
    """Rounds of (new cuts, new points) of small integers, so that ties are exact and frequent."""
    numbers = st.integers(-3, 3).map(float)
    rounds = []
    for _ in range(draw(st.integers(1, 4))):
        cuts = draw(st.lists(st.tuples(numbers, numbers, numbers), max_size=4))
        points = draw(st.lists(st.tuples(numbers, numbers), max_size=4))
        rounds.append((np.array(cuts).reshape(-1, 3), np.array(points).reshape(-1, 2)))
    return rounds


@PATIENT
@given(histories())
def test_incremental_choice_is_the_definition(rounds):
    level1, limited = SelectionMemory(), SelectionMemory()
    cuts, points = np.zeros((0, 3)), np.zeros((0, 2))
    for new_cuts, new_points in rounds:
        cuts, points = np.concatenate([cuts, new_cuts]), np.concatenate([points, new_points])
        pool = CutView(cuts[:, 0].copy(), cuts[:, 1:].copy(), len(cuts))
        masks = []
        for memory, rule in ((level1, Level1()), (limited, LimitedMemoryLevel1())):
            masks.append(memory.choose(rule, pool, points).tolist())
        values = cuts[:, 0] + points @ cuts[:, 1:].T if len(cuts) else np.zeros((len(points), 0))
        best = [np.flatnonzero(row == row.max()).tolist() for row in values] if len(cuts) else []
        assert masks[0] == [int(any(slot in slots for slots in best)) for slot in range(len(cuts))]
        assert masks[1] == [int(any(slot == slots[0] for slots in best)) for slot in range(len(cuts))]


def test_nonsense_is_refused():
    with pytest.raises(OptionError, match="selection every: expected at least 1 iteration, got 0"):
        Level1(every=0)
    with pytest.raises(OptionError, match="selection tolerance: expected a number from 0 to 1, got -1"):
        LimitedMemoryLevel1(tolerance=-1)
