"""The opening tree of a case: standardised noise of every stage's openings, correlated in space."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre.hydro.equations.index import Index
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.config import FileOpenings
from pycobre.hydro.uncertainty.history import history_windows
from pycobre.hydro.uncertainty.inflows import initial_lags
from pycobre.hydro.uncertainty.noise import NoiseLayout
from pycobre.hydro.uncertainty.periods import period_numbers
from pycobre.stochastic import streams
from pycobre.stochastic.correlation import correlate
from pycobre.stochastic.openings import draw_openings
from pycobre.stochastic.par import Par

__all__ = ["opening_noise", "tree_seed"]


def tree_seed(case: Case) -> int:
    """The seed of the opening tree and of in-sample draws. As in Cobre, its sign does not matter."""
    given = case.config.training.tree_seed
    return streams.DEFAULT_SEED if given is None else abs(given)


def opening_noise(case: Case, index: Index, layout: NoiseLayout, par: Par) -> tuple[F64, ...]:
    """Noise of every stage, [openings, dimension]: from the file, or drawn as the stage says."""
    source = case.config.training.scenario_source
    if source is not None and isinstance(source.openings, FileOpenings):
        return _from_file(case, layout)
    seed = tree_seed(case)
    periods = period_numbers(case)
    # The draws of all stages that have one of their own, in one go.
    plain = [stage for stage in case.stages if stage.sampling_method == "saa"]
    counts = [stage.num_openings or 1 for stage in plain]
    ids = [stage.id for stage in plain]
    drawn_saa = dict(zip(ids, streams.opening_normals(seed, counts, ids, layout.dimension), strict=True))
    found: list[F64] = []
    for t, stage in enumerate(case.stages):
        count = stage.num_openings or 1
        if t and periods[t] == periods[t - 1]:
            shared = found[-1][:count]
            missing = np.zeros((count - shared.shape[0], layout.dimension))
            found.append(np.concatenate([shared, missing]))
            continue
        if stage.sampling_method == "historical_residuals":
            found.append(_residuals(case, index, layout, par, t, seed))
            continue
        if stage.id in drawn_saa:
            drawn = drawn_saa[stage.id]
        else:
            drawn = draw_openings(stage.sampling_method, seed, stage.id, count, layout.dimension)
        found.append(layout.by_id(correlate(drawn, layout.groups(stage))))
    return tuple(found)


def _residuals(case: Case, index: Index, layout: NoiseLayout, par: Par, t: int, seed: int) -> F64:
    """Openings whose inflow noise is that of windows of history, which are correlated as nature was.

    There are no more openings than windows; a window may come twice.
    """
    stage = case.stages[t]
    windows = history_windows(case, index, case.config.training.scenario_source)
    residuals = windows.noise(par, initial_lags(case, index, par.order))[:, t]
    count = min(stage.num_openings or 1, residuals.shape[0])
    noise = draw_openings("saa", seed, stage.id, count, layout.dimension)
    window = streams.opening_seed(seed, np.arange(count), stage.id) % np.uint64(residuals.shape[0])
    noise[:, : layout.hydros] = residuals[window.astype(np.intp)]
    return noise


def _from_file(case: Case, layout: NoiseLayout) -> tuple[F64, ...]:
    table = case.noise_openings
    found: list[F64] = []
    for stage in case.stages:
        rows = table.stage_id == stage.id
        opening, entity, value = table.opening_index[rows], table.entity_index[rows], table.value[rows]
        count = int(opening.max()) + 1
        noise = np.zeros((count, layout.dimension))
        noise[opening, entity] = value
        found.append(layout.by_id(noise))
    return tuple(found)
