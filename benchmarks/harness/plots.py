"""Curves as pictures, where matplotlib is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from benchmarks.harness.document import Picture

__all__ = ["draw"]


def draw(picture: Picture, path: Path) -> bool:
    """Write a PNG; False where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for curve in picture.curves:
        axes.plot(curve.x, curve.y, label=curve.name, marker="." if len(curve.x) < 20 else None)
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    axes.set_title(picture.name)
    if picture.log_x:
        axes.set_xscale("log")
    if picture.log_y:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    return True
