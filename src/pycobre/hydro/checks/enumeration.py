"""Enumeration of all paths, and the gap that is exact because of it."""

from __future__ import annotations

import numpy as np

from pycobre.hydro.checks.registry import Findings, check, error
from pycobre.hydro.model.config import Config, Enumerated, FileOpenings, GapRule, ScenarioSource
from pycobre.hydro.model.findings import Layer
from pycobre.hydro.model.graph import MOST_PATHS, graph_of
from pycobre.hydro.model.horizon import PolicyGraph, Stage
from pycobre.hydro.model.scenarios import ArCoefficients, ExternalInflows, ExternalLoads, ExternalSources
from pycobre.hydro.model.table import Table

PHYSICAL = Layer.PHYSICAL


@check
def paths(config: Config, policy_graph: PolicyGraph, stages: tuple[Stage, ...]) -> Findings:
    """There are not more paths than can be walked in every iteration."""
    source = config.training.scenario_source
    known = {stage.id for stage in stages}
    sound = stages and all(node.stage_id in known for node in policy_graph.nodes)
    ends = {arc.source_id for arc in policy_graph.transitions} | {
        arc.target_id for arc in policy_graph.transitions
    }
    if not sound or (policy_graph.nodes and not ends <= {node.id for node in policy_graph.nodes}):
        return
    if source is not None and isinstance(source.openings, FileOpenings):
        return
    if policy_graph.type == "cyclic":
        return
    count = graph_of(policy_graph, stages).count_paths([stage.num_openings or 1 for stage in stages])
    for name in ("training", "simulation"):
        if isinstance(getattr(config, name).selection, Enumerated) and count > MOST_PATHS:
            yield error(
                PHYSICAL,
                "paths",
                "config",
                f"at most {MOST_PATHS} paths are enumerated",
                where=f"{name}.selection",
                value=f"{count:,} paths".replace(",", " ") if count < 10**15 else "more than can be counted",
                suggestion="Sample, or let fewer stages branch.",
            )


@check
def drawn_scenarios(
    config: Config,
    policy_graph: PolicyGraph,
    external_inflows: ExternalInflows,
    external_loads: ExternalLoads,
    external_sources: ExternalSources,
    ar_coefficients: ArCoefficients,
) -> Findings:
    """Enumerated paths are those of the openings; other scenarios need nodes that name them."""
    if any(node.scenario_id is not None for node in policy_graph.nodes):
        return
    tables = {"inflow": external_inflows, "load": external_loads, "ncs": external_sources}
    for name in ("training", "simulation"):
        phase = getattr(config, name)
        source: ScenarioSource | None = phase.scenario_source or config.training.scenario_source
        if not isinstance(phase.selection, Enumerated) or source is None:
            continue
        for kind, table in tables.items():
            scheme = getattr(getattr(source, kind), "scheme", "in_sample")
            certain = scheme == "external" and _one_each(table) and not len(ar_coefficients)
            if scheme != "in_sample" and not certain:
                yield error(
                    PHYSICAL,
                    "paths",
                    "config",
                    "enumerated paths take the openings of the stages, or the scenarios that nodes name",
                    where=f"{name}.scenario_source.{kind}",
                    value=scheme,
                    suggestion="Declare policy_graph.nodes with their scenario_id, or sample.",
                )


@check
def gap_rules(config: Config) -> Findings:
    where = "training.stopping_rules"
    for rule in config.training.stopping_rules:
        if not isinstance(rule, GapRule):
            continue
        given = [value for value in (rule.tolerance, rule.relative_tolerance) if value is not None]
        if not isinstance(config.training.selection, Enumerated):
            text = "the rule gap needs an exact upper bound"
            suggestion = 'Use {"method": "enumerated"} as training.selection, or bound_stalling.'
            yield error(
                PHYSICAL, "gap", "config", text, where=where, value="sampled paths", suggestion=suggestion
            )
        if not given:
            text = "a gap has a tolerance or a relative_tolerance"
            yield error(PHYSICAL, "gap", "config", text, where=where, value="neither")
        for value in given:
            if not value >= 0.0:
                yield error(PHYSICAL, "gap", "config", "a gap is not negative", where=where, value=value)


@check
def growing(config: Config) -> Findings:
    if isinstance(config.training.selection, Enumerated) and config.training.growing_trajectories is not None:
        text = "the number of paths does not grow where all are enumerated"
        yield error(PHYSICAL, "paths", "config", text, where="training.growing_trajectories", value="given")


def _one_each(table: Table) -> bool:
    """Whether every stage has one scenario."""
    columns = (getattr(table, "stage_id"), getattr(table, "scenario_id"))  # noqa: B009
    pairs = np.unique(np.stack(columns), axis=1)
    return bool(len(np.unique(pairs[0])) == pairs.shape[1])
