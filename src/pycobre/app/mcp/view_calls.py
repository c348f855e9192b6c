"""What is looked at rather than computed with: pictures, reports, events, whole tables."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from pydantic import Field

from pycobre.app.mcp.desk import Desk
from pycobre.app.mcp.run_calls import RunName
from pycobre.errors import OptionError

__all__ = ["CALLS", "INTERNAL", "Picture", "PlotOf"]

Picture = Literal[
    "convergence", "costs", "timing", "storage", "hydro_generation", "thermal_generation", "marginal_cost"
]
PlotOf = Annotated[Picture, Field(description="which picture")]
MOST_ROWS = 200_000
MOST_PLOTTED = 8_000_000
_TABLES = {
    "convergence": (),
    "timing": (),
    "costs": ("costs",),
    "storage": ("costs", "hydros"),
    "hydro_generation": ("costs", "hydros"),
    "thermal_generation": ("costs", "thermals"),
    "marginal_cost": ("costs", "buses"),
}


def picture(desk: Desk, run: RunName, of: Picture, entity: str | int | None = None) -> dict[str, Any]:
    """A picture of a run as PNG."""
    from dataclasses import asdict

    from pycobre.app.plot.figures import draw
    from pycobre.app.plot.summary import summarise

    tables = desk.tables(run)
    wanted = _TABLES[of]
    for name in wanted:
        if (rows := tables.open(name).rows) > MOST_PLOTTED:
            raise OptionError(
                f"plot {of}: expected at most {MOST_PLOTTED:,} rows of {name}, got {rows:,}. Use query_table."
            )
    summary = summarise(tables.results, wanted)
    kind = {"thermal_generation": "thermals", "marginal_cost": "buses"}.get(of, "hydros")
    only = None if entity is None else tables.entity(kind, entity)[0]
    sources = [
        tables.source(name) for name in wanted or (("convergence",) if of == "convergence" else ("timing",))
    ]
    return {
        "png": base64.b64encode(draw(summary, of, only)).decode(),
        "run": tables.run,
        "of": of,
        "sources": [asdict(each) for each in sources],
    }


def report(desk: Desk, run: str) -> dict[str, str]:
    """The report of a run as one HTML page; nothing is written."""
    from pycobre.app.plot.report import page
    from pycobre.app.plot.summary import summarise

    return {"text": page(summarise(desk.run(run)[1]))}


def events(desk: Desk, run: str) -> dict[str, str]:
    """The events of a run as JSON lines; of very many the last."""
    from pycobre.app.results.layout import EVENTS

    path = desk.run(run)[1].directory / EVENTS
    if not path.is_file():
        return {"text": ""}
    most = desk.limits.resource_bytes // 4
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most))
        data = file.read(most)
    if size > most:
        data = data[data.find(b"\n") + 1 :]
    return {"text": data[: data.rfind(b"\n") + 1].decode("utf-8", "replace")}


def table(desk: Desk, run: str, name: str, form: str) -> dict[str, str]:
    """A whole table as CSV or as an Arrow file."""
    import pyarrow as pa
    import pyarrow.csv as csv

    tables = desk.tables(run)
    file = tables.open(name)
    if file.rows > MOST_ROWS:
        raise OptionError(
            f"table {name}: expected at most {MOST_ROWS:,} rows, got {file.rows:,}. Use query_table, or read "
            f"{tables.describe(name).path} of the run."
        )
    trained = name in ("convergence", "timing")
    found = getattr(tables.results, name) if trained else tables.results.simulation(name)
    sink = pa.BufferOutputStream()
    if form == "csv":
        csv.write_csv(found, sink)
        return {"text": sink.getvalue().to_pybytes().decode()}
    with pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
    return {"base64": base64.b64encode(sink.getvalue().to_pybytes()).decode()}


CALLS: tuple[Any, ...] = ()
INTERNAL: tuple[Any, ...] = (picture, report, events, table)
