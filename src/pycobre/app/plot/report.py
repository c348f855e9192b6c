"""One self-contained HTML page about a run, and the same pictures as PNG files.

The page embeds its data, its style and its drawing library, so it opens anywhere without a network.
"""

from __future__ import annotations

import html
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.files import write_atomically
from pycobre.app.plot.inflow import InflowPicture
from pycobre.app.plot.summary import QUANTILES, Band, Summary, summarise
from pycobre.app.results.directory import open_results
from pycobre.errors import OutputError

__all__ = ["page", "write_report"]

_KINDS = ("history", "openings")
_TOGETHER = "\u00a0"  # a space at which no line is broken


def write_report(
    directory: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, *, png: bool = True
) -> Path:
    """Write `report.html` (and PNG pictures under `plots/`) for a result directory; return the page."""
    summary = summarise(open_results(directory))
    target = Path(output) if output is not None else Path(directory) / "report.html"
    write_atomically(target, page(summary).encode())
    if png:
        from pycobre.app.plot.figures import write_figures

        write_figures(summary, target.parent / "plots")
    return target


def page(summary: Summary) -> str:
    """The page's HTML."""
    title = str(summary.metadata.get("case", "run"))
    parts = {
        "title": html.escape(title),
        "facts": _facts(summary.metadata),
        "metadata": _rows(_about(summary.metadata)),
        "configuration": _rows(_flat(summary.metadata.get("config", {}))),
        "style": _asset("style.css"),
        "script": _asset("draw.js"),
        "library": _library(),
        # `<` would let text in the data close the script element.
        "data": json.dumps(_data(summary), separators=(",", ":")).replace("<", "\\u003c"),
    }
    text = _asset("page.html")
    for name, value in parts.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def _asset(name: str) -> str:
    return resources.files("pycobre.app.plot").joinpath("page", name).read_text("utf-8")


def _library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as cause:
        raise OutputError(
            'the report needs plotly and matplotlib: install them with pip install "pycobre[plot]"'
        ) from cause
    return str(get_plotlyjs())


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Six significant digits: more than a picture shows, a third of the bytes."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]


def _bands(bands: list[Band]) -> list[dict[str, Any]]:
    return [{"name": band.name, "q": [_rounded(row) for row in band.values]} for band in bands]


def _data(summary: Summary) -> dict[str, Any]:
    convergence = summary.convergence
    return {
        "quantiles": list(QUANTILES),
        "maximise": summary.metadata.get("sense") == "maximise",
        "stages": summary.stages,
        "convergence": {name: _rounded(values) for name, values in convergence.items()},
        "costs": _rounded(summary.scenario_costs),
        "parts": {name: _rounded(values) for name, values in summary.cost_parts.items()},
        "storage": _bands(summary.storage),
        "hydro": _bands(summary.hydro_generation),
        "thermal": _bands(summary.thermal_generation),
        "price": _bands(summary.marginal_cost),
        "timing": {name: _rounded(values) for name, values in summary.timing.items()},
        "inflow": _inflow(summary.inflow),
    }


def _inflow(picture: InflowPicture) -> dict[str, Any]:
    return {
        "plants": picture.plants,
        "stages": picture.stages,
        "orders": picture.orders.tolist(),
        "correlation": [[round(value, 2) for value in row] for row in picture.correlation.tolist()],
        "moments": [
            {"name": each.name, **{kind: [_rounded(row) for row in getattr(each, kind)] for kind in _KINDS}}
            for each in picture.moments
        ],
        "whiteness": _rounded(picture.whiteness),
        "normality": _rounded(picture.normality),
    }


def _bound_label(metadata: dict[str, Any]) -> str:
    """The bound is above the optimum of a maximised problem, and an estimate where cuts are not valid everywhere."""
    label = "Upper bound" if metadata.get("sense") == "maximise" else "Lower bound"
    return f"{label} (estimate)" if metadata.get("bound_estimate") else label


def _facts(metadata: dict[str, Any]) -> str:
    """The run in a few figures, those it has: a simulation alone knows no bounds."""
    simulated = metadata.get("simulation", {})
    shown = (
        (_bound_label(metadata), _money(metadata.get("lower_bound"))),
        (
            "Upper bound (95 %)" if metadata.get("sense") != "maximise" else "Lower bound (95 %)",
            _interval(metadata.get("upper_bound"), metadata.get("upper_bound_half_width")),
        ),
        ("Gap (95 %)", _gap(metadata)),
        ("Simulated cost (95 %)", _interval(simulated.get("mean"), simulated.get("half_width"))),
        ("Iterations", str(metadata.get("iterations", ""))),
        ("Stopped by", str(metadata.get("termination_reason", "")).replace("_", " ")),
        ("Run on", _ranks(metadata)),
        ("Policy", str(metadata.get("policy_digest", ""))[:12]),
    )
    cells = (f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in shown if v)
    return "".join(cells)


def _money(value: float | None) -> str:
    """An amount as planners write it: in millions from a million on."""
    if value is None:
        return ""
    text = (
        f"{value:,.2f} $"
        if abs(value) < 1e6
        else f"{value / 1e6:,.2f} M$"
        if abs(value) < 1e13
        else f"{value:.4e} $"
    )
    return text.replace(" ", _TOGETHER)


def _interval(mean: float | None, half: float | None) -> str:
    return f"{_money(mean)} ±{_TOGETHER}{_money(half)}" if half else _money(mean)


def _gap(metadata: dict[str, Any]) -> str:
    gap, half = metadata.get("gap"), metadata.get("upper_bound_half_width")
    if gap is None:
        return ""
    text = f"{100 * gap:.2f}{_TOGETHER}%"
    if half:
        text += f" ±{_TOGETHER}{100 * half / max(1.0, abs(metadata['lower_bound'])):.2f}{_TOGETHER}%"
    return text


def _ranks(metadata: dict[str, Any]) -> str:
    ranks = metadata.get("ranks")
    if ranks is None:
        return ""
    return f"{ranks} rank{'' if ranks == 1 else 's'} ({metadata.get('backend', '')})"


_TOLD_ELSEWHERE = ("config", "entities", "inputs", "stages")


def _about(metadata: dict[str, Any]) -> dict[str, Any]:
    """What is known of the run but its configuration, which has a table of its own."""
    return _flat({key: value for key, value in metadata.items() if key not in _TOLD_ELSEWHERE})


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key in sorted(tree):
        value = tree[key]
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _rows(values: dict[str, Any]) -> str:
    def said(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return "".join(
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(said(value))}</td></tr>"
        for key, value in values.items()
    )
