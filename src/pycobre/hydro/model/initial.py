"""Where the study starts: storage, and what happened before."""

from __future__ import annotations

from datetime import date

from pycobre.hydro.model.record import record

__all__ = [
    "AnticipatedCommitment",
    "InflowObservation",
    "InitialConditions",
    "InitialStorage",
    "PastDefluence",
]


@record
class InitialStorage:
    hydro_id: int
    value_hm3: float


@record
class InflowObservation:
    """Mean inflow over [start_date, end_date): what the lags before the first stage are made of."""

    hydro_id: int
    start_date: date
    end_date: date
    value_m3s: float


@record
class PastDefluence:
    hydro_id: int
    start_date: date
    end_date: date
    value_m3s: float


@record
class AnticipatedCommitment:
    thermal_id: int
    start_date: date
    end_date: date
    value_mw: float


@record
class InitialConditions:
    """A plant without an entry in `storage` starts empty."""

    storage: tuple[InitialStorage, ...]
    filling_storage: tuple[InitialStorage, ...]
    recent_observations: tuple[InflowObservation, ...] = ()
    past_defluences: tuple[PastDefluence, ...] = ()
    past_anticipated_commitments: tuple[AnticipatedCommitment, ...] = ()
