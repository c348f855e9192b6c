"""The native fast path: it accepts only calls that the rules accept, with the same result."""

from __future__ import annotations

import gc
import os
import random
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from array_changes import CHANGES, changed
from hypothesis import given, settings
from hypothesis import strategies as st

from pycobre.comm import (
    CommError,
    Communicator,
    InvalidBufferSize,
    LocalBackend,
    ReduceOp,
    ShmBackend,
    ShmConfig,
    checks,
)
from pycobre.testing import run_ranks


@pytest.fixture(scope="module")
def alone() -> Iterator[ShmBackend]:
    with ShmBackend(ShmConfig(f"pycobre-fast-path-{os.getpid()}", 0, 1, 60.0)) as comm:
        yield comm


class Flag(int):
    """An int, but not the very class."""


@st.composite
def arrays(draw: st.DrawFn) -> tuple[Any, ...]:
    """How to make an array in one piece of memory, or something that is none."""
    dtype = draw(st.sampled_from([*"?bBhHiIlLqQefdgFD", ">f8", "i4,f8", "M8[s]"]))
    start = draw(st.sampled_from([0, 16, 32, 64, 100]))
    change = draw(st.sampled_from(["", "", "", "", *CHANGES]))
    return dtype, start, draw(st.integers(0, 4)), change


def made(store: np.ndarray[Any, Any], recipe: tuple[Any, ...]) -> Any:
    letter, start, count, change = recipe
    dtype = np.dtype(letter)
    return changed(store[start : start + count * dtype.itemsize].view(dtype), change)


numbers = st.sampled_from([0, 1, 2, 3, 4, 4, 3, 2, -1, 1 << 70, True, 2.0, np.int64(2), Flag(2), None, "2"])
layouts = st.one_of(
    st.integers(0, 4).map(lambda count: (count,)),
    st.lists(numbers, max_size=2),
    st.lists(numbers, max_size=2).map(tuple),
    st.sampled_from([np.array([2]), None, range(2, 3)]),
)
operations = st.sampled_from([*ReduceOp, "sum", None, 1])


def outcome(
    comm: Communicator, name: str, recipes: Any, rest: tuple[Any, ...], named: bool
) -> tuple[Any, ...]:
    """What a call did to the memory, or what it raised."""
    store = np.arange(256, dtype=np.uint8)
    args = [*(made(store, recipe) for recipe in recipes), *rest]
    keywords = {"allgatherv": "displs", "allreduce": "op", "broadcast": "root"}
    options = {keywords[name]: args.pop()} if named else {}
    try:
        getattr(comm, name)(*args, **options)
    except (CommError, TypeError) as error:
        assert store.tobytes() == bytes(range(256))
        return type(error), str(error)
    return (store.tobytes(),)


@settings(max_examples=1500, deadline=None)
@given(
    recipes=st.tuples(arrays(), arrays()),
    counts=layouts,
    displs=layouts,
    op=operations,
    root=st.sampled_from([0, 0, 1, -1, False, 1 << 70, 0.0, None]),
    alike=st.booleans(),
    named=st.booleans(),
)
def test_one_rank_does_and_says_what_the_local_backend_does(
    alone: ShmBackend, recipes: Any, counts: Any, displs: Any, op: Any, root: Any, alike: bool, named: bool
) -> None:
    local = LocalBackend()
    if alike:  # else two random arrays hardly ever fit
        (dtype, _, count, change), (_, start, _, _) = recipes
        recipes = recipes[0], (dtype, start, count, change)
    for name, chosen, rest in (
        ("allreduce", recipes, (op,)),
        ("allgatherv", recipes, (counts, displs)),
        ("broadcast", recipes[:1], (root,)),
    ):
        assert outcome(alone, name, chosen, rest, named) == outcome(local, name, chosen, rest, named)


