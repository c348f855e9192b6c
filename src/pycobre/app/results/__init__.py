"""A result directory: what its tables hold, and how they are written and read.

layout     the names of everything in a result directory
lock       one directory, one run
record     run.json: the run's id and its sessions
status     status.json: how far the run is
control    control.jsonl: what other processes ask of a run
event_log  events.jsonl: every event of the run
schemas    every table of a run: columns, types, units
files      tables and JSON files, written atomically, with a manifest
labels     what the ids in tables stand for
summaries  from blocks to stages, from plants to totals, from scenarios to quantiles
balance    the energy balance of every bus
frame      tables with names, dates and units, for pandas, polars and Arrow
workbook   sheets of plain values
export     tables as CSV files or a workbook
directory  a result directory, opened
"""

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names

if TYPE_CHECKING:
    from pycobre.app.results.directory import Results, list_runs, open_results

__all__ = ["Results", "list_runs", "open_results"]

__getattr__, __dir__ = lazy_names(__name__, {"directory": ("Results", "list_runs", "open_results")})
