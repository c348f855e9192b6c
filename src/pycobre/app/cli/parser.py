"""A command line that cannot be understood ends like every other error: what is wrong, and what to type instead."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from pycobre._util.suggest import nearest

__all__ = ["Parser"]

MISUNDERSTOOD = 2


class Parser(argparse.ArgumentParser):
    """The parser of `pycobre` and of each of its commands."""

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """What the words ask for; a word too many is an error of the command that was given it."""
        asked = next((word for word in words if not word.startswith("-")), None)
        self._near = self._nearest_command(asked)
        arguments, unrecognized = self.parse_known_args(words)
        command: Parser = arguments.parser
        if unrecognized:
            command._near = command._nearest_option(unrecognized[0])
            command.error(f"unrecognized arguments: {' '.join(unrecognized)}")
        return arguments

    def error(self, message: str) -> NoReturn:
        """Print usage, error and hint; end with the code of what cannot be understood."""
        self.print_usage(sys.stderr)
        there = f"`{self.prog} --help` lists what there is"
        near = getattr(self, "_near", None)
        hint = f"did you mean `{near}`? {there}" if near else there
        self.exit(MISUNDERSTOOD, f"error: {message}\nhint: {hint}\n")

    def _nearest_command(self, asked: str | None) -> str | None:
        names = next((action.choices for action in self._actions if action.dest == "command"), None) or ()
        if asked is None or asked in names:
            return None
        near = nearest(asked, names)
        return f"{self.prog} {near}" if near else None

    def _nearest_option(self, argument: str) -> str | None:
        return nearest(argument.partition("=")[0], self._option_string_actions)
