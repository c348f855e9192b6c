"""The LP of one stage, equation by equation."""

from __future__ import annotations

from pycobre.hydro.equations import anticipated, filling, generic, power, turbines, water
from pycobre.hydro.equations.index import Index
from pycobre.hydro.equations.resolve import StageNumbers
from pycobre.hydro.equations.stage_builder import StageLp, StageLpBuilder, StageModel
from pycobre.hydro.model.case import Case

__all__ = ["build_stage_lp"]


def build_stage_lp(case: Case, index: Index, numbers: StageNumbers, model: StageModel) -> StageLp:
    """Write all equations of one stage."""
    d = StageLpBuilder(case, index, numbers, model)
    water.add_state(d)
    water.add_flows(d)
    power.add_power(d)
    water.add_balance(d)
    water.add_inflow(d)
    turbines.add_generation(d)
    water.add_evaporation(d)
    water.add_outflow_limits(d)
    turbines.add_turbine_limits(d)
    power.add_load_balance(d)
    filling.add_storage_targets(d)
    anticipated.add_commitments(d)
    generic.add_generic_constraints(d)
    return d.finish()
