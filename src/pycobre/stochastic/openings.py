"""Opening trees: the finite support of a stage's noise, as standard normals.

`saa` draws every opening from its own stream, `lhs` and `qmc_sobol` all openings of a stage from one, bit for bit as
Cobre does. Halton points are SciPy's, scrambled by a seed of the stage: Cobre's put their first opening at −8.2
deviations in every dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pycobre._util.arrays import F64
from pycobre.errors import OptionError
from pycobre.stochastic import streams
from pycobre.stochastic.stratified import latin_normals, sobol_normals

__all__ = ["METHODS", "draw_openings", "needs_scipy"]


METHODS = ("saa", "lhs", "qmc_sobol", "qmc_halton")


def draw_openings(method: str, seed: int, stage: int, openings: int, dimension: int) -> F64:
    """Independent standard normals of one stage, shape (openings, dimension)."""
    if method == "saa" or dimension == 0:
        return streams.opening_normal(seed, openings, stage, dimension)
    if method not in METHODS:
        raise OptionError(
            f"sampling method of stage {stage}: expected one of {', '.join(METHODS)}, got {method!r}."
        )
    own = int(streams.stage_seed(seed, stage))
    if method == "lhs":
        return latin_normals(own, openings, dimension)
    return needs_scipy(method, sobol_normals if method == "qmc_sobol" else _halton, own, openings, dimension)


def needs_scipy(method: str, draw: Callable[..., F64], *arguments: Any) -> F64:
    """`draw(*arguments)`, or what to install."""
    try:
        return draw(*arguments)
    except ImportError as error:
        raise OptionError(
            f"sampling method {method!r} needs SciPy, which is not installed. "
            'Install it with `pip install "pycobre[qmc]"`, or use "saa" or "lhs".'
        ) from error


def _halton(seed: int, openings: int, dimension: int) -> F64:
    from scipy.special import ndtri
    from scipy.stats import qmc

    engine = qmc.Halton(dimension, rng=np.random.Generator(np.random.PCG64(seed)))
    tiny = 2.0**-53
    normals: F64 = ndtri(np.clip(engine.random(openings), tiny, 1.0 - tiny))
    return normals
