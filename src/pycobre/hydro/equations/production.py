"""The production function of every plant in one stage: one productivity, or the planes of an FPHA model."""

from __future__ import annotations

import numpy as np

from pycobre._util.arrays import F64
from pycobre._util.frozen import frozen
from pycobre.errors import CaseError
from pycobre.hydro.equations.planes import fitted_planes
from pycobre.hydro.model.case import Case
from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.parameters import chosen_model, table_value
from pycobre.hydro.model.production import ProductionModel
from pycobre.hydro.model.system import Hydro
from pycobre.hydro.model.table import NO_ID

__all__ = ["Gamma", "Production", "production", "productions"]

EQUIVALENT = "equivalent_productivity_mw_per_m3s"


class Gamma:
    """The columns of an array of planes."""

    CONSTANT = 0  #: MW
    VOLUME = 1  #: MW per hm³
    TURBINED = 2  #: MW per m³/s
    SPILLED = 3  #: MW per m³/s


@frozen(eq=False)
class Production:
    """generation = `productivity` · turbined; or, with planes, at most their minimum.

    A row of `planes` is (γ0, γv, γq, γs), by `Gamma`: generation ≤ γ0 + γv·(v_in + v)/2 + γq·turbined + γs·spilled.
    """

    productivity: float | None
    planes: F64 | None = None


def productions(case: Case, stage: Stage) -> tuple[Production, ...]:
    """The models of all plants in one stage."""
    models = {entry.hydro_id: entry for entry in case.production_models}
    return tuple(_production(case, models.get(hydro.id), hydro, stage) for hydro in case.hydros)


def production(case: Case, hydro: Hydro, stage: Stage) -> Production:
    """The model of one plant in one stage. A linearised head is its productivity at the reference."""
    entry = next((entry for entry in case.production_models if entry.hydro_id == hydro.id), None)
    return _production(case, entry, hydro, stage)


def _production(case: Case, entry: ProductionModel | None, hydro: Hydro, stage: Stage) -> Production:
    chosen = chosen_model(entry, hydro, stage)
    model = chosen if isinstance(chosen, str) else chosen.model
    if model == "fpha":
        config = None if isinstance(chosen, str) else chosen.fpha_config
        if config is not None and config.source == "computed":
            return Production(None, fitted_planes(case, hydro, stage, config))
        return Production(None, _planes(case, hydro, stage))
    given = None if isinstance(chosen, str) else chosen.productivity_mw_per_m3s
    value = table_value(case.energy_productivity, hydro, stage, EQUIVALENT) if given is None else given
    if value is None:
        raise CaseError(
            f"system/hydro_production_models.json: hydro {hydro.id} ({hydro.name}), stage {stage.id}: "
            "expected a productivity, got none. Give productivity_mw_per_m3s there, or a row in "
            "system/hydro_energy_productivity.parquet."
        )
    return Production(value)


def _planes(case: Case, hydro: Hydro, stage: Stage) -> F64:
    """The planes given for this stage, else those given for all stages."""
    table = case.fpha_planes
    mine = table.hydro_id == hydro.id
    rows = np.flatnonzero(mine & (table.stage_id == stage.id))
    if rows.size == 0:
        rows = np.flatnonzero(mine & (table.stage_id == NO_ID))
    if rows.size == 0:
        raise CaseError(
            f"system/fpha_hyperplanes.parquet: hydro {hydro.id} ({hydro.name}), stage {stage.id}: "
            "expected at least one plane, got none. Add rows for the stage, or rows with a null stage_id."
        )
    kappa = np.where(np.isnan(table.kappa[rows]), 1.0, table.kappa[rows])
    return np.stack(
        [kappa * table.gamma_0[rows], table.gamma_v[rows], table.gamma_q[rows], table.gamma_s[rows]], axis=1
    )
