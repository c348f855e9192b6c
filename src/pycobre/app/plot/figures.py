"""The report's pictures as PNG files, for slides and papers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pycobre.app.plot.inflow import Moments
from pycobre.app.plot.inflow_figures import draw_model, draw_moments, has_model
from pycobre.app.plot.summary import Band, Summary
from pycobre.errors import OutputError

__all__ = ["draw", "write_figures"]

Draw = Callable[[Any], None]

T = TypeVar("T")
BLUE, ORANGE = "#1769aa", "#d9822b"
DPI = 110
ROWS, COLUMNS = 5, 4
#: Pictures with one small diagram per entity: title and unit.
_BANDS = {
    "storage": ("Storage at the end of the stage", "hm³"),
    "hydro_generation": ("Hydro generation", "MW"),
    "thermal_generation": ("Thermal generation", "MW"),
    "marginal_cost": ("Marginal cost of energy", "$/MWh"),
}


def write_figures(summary: Summary, directory: Path) -> list[Path]:
    """Write every picture the run has data for; return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, fill, size in _pictures(summary):
        path = directory / f"{name}.png"
        path.write_bytes(_png(fill, size))
        written.append(path)
    return written


def draw(summary: Summary, name: str, entity: int | None = None) -> bytes:
    """One picture as PNG: `convergence`, `costs`, `timing`, or bands such as `storage`, perhaps of one entity only.

    Of bands on several pages it is the first page.
    """
    if entity is not None:
        kept: dict[str, Any] = {
            field: [band for band in getattr(summary, field) if band.entity == entity] for field in _BANDS
        }
        summary = replace(summary, **kept)
    for each, fill, size in _pictures(summary):
        if each in (name, f"{name}_1"):
            return _png(fill, size)
    raise OutputError(f"picture {name!r}: expected a run with data for it, got one without. Simulate first.")


def _pictures(summary: Summary) -> Iterator[tuple[str, Draw, tuple[float, float]]]:
    """Name, content and size of every picture."""
    usual = (8.0, 4.5)
    if summary.convergence:
        yield "convergence", lambda figure: _convergence(figure, summary), usual
    if summary.scenario_costs.size:
        yield "costs", lambda figure: _histogram(figure, summary), usual
    if summary.timing:
        tall = 1.6 + 0.45 * len(summary.timing["rank"])
        yield "timing", lambda figure: _timing(figure, summary), (8.0, tall)
    if has_model(summary.inflow):
        yield "inflow_model", lambda figure: draw_model(figure, summary.inflow), (15.0, 4.8)
    for suffix, plants in _pages(summary.inflow.moments):

        def fill_page(figure: Any, plants: list[Moments] = plants) -> None:
            draw_moments(figure, plants, summary.inflow.stages)

        yield f"inflow{suffix}", fill_page, _page_size(len(plants))
    for name, (title, unit) in _BANDS.items():
        for suffix, part in _pages(getattr(summary, name)):

            def fill(figure: Any, part: list[Band] = part, title: str = title, unit: str = unit) -> None:
                _grid(figure, part, summary.stages, title, unit)

            yield f"{name}{suffix}", fill, _page_size(len(part))


def _png(fill: Draw, size: tuple[float, float]) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise OutputError('PNG plots need matplotlib: install it with pip install "pycobre[plot]"') from cause
    figure = Figure(figsize=size, layout="constrained")
    fill(figure)
    sink = io.BytesIO()
    figure.savefig(sink, dpi=DPI, format="png")
    return sink.getvalue()


def _pages(entities: list[T]) -> Iterator[tuple[str, list[T]]]:
    """As many entities as fit one picture, and what its file's name ends with."""
    per_page = ROWS * COLUMNS
    for number, first in enumerate(range(0, len(entities), per_page)):
        yield f"_{number + 1}" if len(entities) > per_page else "", entities[first : first + per_page]