def judgement(comm: Communicator, *args: Any) -> str | None:
    """What the rules say against an `allgatherv`."""
    try:
        checks.check_allgatherv(*args, comm.rank, checks.Layouts(comm.size))
    except InvalidBufferSize as error:
        return str(error)
    return None


def random_layouts(comm: Communicator, seed: int) -> tuple[int, int]:
    """Every rank makes the same layouts, right and wrong, and asks the rules before it asks the backend."""
    chance = random.Random(seed)
    passed = refused = 0
    for _ in range(600):
        counts = [chance.choice([0, 1, 2, 3]) for _ in range(comm.size)]
        displs = [sum(counts[:rank]) + chance.choice([0, 0, 0, 1]) for rank in range(comm.size)]
        if chance.random() < 0.3:
            chance.shuffle(displs)
        if chance.random() < 0.1:
            chance.choice([counts, displs])[chance.randrange(comm.size)] = -1
        if chance.random() < 0.1:
            chance.choice([counts, displs]).append(0)
        kind = chance.choice([tuple, list])
        send = np.full(max(0, counts[comm.rank]), comm.rank + 1)
        recv = np.zeros(chance.choice([6, 9, 12]), np.int64)
        layout = kind(counts), kind(displs)
        expected = judgement(comm, send, recv, *layout)
        if expected is not None:
            refused += 1
            with pytest.raises(InvalidBufferSize) as caught:
                comm.allgatherv(send, recv, *layout)
            assert str(caught.value) == expected
            assert not recv.any()
        else:
            passed += 1
            wanted = np.zeros_like(recv)
            for rank in range(comm.size):
                wanted[displs[rank] : displs[rank] + counts[rank]] = rank + 1
            comm.allgatherv(send, recv, *layout)
            assert np.array_equal(recv, wanted)
    return passed, refused


def test_layouts_are_judged_as_by_the_rules() -> None:
    results = run_ranks("shm", 3, random_layouts, 5)
    assert results[0] == results[1] == results[2]
    assert min(results[0]) > 50


def changing_lists(comm: Communicator) -> None:
    """The same two lists with other contents are another layout; the same two tuples are the same one."""
    counts, displs = [1, 2], [0, 1]
    fixed = (2, 1), (0, 2)
    for _ in range(3):
        for layout in ((counts, displs), fixed, (counts, displs)):
            recv = np.zeros(4)
            comm.allgatherv(np.full(layout[0][comm.rank], comm.rank + 1.0), recv, *layout)
            wanted = np.zeros(4)
            for rank in range(2):
                wanted[layout[1][rank] : layout[1][rank] + layout[0][rank]] = rank + 1
            assert np.array_equal(recv, wanted)
            counts.reverse()
            displs[1] = counts[0] + 1
    counts[0] = -1
    with pytest.raises(InvalidBufferSize, match=r"counts\[0\] to be 0 or more, got -1"):
        comm.allgatherv(np.ones(1), np.ones(4), counts, displs)


def test_lists_may_change_between_calls() -> None:
    run_ranks("shm", 2, changing_lists)


def test_wrong_numbers_of_arguments_are_named(alone: ShmBackend) -> None:
    with pytest.raises(
        TypeError, match=r"Communicator.barrier\(\) takes 1 positional argument but 2 were given"
    ):
        alone.barrier(1)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"Communicator.allreduce\(\) missing 1 required positional argument: 'op'"
    ):
        alone.allreduce(np.ones(1), np.ones(1))  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"Communicator.barrier\(\) got an unexpected keyword argument 'soon'"
    ):
        alone.barrier(soon=True)  # type: ignore[call-arg]
    alone.barrier()


def test_a_communicator_in_a_cycle_is_collected() -> None:
    comm = ShmBackend(ShmConfig(f"pycobre-cycle-{os.getpid()}", 0, 1, 60.0))
    comm._refusal = InvalidBufferSize("cycle", comm, None)
    gone = weakref.ref(comm)
    del comm
    gc.collect()
    assert gone() is None
