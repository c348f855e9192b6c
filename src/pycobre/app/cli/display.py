"""What rank 0 prints of a run: the header, the events as they come, the summary."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pycobre.app.cli.screen import Screen, screen_for
from pycobre.app.cli.summary import header, summary
from pycobre.app.request import ProblemSource
from pycobre.app.streams import discard
from pycobre.events import Event

if TYPE_CHECKING:
    from pycobre.app.report import Report
    from pycobre.app.request import Request

__all__ = ["Display"]


class Display:
    """A listener, and a context around the run that it displays."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        request: Request,
        ranks: int,
        backend: str,
        further: Callable[[Report], Mapping[str, Any]],
    ) -> None:
        self._format: str = arguments.format
        self._quiet: bool = arguments.quiet
        self._request = request
        self._ranks = ranks
        self._backend = backend
        self._further = further
        self._screen: Screen = screen_for(self._format, self._quiet, sys.stdout, maximise=_maximised(request))
        self._report: Report | None = None

    def __enter__(self) -> Display:
        if self._format == "human" and not self._quiet:
            _print(header(self._request, self._ranks, self._backend))
        self._screen.__enter__()
        return self

    def __call__(self, event: Event) -> None:
        self._screen(event)

    def stopping(self) -> None:
        """Somebody asked the run to stop."""
        self._screen.stopping()

    def finish(self, report: Report) -> None:
        """What to summarise when the screen has been left."""
        self._report = report

    def __exit__(self, *error: object) -> None:
        self._screen.__exit__(*error)
        if self._report is None:
            return
        if self._format == "human":
            _print(summary(self._report, self._request, self._further(self._report)))
        elif self._format == "json":
            further = self._further(self._report)
            document = dict(self._report.metadata, output_dir=self._request.output, **further)
            document.pop("entities", None)
            _print(json.dumps(document, indent=2))


def _maximised(request: Request) -> bool:
    return isinstance(request.source, ProblemSource) and request.source.problem.sense.sign < 0


def _print(text: str) -> None:
    """Print; a closed standard output does not end a run."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard(sys.stdout)
