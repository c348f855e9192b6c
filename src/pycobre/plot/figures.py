"""The report's pictures as PNG files, for slides and papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pycobre.errors import OutputError
from pycobre.plot.summary import Band, Summary

__all__ = ["write_figures"]

BLUE, ORANGE = "#1769aa", "#d9822b"
DPI = 110
ROWS, COLUMNS = 5, 4


def write_figures(summary: Summary, directory: Path) -> list[Path]:
    """Write every picture the run has data for; return the paths. Single thermal plants are on the page only."""
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise OutputError('PNG plots need matplotlib: install it with pip install "pycobre[plot]"') from cause

    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []

    def save(name: str, draw: Callable[[Any], None], size: tuple[float, float] = (8.0, 4.5)) -> None:
        figure = Figure(figsize=size, layout="tight")
        draw(figure)
        path = directory / f"{name}.png"
        figure.savefig(path, dpi=DPI)
        written.append(path)

    if summary.convergence:
        save("convergence", lambda figure: _convergence(figure, summary))
    if summary.scenario_costs.size:
        save("costs", lambda figure: _histogram(figure, summary))
    for name, bands, unit in (
        ("storage", summary.storage, "storage (hm³)"),
        ("hydro_generation", summary.hydro_generation, "generation (MW)"),
        ("marginal_cost", summary.marginal_cost, "marginal cost ($/MWh)"),
    ):
        per_page = ROWS * COLUMNS
        for number, first in enumerate(range(0, len(bands), per_page)):
            part = bands[first : first + per_page]
            suffix = f"_{number + 1}" if len(bands) > per_page else ""

            def draw(figure: Any, part: list[Band] = part, unit: str = unit) -> None:
                _grid(figure, part, summary.stages, unit)

            rows = -(-len(part) // COLUMNS)
            save(f"{name}{suffix}", draw, (3.6 * min(COLUMNS, len(part)), 2.5 * rows))
    return written


def _style(axes: Any) -> None:
    axes.grid(True, color="#dde3ea", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _convergence(figure: Any, summary: Summary) -> None:
    columns = summary.convergence
    x, upper = columns["iteration"], columns["upper_bound"]
    half = np.nan_to_num(columns["upper_bound_half_width"])
    axes = figure.subplots()
    axes.fill_between(x, upper - half, upper + half, color=ORANGE, alpha=0.18, lw=0, label="95 % interval")
    axes.plot(x, upper, color=ORANGE, lw=1, label="upper bound (mean of the pass)")
    axes.plot(x, columns["lower_bound"], color=BLUE, lw=2, label="lower bound")
    axes.set(xlabel="iteration", ylabel="cost ($)", title=str(summary.metadata.get("case", "")))
    axes.legend(frameon=False)
    _style(axes)


def _histogram(figure: Any, summary: Summary) -> None:
    axes = figure.subplots()
    axes.hist(summary.scenario_costs, bins="auto", color=BLUE, alpha=0.85, rwidth=0.97)
    axes.axvline(float(summary.scenario_costs.mean()), color=ORANGE, ls=":", lw=2, label="mean")
    axes.set(xlabel="total discounted cost ($)", ylabel="scenarios")
    axes.legend(frameon=False)
    _style(axes)


def _grid(figure: Any, bands: list[Band], stages: list[str], unit: str) -> None:
    columns = min(COLUMNS, len(bands))
    grid = figure.subplots(-(-len(bands) // columns), columns, squeeze=False)
    x = np.arange(len(stages))
    step = max(1, len(stages) // 6)
    for axes, band in zip(grid.flat, bands, strict=False):
        q05, q25, q50, q75, q95 = band.values
        axes.fill_between(x, q05, q95, color=BLUE, alpha=0.16, lw=0)
        axes.fill_between(x, q25, q75, color=BLUE, alpha=0.32, lw=0)
        axes.plot(x, q50, color=BLUE, lw=1.8)
        axes.set_title(band.name, fontsize=10)
        axes.set_xticks(x[::step], [stages[i] for i in x[::step]], fontsize=8)
        axes.set_ylabel(unit, fontsize=8)
        _style(axes)
    for axes in list(grid.flat)[len(bands) :]:
        axes.set_visible(False)
