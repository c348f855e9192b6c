"""Which of the app and lines a command gets, and how the app is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pycobre.app.results.layout import RECORD, STATUS, default_output
from pycobre.app.tui.lines import watch_lines
from pycobre.errors import OptionError, OutputError

__all__ = ["require_textual", "run_in_app", "watch"]


def watch(roots: Sequence[Path], *, plain: bool, once: bool, light: bool) -> int:
    """Watch what is below `roots`: in the app, or as lines where there is no terminal or lines are asked for."""
    for root in roots:
        if not root.is_dir():
            raise OutputError(f"{root}: there is no such directory. Check the path.")
    if plain or once or not has_terminal():
        watch_lines(roots, sys.stdout, once=once)
        return 0
    require_textual()
    from pycobre.app.tui.app import WatchApp, be_modest

    be_modest()
    return WatchApp(roots, open_run=_the_run(roots), light=light).run() or 0


def run_in_app(words: Sequence[str], directory: Path) -> int:
    """Start `pycobre WORDS`, which writes into `directory`, and watch it; its exit code where it has ended."""
    require_textual()
    if not has_terminal():
        raise OptionError(
            "--tui: expected a terminal, got none. Leave --tui out, or use `pycobre watch DIR` later."
        )
    from pycobre.app.tui.app import WatchApp, be_modest
    from pycobre.app.tui.launched import LaunchedRun

    launched = LaunchedRun(words, directory)
    be_modest()
    code = WatchApp([directory], launched=launched).run() or 0
    ended = launched.exit_code() is not None
    if ended:
        said = launched.words()
        print(said if said else f"the run in {directory} has ended")
    else:
        print(f"the run goes on in process {launched.pid}\nnext: pycobre watch {directory}")
    launched.leave()
    return code


def has_terminal() -> bool:
    """Whether the app can be shown: a terminal on both sides that can do more than lines, and has the letters."""
    return (
        sys.stdin.isatty()
        and sys.stdout.isatty()
        and os.environ.get("TERM", "") not in ("", "dumb")
        and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    )


def require_textual() -> None:
    if find_spec("textual") is None:
        raise OptionError(
            'watching in a terminal needs textual: install it with pip install "pycobre[tui]", or use '
            "`pycobre watch --plain`."
        )


def _the_run(roots: Sequence[Path]) -> Path | None:
    """The run to open at once: a single directory that is that of a run, or a case whose results are there."""
    if len(roots) != 1:
        return None
    for place in (roots[0], default_output(roots[0])):
        if (place / STATUS).is_file() or (place / RECORD).is_file():
            return place
    return None
