"""The stage LP has the optimum of a second formulation, for random states and noises."""

from __future__ import annotations

import mini_sddp
import numpy as np
import pytest
from random_case import random_case
from second_formulation import SecondStage

from pycobre.hydro.build import build_model

KNOWN = (
    "blocks lags evaporation generic limits withdrawal diversion sources random_load contracts pumping segments",
    "fpha groups limits generic evaporation",
    "blocks fpha overrides withdrawal sources random_load lags",
    "blocks groups limits diversion pumping contracts generic",
    "lags correlation overrides evaporation segments generic limits",
    "blocks lags fpha evaporation generic limits withdrawal diversion sources random_load contracts pumping groups "
    "segments",
    "blocks filling limits generic overrides",
    "lags filling evaporation withdrawal diversion pumping",
    "blocks anticipated overrides segments random_load",
    "blocks lags filling anticipated fpha groups contracts sources",
    "blocks by_block contracts pumping sources random_load",
    "blocks block_costs lags fpha groups limits evaporation",
    "blocks block_costs filling diversion generic segments pumping",
)


@pytest.mark.parametrize("method", ["penalty", "none"])
@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_both_formulations_have_the_same_optimum(number: int, method: str) -> None:
    case = random_case(900 + number, *KNOWN[number].split(), method=method)
    study, draw = build_model(case), np.random.default_rng(number)
    plants, order = len(case.hydros), study.par.order
    for t in range(len(case.stages)):
        solver = mini_sddp.StageSolver(study.problem.nodes[t], last=True)
        for _ in range(4):
            low = [h.reservoir.min_storage_hm3 for h in case.hydros]
            storage = low + draw.uniform(0.0, 12.0, plants)
            lags = draw.uniform(2.0, 30.0, (order, plants))
            noise = draw.normal(0.0, 0.7, study.layout.dimension)
            committed = {g.id: draw.uniform(0.0, 4.0) for g in case.thermals if g.anticipated_config}
            lanes = [[now, *[1.0] * later] for later, now in enumerate(committed.values())]
            state = np.concatenate([storage, lags.reshape(-1), *lanes])
            found = solver.solve(state, study.noise[t].values(noise))[0]
            second = SecondStage(case, t, study.par.sigma[t], storage, lags, noise, committed).lp.optimum()
            assert found == pytest.approx(second, rel=1e-8)
