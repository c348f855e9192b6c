"""The pictures of the inflow model as PNG files."""

from __future__ import annotations

from typing import Any

import numpy as np

from pycobre.app.plot.inflow import InflowPicture, Moments

__all__ = ["draw_model", "draw_moments", "has_model"]

BLUE, ORANGE, GREY = "#1769aa", "#d9822b", "#6b7c93"
COLUMNS = 4


def has_model(picture: InflowPicture) -> bool:
    """Whether there is something for `draw_model`."""
    return bool(picture.orders.size or picture.correlation.size or picture.whiteness.size)


def draw_model(figure: Any, picture: InflowPicture) -> None:
    """Orders, correlations and the tests' probabilities, side by side, those that there are."""
    parts = [
        (picture.orders.size, _orders),
        (picture.correlation.size, _correlation),
        (picture.whiteness.size, _probabilities),
    ]
    drawn = [draw for size, draw in parts if size]
    for axes, draw in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        draw(figure, axes, picture)


def _orders(figure: Any, axes: Any, picture: InflowPicture) -> None:
    months = picture.orders.shape[1]
    image = axes.imshow(picture.orders, cmap="Blues", vmin=0, aspect="auto", interpolation="none")
    figure.colorbar(image, ax=axes, ticks=range(int(picture.orders.max()) + 1))
    ticks = range(0, months, max(1, months // 4))
    axes.set_xticks(ticks, [picture.stages[t] for t in ticks], fontsize=8)
    axes.set(title="Orders of the inflow models", ylabel="plant")


def _correlation(figure: Any, axes: Any, picture: InflowPicture) -> None:
    image = axes.imshow(picture.correlation, cmap="RdBu_r", vmin=-1.0, vmax=1.0, interpolation="none")
    figure.colorbar(image, ax=axes)
    axes.set(title="Correlation of the noise, first stage", xlabel="plant", ylabel="plant")


def _probabilities(figure: Any, axes: Any, picture: InflowPicture) -> None:
    for values, name, color in (
        (picture.whiteness, "whiteness", BLUE),
        (picture.normality, "normality", ORANGE),
    ):
        axes.plot(values, np.arange(1, values.size + 1) / max(1, values.size), color=color, lw=2, label=name)
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":", label="expected")
    axes.set(
        title="Tests of the noise of history",
        xlabel="probability",
        ylabel="share of plants and seasons below",
    )
    axes.grid(True, color="#dde3ea", linewidth=0.7)
    axes.legend(frameon=False)


def draw_moments(figure: Any, plants: list[Moments], stages: list[str]) -> None:
    """Mean and one deviation to either side, of history and of the openings, plant by plant."""
    columns = min(COLUMNS, len(plants))
    grid = figure.subplots(-(-len(plants) // columns), columns, squeeze=False)
    x = np.arange(len(stages))
    ticks = x[:: max(1, -(-len(stages) // 4))]
    for axes, plant in zip(grid.flat, plants, strict=False):
        for (mean, std), name, color in (
            (plant.history, "history", ORANGE),
            (plant.openings, "openings", BLUE),
        ):
            axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.2, lw=0)
            axes.plot(x, mean, color=color, lw=1.6, label=name)
        axes.set_title(plant.name, fontsize=10)
        axes.set_xticks(ticks, [stages[i] for i in ticks], fontsize=8)
        axes.tick_params(axis="y", labelsize=8)
        axes.grid(True, color="#dde3ea", linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in list(grid.flat)[len(plants) :]:
        axes.set_visible(False)
    figure.suptitle("Inflow: mean and deviation (m³/s)", fontsize=12)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
