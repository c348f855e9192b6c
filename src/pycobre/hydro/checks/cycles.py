"""Cyclic horizons: the first stage follows the last for ever, so that everything has to repeat."""

from __future__ import annotations

from pycobre.hydro.checks.registry import Findings, check, error
from pycobre.hydro.model.config import Config, Enumerated
from pycobre.hydro.model.findings import Finding, Layer
from pycobre.hydro.model.horizon import PolicyGraph, Stage
from pycobre.hydro.model.system import Hydro, Thermal


def _wrong(rule: str, entity: str = "", **more: object) -> Finding:
    return error(
        Layer.PHYSICAL, "cycle", "policy_graph", rule, entity=entity, where="policy_graph.type", **more
    )


@check
def rounds(policy_graph: PolicyGraph, stages: tuple[Stage, ...], config: Config) -> Findings:
    """A round is a number of whole years, costs fade, and paths are sampled from the opening tree."""
    if policy_graph.type != "cyclic" or not stages:
        return
    if policy_graph.nodes:
        yield _wrong("a cyclic horizon has no nodes of its own", value=f"{len(policy_graph.nodes)} nodes")
    first, last = stages[0].start_date, stages[-1].end_date
    if (first.month, first.day) != (last.month, last.day):
        yield _wrong("a cycle lasts whole years", value=f"{first} to {last}")
    rates = [stage.annual_discount_rate_override for stage in stages]
    if policy_graph.annual_discount_rate <= 0.0 and not any(rates):
        yield _wrong(
            "in a cycle the discount rate is above 0: costs would add up for ever",
            value=policy_graph.annual_discount_rate,
        )
    for name in ("training", "simulation"):
        phase = getattr(config, name)
        if isinstance(phase.selection, Enumerated):
            yield _wrong("the paths of a cycle have no end and are not enumerated", value=f"{name}.selection")
        for kind in ("inflow", "load", "ncs"):
            scheme = getattr(getattr(phase.scenario_source, kind, None), "scheme", "in_sample")
            if scheme != "in_sample":
                yield _wrong("a cycle has in-sample scenarios", value=f"{name}: {kind} is {scheme}")
    if config.policy.boundary is not None:
        yield _wrong("nothing lies beyond a cycle", value="policy.boundary")


@check
def nothing_passes(
    policy_graph: PolicyGraph, hydros: tuple[Hydro, ...], thermals: tuple[Thermal, ...]
) -> Findings:
    """Plants neither come nor go, and nothing is under way from one round to the next."""
    if policy_graph.type != "cyclic":
        return
    for what, plants in (("hydro", hydros), ("thermal", thermals)):
        for plant in plants:
            comes = plant.entry_stage_id is not None and plant.entry_stage_id > 0
            if comes or plant.exit_stage_id is not None:
                yield _wrong("in a cycle plants neither enter nor leave service", f"{what} {plant.id}")
    for hydro in hydros:
        if hydro.filling is not None or (hydro.travel_time_hours and hydro.downstream_id is not None):
            value = "filling" if hydro.filling is not None else "travel_time_hours"
            yield _wrong(
                "in a cycle reservoirs do not fill and water arrives at once",
                f"hydro {hydro.id}",
                value=value,
            )
    for thermal in thermals:
        if thermal.anticipated_config is not None:
            yield _wrong("in a cycle generation is not decided ahead", f"thermal {thermal.id}")
