"""What the server's own tools answer."""

from __future__ import annotations

from pycobre._util.frozen import frozen
from pycobre.app.answers.case_records import Source

__all__ = ["PictureOf", "RunStarted", "RunStopped"]


@frozen()
class RunStarted:
    """A run that has begun."""

    run: str
    directory: str
    detached: bool
    next: str
    sources: list[Source]


@frozen()
class RunStopped:
    """A run that was asked to stop, or ended."""

    run: str
    how: str
    sources: list[Source]


@frozen()
class PictureOf:
    """What a picture shows; the picture itself is beside it."""

    run: str
    of: str
    sources: list[Source]
