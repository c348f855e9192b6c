"""Turbines: from water to power, and the limits of plants and of their unit groups."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import I32
from pycobre.hydro.equations.production import Gamma
from pycobre.hydro.equations.stage_builder import StageLpBuilder

__all__ = ["add_generation", "add_turbine_limits"]


def add_generation(d: StageLpBuilder) -> None:
    """Generation of every (plant, bus) pair: a multiple of its flow, or a column under its plant's planes.

    Per pair, plane and block: generation − γq·turbined − share·(γv/2 (v + v_in) + γs·spilled) ≤ share·γ0, with
    the pair's share of the plant's turbines. So water that flows through a bus's turbines works for that bus.
    """
    index, hydro, lp = d.index, d.numbers.hydro, d.lp
    planes = {h: p.planes for h, p in enumerate(d.model.production) if p.planes is not None}
    pairs = np.array([p for p, x in enumerate(index.pairs) if x.hydro in planes], dtype=np.intp)
    plants = index.pair_hydro[pairs]
    most = np.minimum(hydro.pair_max_generation[pairs], hydro.plant_max_generation[plants])
    names = [index.pair_names[p] for p in pairs]
    columns = lp.columns(
        "generation", [names, d.blocks], 0.0, np.where(hydro.operates[plants][:, None], most, 0.0)
    )
    d.columns["fpha_generation"] = columns
    d.places["fpha_generation"] = pairs.astype(np.int32)
    local = {int(p): i for i, p in enumerate(pairs)}
    for p, pair in enumerate(index.pairs):
        rho = d.model.production[pair.hydro].productivity
        d.generation.append(
            (columns[local[p]], 1.0) if p in local else (d.columns["turbined"][p], rho or 0.0)
        )
    for i, p in enumerate(pairs.tolist()):
        h, share = index.pairs[p].hydro, _share(d, p)
        gamma = planes[h]
        labels = [[index.pair_names[p]], [str(plane) for plane in range(gamma.shape[0])], d.blocks]
        # A plant that does not operate generates nothing, at volumes that its planes were not made for too.
        most_power = share * gamma[None, :, Gamma.CONSTANT, None] if hydro.operates[h] else np.inf
        rows = lp.rows("production", labels, -np.inf, most_power)[0]
        start, end = d.storage_ends(h)
        lp.add(rows, columns[i][None], 1.0)
        lp.add(rows, d.columns["turbined"][p][None], -gamma[:, Gamma.TURBINED, None])
        lp.add(rows, d.columns["spillage"][h][None], -share * gamma[:, Gamma.SPILLED, None])
        lp.add(rows, start[None], -share * gamma[:, Gamma.VOLUME, None] / 2.0)
        lp.add(rows, end[None], -share * gamma[:, Gamma.VOLUME, None] / 2.0)


def _share(d: StageLpBuilder, p: int) -> float:
    """The pair's part of its plant's turbines by what they can take in, whatever a stage's own limits are."""
    pair = d.index.pairs[p]
    groups = d.case.hydros[pair.hydro].unit_groups
    whole = sum(group.max_turbined_m3s for group in groups)
    if whole <= 0.0:
        return len(pair.groups) / len(groups)
    return sum(groups[g].max_turbined_m3s for g in pair.groups) / whole


def add_turbine_limits(d: StageLpBuilder) -> None:
    """Soft minima of flow and generation: of every (plant, bus) pair, and of whole plants where asked."""
    index, hydro = d.index, d.numbers.hydro
    operates = hydro.operates[:, None]
    pair_operates = operates[index.pair_hydro]
    for what, of_pair, of_plant in (
        ("turbined", hydro.pair_min_turbined, hydro.plant_min_turbined),
        ("generation", hydro.pair_min_generation, hydro.plant_min_generation),
    ):
        cost = hydro.penalty[f"{what}_violation_below"]
        active = pair_operates & (of_pair > 0.0)
        pair_cost = cost[index.pair_hydro]
        _add(d, what, d.soft(f"{what}_below", index.pair_names, of_pair, active, pair_cost, 1))
        active = operates & (of_plant > 0.0)
        rows = d.soft(f"plant_{what}_below", index.hydro_names, of_plant, active, cost, 1)
        _add(d, what, rows[index.pair_hydro])
    _add_plant_caps(d)


def _add_plant_caps(d: StageLpBuilder) -> None:
    """A plant on several buses keeps its own limits, where the sum over its buses could exceed them."""
    index, hydro = d.index, d.numbers.hydro
    for what, cap, parts in (
        ("turbined", hydro.plant_max_turbined, hydro.pair_max_turbined),
        ("generation", hydro.plant_max_generation, hydro.pair_max_generation),
    ):
        most = np.zeros_like(cap)
        np.add.at(most, index.pair_hydro, np.minimum(parts, cap[index.pair_hydro]))
        rows = np.full(cap.shape, -1, dtype=np.int32)
        for h, k in zip(*np.nonzero((most > cap) & hydro.operates[:, None]), strict=True):
            labels = [[index.hydro_names[h]], [d.blocks[k]]]
            rows[h, k] = d.lp.rows(f"plant_{what}_limit", labels, -np.inf, cap[h, k])[0, 0]
        _add(d, what, rows[index.pair_hydro])


def _add(d: StageLpBuilder, what: str, rows: I32) -> None:
    """Add every pair's flow or generation to its rows [pair, block], where there are any."""
    if what == "turbined":
        d.add_where(rows, d.columns["turbined"], 1.0)
    elif d.generation:
        columns = np.stack([columns for columns, _ in d.generation])
        factors = np.array([factor for _, factor in d.generation])
        d.add_where(rows, columns, factors[:, None])
