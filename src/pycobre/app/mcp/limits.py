"""How much a client may ask for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of a server; every one has a sentence that says so when it is met."""

    runs: int = 2  #: that this server started and that go on at once
    calls: int = 2  #: answered at once; further ones wait
    call_s: float = 120.0  #: for one answer
    wait_s: float = 3600.0  #: for one `wait_for_run`
    rows: int = 1000  #: of one answer
    answer_bytes: int = 1 << 20
    resource_bytes: int = 16 << 20
    lease_s: float = (
        120.0  #: over HTTP: a run that is not detached and that nobody asks after is stopped then
    )
