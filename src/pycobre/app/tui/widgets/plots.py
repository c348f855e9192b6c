"""The pictures of a run: bounds, gap, time per iteration, LPs per second, cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pycobre._util.frozen import frozen
from pycobre.app.tui.drawing.canvas import Row
from pycobre.app.tui.drawing.plot import Area, Curve, Picture, draw
from pycobre.app.tui.reading.points import Point
from pycobre.app.tui.widgets.rows import Rows

__all__ = ["METRICS", "Look", "Metric", "Plot", "bounds_picture", "metric_picture"]

SCALES = ("auto", "linear", "log")


@frozen()
class Look:
    """How a person wants to see the pictures."""

    last: int | None = None  #: iterations; None: all
    scale: str = "auto"


@frozen()
class Metric:
    """One figure of every iteration."""

    key: str
    title: str
    value: Callable[[Point], float]
    percent: bool = False
    zero: bool = True


METRICS = (
    Metric("gap", "Gap", lambda point: point.gap, percent=True, zero=False),
    Metric("time", "Seconds per iteration", lambda point: point.elapsed_s),
    Metric("rate", "LPs per second", lambda point: point.lps_per_s),
    Metric("cuts", "Active cuts", lambda point: point.cuts),
)


def bounds_picture(points: Sequence[Point], look: Look, sense: str) -> Picture:
    """The bound as a line, the mean of the forward passes as dots with its interval."""
    x = [float(point.iteration) for point in points]
    bound, mean = ("upper", "lower") if sense == "maximise" else ("lower", "upper")
    half = [point.half_width if point.half_width == point.half_width else 0.0 for point in points]
    low = [point.upper - each for point, each in zip(points, half, strict=True)]
    high = [point.upper + each for point, each in zip(points, half, strict=True)]
    return Picture(
        title="Bounds",
        curves=(
            Curve(f"{mean}, mean of passes", "mean", x, [point.upper for point in points], dots=True),
            Curve(f"{bound} bound", "bound", x, [point.lower for point in points]),
        ),
        areas=(Area("95 % interval", "band", x, low, high),),
        x_unit="iteration",
        scale="log" if look.scale == "log" else "linear",
        robust=look.scale == "auto",
        empty="no iteration has ended yet",
    )


def metric_picture(points: Sequence[Point], metric: Metric, look: Look) -> Picture:
    x = [float(point.iteration) for point in points]
    values = [metric.value(point) for point in points]
    linear = metric.zero and look.scale != "log"
    return Picture(
        title=metric.title,
        curves=(Curve(metric.title, "good", x, values),),
        scale="linear" if linear else look.scale,
        percent=metric.percent,
        zero=linear,
        robust=look.scale == "auto",
        legend=False,
        empty="no iteration yet",
    )


class Plot(Rows):
    """A widget that draws one picture."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.picture = Picture(title="", empty="")

    def show(self, picture: Picture) -> None:
        self.picture = picture
        self.changed()

    def make(self, width: int, height: int) -> Sequence[Row]:
        return draw(self.picture, width, height)
