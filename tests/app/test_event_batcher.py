"""Events in batches: all of them, in their order, and none later than the next that matters."""

import pytest

from pycobre.events import (
    Event,
    ForwardFinished,
    IterationFinished,
    RankTiming,
    StageFinished,
    TrainingFinished,
    WarningRaised,
)
from pycobre.launch import event_batcher as batcher_module
from pycobre.launch.channel import Kind
from pycobre.launch.event_batcher import EventBatcher, decode_batch


class Wire:
    """A channel that keeps what is sent, and answers questions."""

    def __init__(self, answer: bytes = b"go on") -> None:
        self.sent: list[tuple[str, list[Event]]] = []
        self._answer = answer

    def send(self, kind: Kind, payload: bytes) -> None:
        assert kind is Kind.EVENT
        self.sent.append(("event", decode_batch(payload)))

    def ask(self, payload: bytes) -> bytes:
        self.sent.append(("question", decode_batch(payload)))
        return self._answer

    @property
    def events(self) -> list[Event]:
        return [event for _, batch in self.sent for event in batch]


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(batcher_module.time, "monotonic", lambda: self.now)


def stage(depth: int) -> StageFinished:
    return StageFinished(
        iteration=1, depth=depth, nodes=("a", "b"), cuts=2, lp_solves=8, solve_s=0.5, exchange_s=0.25
    )


def iteration(number: int) -> IterationFinished:
    return IterationFinished(
        iteration=number,
        lower_bound=1.0,
        upper_bound=2.0,
        upper_bound_std=0.5,
        half_width=0.25,
        gap=1.0,
        cuts_added=3,
        cuts_active=4,
        lp_solves=5,
        simplex_iterations=6,
        forward_s=0.1,
        backward_s=0.2,
        elapsed_s=0.3,
        total_s=0.4,
        worker_id=1,
    )


def test_stages_that_follow_at_once_travel_together(monkeypatch):
    clock, wire = Clock(monkeypatch), Wire()
    batcher = EventBatcher(wire, ask=False)
    told = [stage(5), stage(4), stage(3), iteration(1), stage(5), WarningRaised(message="look"), stage(4)]
    for event in told:
        assert not batcher(event)
        clock.now += 0.001
    assert [len(batch) for _, batch in wire.sent] == [1, 3, 2]
    batcher.flush()
    batcher.flush()  # nothing is left
    assert wire.events == told
    assert [len(batch) for _, batch in wire.sent] == [1, 3, 2, 1]


def test_long_stages_are_told_one_by_one(monkeypatch):
    clock, wire = Clock(monkeypatch), Wire()
    batcher = EventBatcher(wire, ask=False)
    for depth in (3, 2, 1):
        batcher(stage(depth))
        assert wire.events[-1] == stage(depth)
        clock.now += 1.0


@pytest.mark.parametrize(("answer", "stops"), [(b"stop", True), (b"go on", False)])
def test_the_end_of_an_iteration_may_be_a_question(answer, stops):
    wire = Wire(answer)
    batcher = EventBatcher(wire, ask=True)
    forward = ForwardFinished(iteration=1, upper_bound=2.0, upper_bound_std=0.5, lp_solves=7, elapsed_s=0.125)
    assert not batcher(forward)
    assert batcher(iteration(1)) is stops
    assert wire.sent == [("event", [forward]), ("question", [iteration(1)])]


def test_an_event_with_parts_survives_the_trip():
    wire = Wire()
    finished = TrainingFinished(
        reason="iteration_limit",
        converged=False,
        iterations=3,
        lower_bound=1.0,
        upper_bound=2.0,
        gap=1.0,
        cuts=9,
        policy_digest="ab",
        total_s=1.5,
        timing=(RankTiming(rank=0, solve_s=1.0), RankTiming(rank=1, wait_s=0.5)),
    )
    EventBatcher(wire, ask=False)(finished)
    assert wire.events == [finished]


def test_an_event_that_cannot_be_sent_takes_no_other_with_it():
    wire = Wire()
    batcher = EventBatcher(wire, ask=False)
    batcher(iteration(1))
    batcher(stage(3))
    with pytest.raises(TypeError, match="not JSON serializable"):
        batcher(WarningRaised(message=object()))
    batcher.flush()
    assert wire.events == [iteration(1), stage(3)]
