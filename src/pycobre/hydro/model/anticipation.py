"""Anticipated dispatch: the stage in which the generation of another one is decided.

A lead in stages counts them. A lead in hours reaches back from the end of the delivery stage, in block hours: the
decision is taken in the stage where it lands, a stage's own end included. What lands in the delivery stage itself is
ordinary dispatch, what lands before the study was decided then.
"""

from __future__ import annotations

import numpy as np

from pycobre.hydro.model.horizon import Stage
from pycobre.hydro.model.initial import AnticipatedCommitment
from pycobre.hydro.model.system import AnticipatedHours, AnticipatedStages

__all__ = ["BEFORE_STUDY", "commitment_of", "decision_stages"]

BEFORE_STUDY = -1
SLACK = 1e-6  # hours, by which sums of block hours may miss


def decision_stages(lead: AnticipatedStages | AnticipatedHours, stages: tuple[Stage, ...]) -> list[int]:
    """By delivery stage (positions), the stage that decides it; `BEFORE_STUDY` for what was decided before."""
    count = len(stages)
    if isinstance(lead, AnticipatedStages):
        return [max(BEFORE_STUDY, d - lead.lead_stages) for d in range(count)]
    edges = np.concatenate([[0.0], np.cumsum([stage.hours for stage in stages])])
    at = edges[1:] - lead.lead_time_hours - SLACK
    found = np.maximum(BEFORE_STUDY, np.searchsorted(edges, at, side="left") - 1)
    return [int(t) for t in found]


def commitment_of(windows: tuple[AnticipatedCommitment, ...], stage: Stage) -> float | None:
    """The MW that windows of one plant give for a stage, averaged over its days; None where they leave days out."""
    days, total = 0, 0.0
    for window in windows:
        overlap = (min(window.end_date, stage.end_date) - max(window.start_date, stage.start_date)).days
        if overlap > 0:
            days += overlap
            total += overlap * window.value_mw
    return total / days if days == stage.days and days > 0 else None
