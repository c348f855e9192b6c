"""Opening trees: the finite support of a stage's noise, as standard normals.

`saa` draws every opening from its own stream, bit for bit as Cobre does. The stratified and low-discrepancy
methods are SciPy's, scrambled by a seed of the stage, and mapped through the normal quantile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre.errors import OptionError
from pycobre.stochastic import streams

__all__ = ["METHODS", "draw_openings"]

F64 = NDArray[np.float64]

METHODS = ("saa", "lhs", "qmc_sobol", "qmc_halton")


def draw_openings(method: str, seed: int, stage: int, openings: int, dimension: int) -> F64:
    """Independent standard normals of one stage, shape (openings, dimension)."""
    if method == "saa" or dimension == 0:
        return streams.opening_normal(seed, openings, stage, dimension)
    if method not in METHODS:
        raise OptionError(
            f"sampling method of stage {stage}: expected one of {', '.join(METHODS)}, got {method!r}."
        )
    points = _points(method, int(streams.stage_seed(seed, stage)), openings, dimension)
    from scipy.special import ndtri

    result: F64 = ndtri(points)
    return result


def _points(method: str, seed: int, openings: int, dimension: int) -> F64:
    try:
        from scipy.stats import qmc
    except ImportError as error:
        raise OptionError(
            f"sampling method {method!r} needs SciPy, which is not installed. "
            'Install it with `pip install "pycobre[qmc]"`, or use "saa".'
        ) from error
    generator = np.random.Generator(np.random.PCG64(seed))
    engines: dict[str, Any] = {"lhs": qmc.LatinHypercube, "qmc_sobol": qmc.Sobol, "qmc_halton": qmc.Halton}
    engine = engines[method](d=dimension, rng=generator)
    if method == "qmc_sobol":
        # A power of two is drawn and cut, since SciPy warns about the balance of any other number of points.
        drawn = engine.random_base2(max(0, (openings - 1).bit_length()))[:openings]
    else:
        drawn = engine.random(openings)
    tiny = 2.0**-53
    points: F64 = np.clip(drawn, tiny, 1.0 - tiny)
    return points