def _page_size(entities: int) -> tuple[float, float]:
    return max(6.0, 3.6 * min(COLUMNS, entities)), 0.9 + 2.4 * -(-entities // COLUMNS)


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
    mean, bound = ("upper", "lower") if summary.metadata.get("sense") != "maximise" else ("lower", "upper")
    axes.plot(x, upper, color=ORANGE, lw=1, label=f"{mean} bound (mean of the pass)")
    axes.plot(x, columns["lower_bound"], color=BLUE, lw=2, label=f"{bound} bound")
    axes.set(xlabel="iteration", title=str(summary.metadata.get("case", "")))
    axes.set_xlim(x[0], max(x[-1], x[0] + 1))
    axes.xaxis.get_major_locator().set_params(integer=True)
    # The first policies cost many times the last one: where that hides the end, the picture shows the end.
    late = slice(len(x) // 4, None)
    low = min((upper - half)[late].min(), columns["lower_bound"][late].min())
    high = max((upper + half)[late].max(), columns["lower_bound"][late].max())
    if len(x) >= 8 and np.ptp([(upper + half).max(), columns["lower_bound"].min()]) > 2.5 * (high - low):
        axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
        axes.set_xlabel("iteration (the first ones are beyond the scale)")
    _money(axes.yaxis, "cost", float(np.abs(columns["lower_bound"]).max()))
    axes.legend(frameon=False)
    _style(axes)


def _money(axis: Any, label: str, typical: float) -> None:
    """An axis of amounts, in millions where they are so large."""
    scale, unit = (1e6, "M$") if typical >= 1e7 else (1.0, "$")
    axis.set_major_formatter(lambda value, _: f"{value / scale:,.10g}")
    axis.set_label_text(f"{label} ({unit})")


def _timing(figure: Any, summary: Summary) -> None:
    axes, clocks = figure.subplots(), summary.timing
    names = [f"rank {rank:.0f}" for rank in clocks["rank"]]
    left = np.zeros(len(names))
    for part, label, color in (
        ("solve_s", "LP solver", "#2f9e63"),
        ("communicate_s", "communicate", BLUE),
        ("wait_s", "wait", ORANGE),
        ("other_s", "other", "#6b7c93"),
    ):
        axes.barh(names, clocks[part], left=left, color=color, label=label, height=0.7)
        left = left + clocks[part]
    axes.invert_yaxis()
    axes.set(xlabel="seconds", title="Where the time went")
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.35 / len(names) - 0.2))
    _style(axes)


def _histogram(figure: Any, summary: Summary) -> None:
    axes = figure.subplots()
    axes.hist(summary.scenario_costs, bins="auto", color=BLUE, alpha=0.85, rwidth=0.97)
    axes.axvline(float(summary.scenario_costs.mean()), color=ORANGE, ls=":", lw=2, label="mean")
    axes.set_ylabel("scenarios")
    _money(axes.xaxis, "total discounted cost", float(np.abs(summary.scenario_costs).max()))
    axes.legend(frameon=False)
    _style(axes)


def _grid(figure: Any, bands: list[Band], stages: list[str], title: str, unit: str) -> None:
    columns = min(COLUMNS, len(bands))
    grid = figure.subplots(-(-len(bands) // columns), columns, squeeze=False)
    x = np.arange(len(stages))
    ticks = x[:: max(1, -(-len(stages) // 4))]
    for axes, band in zip(grid.flat, bands, strict=False):
        q05, q25, q50, q75, q95 = band.values
        outer = axes.fill_between(x, q05, q95, color=BLUE, alpha=0.16, lw=0)
        inner = axes.fill_between(x, q25, q75, color=BLUE, alpha=0.32, lw=0)
        (median,) = axes.plot(x, q50, color=BLUE, lw=1.8)
        axes.set_title(band.name, fontsize=10)
        axes.set_xticks(ticks, [stages[i] for i in ticks], fontsize=8)
        axes.tick_params(axis="y", labelsize=8)
        axes.yaxis.set_major_formatter("{x:,g}")
        lowest, highest = float(np.nanmin(band.values)), float(np.nanmax(band.values))
        axes.set_ylim(min(0.0, 1.05 * lowest), max(0.0, 1.05 * highest) or 1.0)
        _style(axes)
    for axes in list(grid.flat)[len(bands) :]:
        axes.set_visible(False)
    figure.suptitle(f"{title} ({unit})", fontsize=12)
    figure.legend([median, inner, outer], ["median", "25–75 %", "5–95 %"], loc="outside lower center", ncols=3,
                  frameon=False, fontsize=9)  # fmt: skip
