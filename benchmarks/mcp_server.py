"""The MCP server: how soon it answers, and a query of a simulation as large as the Brazilian operation planning's.

The simulation is made up: 2,000 scenarios × 120 stages × 152 plants, 36 million rows of every column of the table
`hydros`, written piece by piece as Parquet like a run's. Each query runs in a process of its own, as the server does
it, and its largest resident size is that of the process, libraries included.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread

__all__ = ["measure"]

TIMEOUT_S = 600.0
STAGES, PLANTS = 120, 152
ROW_GROUP = 1 << 20
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "0"},
    },
}
QUERIES: dict[str, dict[str, Any]] = {
    "mean storage by stage, one plant": {
        "where": [{"column": "hydro_id", "op": "==", "value": 77}],
        "group_by": ["stage_id"],
        "aggregates": [{"function": "mean", "column": "storage_final_hm3"}],
    },
    "5 % quantile by stage, one plant": {
        "where": [{"column": "hydro_id", "op": "==", "value": 77}],
        "group_by": ["stage_id"],
        "aggregates": [{"function": "quantile", "column": "storage_final_hm3", "q": 0.05}],
    },
    "mean generation by plant, all rows": {
        "group_by": ["hydro_id"],
        "aggregates": [{"function": "mean", "column": "generation_mw"}],
    },
    "one scenario, all plants, one stage": {
        "where": [
            {"column": "scenario_id", "op": "==", "value": 1234},
            {"column": "stage_id", "op": "==", "value": 60},
        ],
        "limit": 200,
    },
}
ASK = """
import json, sys, time
from pathlib import Path
import numpy, pyarrow.parquet
from pydantic import TypeAdapter
from pycobre.app.answers.answer_records import Aggregate, Filter
from pycobre.app.answers.run_tables import RunTables
from pycobre.app.answers.table_query import query_table
from pycobre.app.results.directory import Results
root, query = Path(sys.argv[1]), json.loads(sys.argv[2])
query["where"] = TypeAdapter(list[Filter]).validate_python(query.get("where", []))
query["aggregates"] = TypeAdapter(list[Aggregate]).validate_python(query.get("aggregates", []))
tables = RunTables("made-up", Results(root, {}))
begun, worked = time.perf_counter(), time.process_time()
query_table(tables, "hydros", **query)
passed, worked = time.perf_counter() - begun, time.process_time() - worked
# Not ru_maxrss, which a process inherits from the one that started it.
lines = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(json.dumps([passed, worked, int(lines['VmHWM'].split()[0]) / 1024]))
"""


def measure(settings: entry.Settings) -> Document:
    """Start the server and query the made-up simulation."""
    if importlib.util.find_spec("mcp") is None:
        return Document("mcp_server", skipped="mcp missing: pip install 'pycobre[mcp]'")
    scenarios = 20 if settings.quick else 2000
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = Path(directory)
        started = Spread(tuple(_first_answer(root) for _ in range(settings.repetitions())))
        size = _write(root, scenarios)
        rows = []
        for name, query in QUERIES.items():
            found = [_asked(root, query) for _ in range(settings.repetitions())]
            rows.append(
                (
                    name,
                    Spread(tuple(each[0] for each in found)).median,
                    Spread(tuple(each[1] for each in found)).median,
                    max(each[2] for each in found),
                )
            )
    return Document(
        "mcp_server",
        (
            Table("start", ("", "seconds"), (("process to first answer", started.median),)),
            Table(
                f"{scenarios:,} × {STAGES} × {PLANTS} rows, {size / 1e9:.1f} GB",
                ("query", "seconds", "CPU seconds", "MB resident"),
                tuple(rows),
            ),
        ),
        (
            Figure("start of the MCP server", started.median, "s", at_most=1.0),
            Figure("slowest query", max(row[1] for row in rows), "s", at_most=1.0),
            Figure("largest query", max(row[3] for row in rows), "MB", at_most=500.0),
        ),
    )


def _first_answer(root: Path) -> float:
    """Seconds from the start of the process to its answer to the first message."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "pycobre", "mcp", "--root", str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        passed = time.perf_counter() - begun
        server.stdin.close()
    assert answer["result"]["serverInfo"]["name"] == "pycobre"
    return passed


def _asked(root: Path, query: dict[str, Any]) -> tuple[float, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(root), json.dumps(query)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    passed, worked, resident = json.loads(done.stdout)
    return passed, worked, resident


def _write(root: Path, scenarios: int) -> int:
    """The table `hydros` of a made-up simulation; its bytes."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from pycobre.app.results.files import write_manifest
    from pycobre.app.results.schemas import SIMULATION_TABLES

    table = next(each for each in SIMULATION_TABLES if each.name == "hydros")
    path = root / table.path
    path.parent.mkdir(parents=True)
    schema = pa.schema([pa.field(column.name, column.dtype, nullable=False) for column in table.columns])
    random = np.random.default_rng(7)
    each = STAGES * PLANTS
    at_once = max(1, ROW_GROUP // each)
    with parquet.ParquetWriter(path, schema, compression="zstd", compression_level=3) as writer:
        for first in range(0, scenarios, at_once):
            count = min(at_once, scenarios - first)
            rows = count * each
            ids: dict[str, Any] = {
                "scenario_id": np.repeat(np.arange(first, first + count, dtype=np.int32), each),
                "stage_id": np.tile(np.repeat(np.arange(STAGES, dtype=np.int32), PLANTS), count),
                "hydro_id": np.tile(np.arange(PLANTS, dtype=np.int32), count * STAGES),
            }
            columns: list[Any] = []
            for column in table.columns:
                if column.name in ids:
                    columns.append(ids[column.name])
                elif column.dtype != "float64":
                    columns.append(np.zeros(rows, column.dtype))
                elif column.name == "hours":
                    columns.append(np.full(rows, 730.0))
                elif column.name in ("storage_final_hm3", "generation_mw", "inflow_m3s"):
                    columns.append(random.gamma(2.0, 500.0, rows))
                else:  # written, never read: constant, so that the file can be made in minutes
                    columns.append(np.zeros(rows))
            arrays = [pa.array(column) for column in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=ROW_GROUP)
    write_manifest(root)
    return path.stat().st_size


if __name__ == "__main__":
    entry.main(measure)
