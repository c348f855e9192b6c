"""Training options as JSON values, so that they travel to workers and go into files without code.

Only the classes listed here are ever built, by name: reading cannot run anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pycobre._util.codec import Codec
from pycobre.errors import OptionError
from pycobre.sddp import risk, selection, stopping
from pycobre.sddp.interior import InteriorPoints
from pycobre.sddp.options import TrainOptions
from pycobre.sddp.trajectories import GrowingTrajectories
from pycobre.solver.api import SolverOptions

__all__ = ["decode_options", "encode_options"]

_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        risk.Expectation,
        risk.WorstCase,
        risk.CVaR,
        risk.Entropic,
        risk.ConvexCombination,
        stopping.IterationLimit,
        stopping.TimeLimit,
        stopping.BoundStalling,
        stopping.Gap,
        stopping.SimulatedGap,
        stopping.AnyOf,
        stopping.AllOf,
        selection.Level1,
        selection.LimitedMemoryLevel1,
        selection.Domination,
        InteriorPoints,
        GrowingTrajectories,
        SolverOptions,
        TrainOptions,
    )
}
_CODEC = Codec(
    _CLASSES,
    tag="type",
    root="options",
    error=OptionError,
    foreign=(
        "expected one of pycobre's own classes, got {}, which cannot travel to workers. "
        "Train in one process, or combine the classes there are."
    ),
    makers={
        "AnyOf": lambda inside: stopping.AnyOf(*inside["rules"]),
        "AllOf": lambda inside: stopping.AllOf(*inside["rules"]),
    },
)


def encode_options(options: TrainOptions) -> dict[str, Any]:
    """The options as JSON values; objects of other classes than pycobre's own raise OptionError."""
    document = _CODEC.encode(options)
    assert isinstance(document, dict)
    return document


def decode_options(document: Mapping[str, Any]) -> TrainOptions:
    """Undo `encode_options`; what does not fit raises OptionError with the path to it."""
    options = _CODEC.decode(document)
    if not isinstance(options, TrainOptions):
        raise OptionError(f"options: expected TrainOptions, got {type(options).__name__}.")
    return options
