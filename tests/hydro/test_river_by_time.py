"""Water that takes time, followed along the clock: a second formulation of rivers, in which no share is computed.

A plant's releases are a function of time, constant in every block of chronological stages and in every stage of
parallel blocks. What arrives in a span is the integral of that function, shifted by the travel time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from second_formulation import HM3, Dense, Terms
from small_case import DEFICIT, config, hydro, inflows, one_reservoir, productivity, stages

from pycobre.app import simulate, train
from pycobre.hydro.build import build_model
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Block
from pycobre.hydro.model.initial import InitialConditions, InitialStorage, PastDefluence
from pycobre.problem.extensive import solve_extensive_form

PAST = (
    (date(2023, 12, 1), date(2023, 12, 29), 3.0),
    (date(2023, 12, 29), date(2023, 12, 31), 17.0),
    (date(2023, 12, 31), date(2024, 1, 1), 8.0),
)
WEEKS = ((60.0, 70.0, 38.0), (24.0, 80.0, 64.0), (168.0,), (50.0, 118.0))
CHRONOLOGICAL = (True, True, False, True)


def rivers(hours: tuple[float, float], modes: tuple[bool, ...] = CHRONOLOGICAL) -> Case:
    """Two plants above a third, with travel times of their own; load and costs that make every hour matter."""
    periods = tuple(
        replace(
            stage,
            blocks=tuple(Block(id=k, name=f"b{k}", hours=h) for k, h in enumerate(lengths)),
            block_mode="chronological" if chained else "parallel",
        )
        for stage, lengths, chained in zip(stages(len(WEEKS)), WEEKS, modes, strict=True)
    )
    plants = (
        hydro(0, volume=12.0, most=30.0, downstream_id=2, travel_time_hours=hours[0]),
        hydro(1, volume=7.0, most=25.0, downstream_id=2, travel_time_hours=hours[1]),
        hydro(2, volume=5.0, most=45.0),
    )
    case = one_reservoir(
        periods,
        hydros=plants,
        config=config(iterations=60),
        production_models=tuple(
            model
            for h, rho in zip(plants, (0.4, 0.5, 0.9), strict=True)
            for model in productivity(h, value=rho)
        ),
        inflow_stats=inflows(periods, {0: (14.0, 0.0), 1: (9.0, 0.0), 2: (2.0, 0.0)}),
        initial_conditions=InitialConditions(
            storage=tuple(InitialStorage(hydro_id=h, value_hm3=v) for h, v in enumerate((6.0, 3.0, 1.0))),
            filling_storage=(),
            past_defluences=tuple(
                PastDefluence(hydro_id=h, start_date=a, end_date=b, value_m3s=v + h)
                for a, b, v in PAST
                for h in (0, 1)
            ),
        ),
    )
    thermals = tuple(
        replace(
            case.thermals[0],
            id=i,
            cost_per_mwh=cost,
            generation=replace(case.thermals[0].generation, max_mw=most),
        )
        for i, (cost, most) in enumerate(((30.0, 20.0), (70.0, 15.0), (150.0, 60.0)))
    )
    return replace(case, thermals=thermals)


class Clock:
    """The spans of a case on its clock, and the hours that two stretches of time have in common."""

    def __init__(self, case: Case) -> None:
        self.spans: list[tuple[int, int | None, float, float]] = []  # stage, block or None, from, until
        now = 0.0
        for t, stage in enumerate(case.stages):
            chained = stage.block_mode == "chronological"
            for k, length in enumerate([b.hours for b in stage.blocks] if chained else [stage.hours]):
                self.spans.append((t, k if chained else None, now, now + length))
                now += length

    @staticmethod
    def common(a: float, b: float, c: float, d: float) -> float:
        return max(0.0, min(b, d) - max(a, c))


def past_volume(case: Case, h: int, since: float, until: float) -> float:
    """hm³ that left a plant before the study, between two times on the clock (in hours, below 0)."""
    start, volume = case.stages[0].start_date, 0.0
    for window in case.initial_conditions.past_defluences:
        if window.hydro_id == h:
            a, b = (24.0 * (day - start).days for day in (window.start_date, window.end_date))
            volume += HM3 * window.value_m3s * Clock.common(a, b, since, until)
    return volume


def whole_horizon(case: Case) -> float:
    """The cheapest operation of all stages at once, with water balances along the clock."""
    lp, clock = Dense(), Clock(case)
    release: dict[int, list[tuple[float, float, Terms]]] = {h.id: [] for h in case.hydros}
    for t, stage in enumerate(case.stages):
        for k, block in enumerate(stage.blocks):
            power: Terms = {}
            for h, model in zip(case.hydros, case.production_models, strict=True):
                lp.var(("q", h.id, t, k), 0.0, h.generation.max_turbined_m3s)
                lp.var(("s", h.id, t, k), 0.0, None, 0.01 * block.hours)
                rho = model.stage_ranges[0].productivity_mw_per_m3s  # type: ignore[union-attr]
                assert rho is not None
                lp.most.append(({("q", h.id, t, k): rho}, h.generation.max_generation_mw))
                power["q", h.id, t, k] = rho
            for g in case.thermals:
                lp.var(("g", g.id, t, k), 0.0, g.generation.max_mw, g.cost_per_mwh * block.hours)
                power["g", g.id, t, k] = 1.0
            lp.var(("d", t, k), 0.0, None, DEFICIT * block.hours)
            lp.var(("x", t, k), 0.0, None, block.hours)
            power |= {("d", t, k): 1.0, ("x", t, k): -1.0}
            lp.equal.append((power, 80.0))
    for t, part, since, until in clock.spans:
        blocks = case.stages[t].blocks
        for h in case.hydros:
            mean: Terms = {}  # m³/s over the span
            for j in range(len(blocks)) if part is None else [part]:
                for name in ("q", "s"):
                    mean[name, h.id, t, j] = blocks[j].hours / (until - since)
            release[h.id].append((since, until, mean))
    stats = case.inflow_stats
    for i, h in enumerate(case.hydros):
        before: Terms = {}
        was = case.initial_conditions.storage[i].value_hm3
        for n, (t, _, since, until) in enumerate(clock.spans):
            lp.var(("v", h.id, n), 0.0, h.reservoir.max_storage_hm3)
            inflow = stats.mean_m3s[(stats.hydro_id == h.id) & (stats.stage_id == t)][0]
            balance: Terms = {("v", h.id, n): 1.0}
            right = was + HM3 * (until - since) * inflow
            for key, value in before.items():
                balance[key] = -value
            for key, value in release[h.id][n][2].items():
                balance[key] = HM3 * (until - since) * value
            for above in case.hydros:
                if above.downstream_id == h.id:
                    late = above.travel_time_hours or 0.0
                    right += past_volume(case, above.id, since - late, min(0.0, until - late))
                    for a, b, mean in release[above.id]:
                        hours = Clock.common(a + late, b + late, since, until)
                        for key, value in mean.items() if hours else ():
                            balance[key] = balance.get(key, 0.0) - HM3 * hours * value
            lp.equal.append((balance, right))
            before, was = {("v", h.id, n): 1.0}, 0.0
    return lp.optimum()


TRAVELS = [(30.0, 30.0), (100.0, 45.0), (12.5, 290.0), (500.0, 61.0)]


@pytest.mark.parametrize("hours", TRAVELS)
def test_bound_and_extensive_form_are_the_optimum_along_the_clock(hours: tuple[float, float]) -> None:
    """Two rivers of different length meet, which Cobre refuses between chronological blocks."""
    case = rivers(hours)
    best = whole_horizon(case)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(best, rel=1e-9)
    assert train(case).final_lower_bound == pytest.approx(best, rel=1e-7)


def test_stages_without_order_have_one_balance() -> None:
    case = rivers((100.0, 45.0), modes=(False,) * 4)
    assert solve_extensive_form(build_model(case).problem) == pytest.approx(whole_horizon(case), rel=1e-9)


def test_reservoirs_hold_what_the_clock_brings() -> None:
    """From the operation in the tables: released water, shifted, makes the storage of the plant below."""
    case = rivers((100.0, 45.0))
    table = simulate(case, train(case).policy, 1).tables["hydros"].to_pydict()
    row = {
        key: n
        for n, key in enumerate(zip(table["hydro_id"], table["stage_id"], table["block_id"], strict=True))
    }
    clock = Clock(case)

    def mean(h: int, t: int, k: int | None, name: str) -> float:
        """Over a block, or over a stage without order in it."""
        if k is not None:
            return float(table[name][row[h, t, k]])
        hours = [block.hours for block in case.stages[t].blocks]
        return float(np.average([table[name][row[h, t, j]] for j in range(len(hours))], weights=hours))

    volume = 1.0
    for t, k, since, until in clock.spans:
        length = until - since
        volume += HM3 * length * (2.0 - mean(2, t, k, "outflow_m3s"))
        for h, late in ((0, 100.0), (1, 45.0)):
            volume += past_volume(case, h, since - late, min(0.0, until - late))
            for u, j, a, b in clock.spans:
                volume += HM3 * mean(h, u, j, "outflow_m3s") * Clock.common(a + late, b + late, since, until)
        last = len(case.stages[t].blocks) - 1 if k is None else k
        assert table["storage_final_hm3"][row[2, t, last]] == pytest.approx(volume, abs=1e-8)
