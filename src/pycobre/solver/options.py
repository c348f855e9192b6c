"""Everything besides the data that a result depends on, checked when it is said."""

from __future__ import annotations

import math
import os

import numpy as np

from pycobre._util.frozen import frozen
from pycobre.errors import OptionError

__all__ = ["SolverOptions"]

#: option → least and largest allowed whole number
WHOLE_NUMBERS = {
    "threads": (1, 64),
    "pool_rows_per_round": (1, 1_000_000),
    "pool_seed_rows": (0, 1_000_000),
    "iteration_limit": (1, 2**31 - 1),
    "tableau_entries": (0, 2**31 - 1),
    "kernel_rows": (0, 1_000_000),
}
#: option → least and largest allowed tolerance; HiGHS takes none below 1e-10, and a loose one makes bounds wrong
TOLERANCES = {
    "primal_tolerance": (1e-10, 1e-3),
    "dual_tolerance": (1e-10, 1e-3),
    "pool_tolerance": (1e-12, 1e-3),
}


@frozen()
class SolverOptions:
    """How LPs are solved; no option is a time. A value outside its range raises `OptionError`.

    "Pool" is the cut pool, the table of all cuts of a node (`CutView`).
    """

    threads: int = 1  #: changes no bit
    primal_tolerance: float = 1e-9
    dual_tolerance: float = 1e-9
    pool_tolerance: float = 1e-9  #: a cut is violated beyond this, relative to max(1, |θ|)
    # Of the next two, ten times as many where HiGHS solves the LP.
    pool_rows_per_round: int = 3  #: the most violated cuts added before the next run
    pool_seed_rows: int = 3  #: cuts best at the chain's trial point, present from its first run
    iteration_limit: int = 1_000_000  #: simplex iterations of one run before the next recovery step
    tableau_entries: int = 220_000  #: rows × columns of LPs for the dense tableau
    kernel_rows: int = 1_000  #: rows of LPs for the basis kernel, where the tableau is too large
    scale: bool = True  #: scale the template once, by powers of two
    bundles: str | None = None  #: directory for the bundles of failed solves; None writes none
    native: bool | None = None  #: the compiled path: None = where it is there; the bits are the same

    def __post_init__(self) -> None:
        for name, (least, largest) in WHOLE_NUMBERS.items():
            value = getattr(self, name)
            if not _is_whole(value) or not least <= value <= largest:
                raise _refused(name, f"a whole number from {least} to {largest}", value)
        for name, (smallest, loosest) in TOLERANCES.items():
            value = getattr(self, name)
            if not _is_number(value) or not smallest <= value <= loosest:
                raise _refused(name, f"a tolerance from {smallest:g} to {loosest:g}", value)
        if not isinstance(self.scale, bool | np.bool_):
            raise _refused("scale", "True or False", self.scale)
        if self.native is not None and not isinstance(self.native, bool | np.bool_):
            raise _refused("native", "True, False or None", self.native)
        if self.bundles is not None and not isinstance(self.bundles, str | os.PathLike):
            raise _refused("bundles", "a directory or None", self.bundles)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, float | int | np.number) and math.isfinite(float(value))


def _refused(name: str, expected: str, got: object) -> OptionError:
    return OptionError(f"solver option {name}: expected {expected}, got {got!r}. Give another value.")
