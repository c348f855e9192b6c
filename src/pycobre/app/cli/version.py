"""`pycobre version`."""

from __future__ import annotations

import argparse

import pycobre


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def run(arguments: argparse.Namespace) -> int:
    """Print the version and nothing else, for scripts."""
    print(pycobre.__version__)
    return 0
