"""Read a result directory as typed tables, finished or in progress, and the runs that are in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pycobre.app.results.event_log import read_events
from pycobre.app.results.files import read_json, read_table
from pycobre.app.results.layout import MANIFEST, METADATA, PREVIOUS, RECORD, default_output, policy_file
from pycobre.app.results.lock import DirectoryLock
from pycobre.app.results.record import RunRecord, read_record
from pycobre.app.results.schemas import (
    CONVERGENCE,
    MODEL_TABLES,
    PROBLEM_TABLES,
    SIMULATION_TABLES,
    TIMING,
    Table,
)
from pycobre.app.results.status import RunStatus, read_status
from pycobre.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Results", "list_runs", "open_results", "remove_earlier_runs"]

_MODEL = {table.name: table for table in MODEL_TABLES}
_BY_NAME = {table.name: table for table in (*SIMULATION_TABLES, *PROBLEM_TABLES)}


@dataclass(frozen=True)
class Results:
    """A run on disk. Tables are read when asked for, as Arrow tables.

    Of a run in progress, or one that was lost, `metadata` is empty; `status` and `events` say how far it is.
    """

    directory: Path
    metadata: dict[str, Any]

    @property
    def status(self) -> RunStatus | None:
        """How far the run is, read now; None for results from before there was a status."""
        return read_status(self.directory)

    def events(self) -> Iterator[dict[str, Any]]:
        """The events that have been written so far, in their order."""
        for event, _ in read_events(self.directory):
            yield event

    @property
    def record(self) -> RunRecord | None:
        """The run's id and sessions."""
        return read_record(self.directory)

    @property
    def convergence(self) -> pa.Table:
        """One row per training iteration."""
        return read_table(self.directory, CONVERGENCE)

    @property
    def timing(self) -> pa.Table:
        """One row per iteration and rank: where the time went."""
        return read_table(self.directory, TIMING)

    @property
    def trained(self) -> bool:
        """Whether the run trained a policy; without, there are simulation tables only."""
        return self._has(CONVERGENCE)

    @property
    def simulated(self) -> tuple[str, ...]:
        """Names of the simulation tables that are there."""
        return tuple(name for name, table in _BY_NAME.items() if self._has(table))

    def simulation(self, name: str) -> pa.Table:
        """One simulation table, such as `costs` or `hydros`; only with the policy that was simulated."""
        if name not in _BY_NAME:
            raise OutputError(f"there is no simulation table {name!r}. Choose one of: {', '.join(_BY_NAME)}.")
        self.check_simulated()
        return read_table(self.directory, _BY_NAME[name])

    def check_simulated(self) -> None:
        """Raise `OutputError` where the simulation is of another policy than the one that is there."""
        trained = self.metadata.get("policy_digest")
        simulated = self.metadata.get("simulation", {}).get("policy_digest", trained)
        if simulated != trained:
            raise OutputError(
                f"{self.directory}: expected a simulation of policy {str(trained)[:12]}, got one of "
                f"{str(simulated)[:12]}. Simulate the policy again with `pycobre simulate`."
            )

    def frame(
        self,
        name: str,
        library: Literal["pandas", "polars", "arrow"] = "pandas",
        *,
        per: Literal["block", "stage"] = "block",
        total: Literal["", "system", "bus"] = "",
        quantiles: Sequence[float] | None = None,
    ) -> Any:
        """A table with names, dates and buses beside the ids; `balance` is the energy balance of every bus.

        `per="stage"` makes one row of a stage's blocks: power, flows and prices by hours, money as a sum, storage as
        at the end. `total` sums plants over the system or by bus. With `quantiles` (none, or such as 0.1, 0.9) rows
        are the mean and the quantiles over the scenarios, named in the column `statistic`. Units are in
        `frame.attrs["units"]` of pandas, in the fields' metadata of Arrow, and in `units`.
        """
        from pycobre.app.results.frame import Shape, frame_table, in_library

        shape = Shape(per, total, None if quantiles is None else tuple(quantiles))
        return in_library(frame_table(self, name, shape), library)

    def units(self, name: str) -> dict[str, str]:
        """The unit of every column of a table that has one."""
        from pycobre.app.results.frame import described_table

        return {column.name: column.unit for column in described_table(self, name).columns if column.unit}

    @property
    def frames(self) -> tuple[str, ...]:
        """Names for `frame` that this run has a table for."""
        from pycobre.app.results.frame import frame_names

        return frame_names(self)

    @property
    def modelled(self) -> tuple[str, ...]:
        """Names of the tables about the inflow model that are there."""
        return tuple(name for name, table in _MODEL.items() if self._has(table))

    def model(self, name: str) -> pa.Table:
        """One table about the inflow model, such as `inflow_coefficients` or `inflow_tests`."""
        if name not in _MODEL:
            raise OutputError(f"there is no model table {name!r}. Choose one of: {', '.join(_MODEL)}.")
        return read_table(self.directory, _MODEL[name])

    @property
    def policy_path(self) -> Path:
        """The trained policy's file."""
        return policy_file(self.directory)

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Every file with its size and SHA-256, from the manifest."""
        files = read_json(self.directory / MANIFEST)["files"]
        assert isinstance(files, dict)
        return files

    def _has(self, table: Table) -> bool:
        return (self.directory / table.path).is_file()


def open_results(directory: str | os.PathLike[str], run: str | None = None) -> Results:
    """Open a result directory; `run` is the id of an earlier run in it. Raises `OutputError` where there is none."""
    root = Path(directory)
    if not root.is_dir():
        raise OutputError(f"{root}: there is no such result directory. Check the path.")
    inside = default_output(root)
    if not (root / METADATA).exists() and not (root / RECORD).exists() and (inside / METADATA).is_file():
        raise OutputError(f"{root}: this is a case; its results are in {inside}. Give that directory.")
    if run is not None:
        root = _directory_of(root, run)
    if not (root / METADATA).exists() and (root / RECORD).exists():
        return Results(root, {})
    return Results(root, read_json(root / METADATA))


def list_runs(directory: str | os.PathLike[str]) -> list[tuple[str, Results]]:
    """The runs in a result directory by id: the earlier ones, oldest first, and the current one last.

    The ids of earlier sessions of a run that was resumed, or simulated again, end with the number of the session.
    """
    root = Path(directory)
    if not root.is_dir():
        raise OutputError(f"{root}: there is no such result directory. Check the path.")
    earlier = sorted(path for path in (root / PREVIOUS).glob("*") if path.is_dir())
    found = [(path.name, _opened(path)) for path in earlier]
    record = read_record(root)
    if record is not None:
        found.append((record.id, _opened(root)))
    return found


def remove_earlier_runs(directory: str | os.PathLike[str], keep: int) -> list[str]:
    """Remove all but the newest `keep` of the earlier runs; their ids. The current run is left alone.

    Nothing removes them by itself. Raises `OutputError` while a run writes into the directory.
    """
    root = Path(directory)
    earlier = [name for name, found in list_runs(root) if found.directory != root]
    old = earlier[: len(earlier) - keep] if keep else earlier
    if not old:
        return []
    lock = DirectoryLock(root)
    try:
        for name in old:
            shutil.rmtree(root / PREVIOUS / name)
    except OSError as cause:
        raise OutputError(
            f"{cause.filename}: cannot remove an earlier run: {cause.strerror}. Check its permissions."
        ) from cause
    finally:
        lock.release()
    return old


def _opened(root: Path) -> Results:
    return Results(root, read_json(root / METADATA) if (root / METADATA).is_file() else {})


def _directory_of(root: Path, run: str) -> Path:
    runs = {name: found.directory for name, found in list_runs(root)}
    if run not in runs:
        raise OutputError(
            f"{root}: expected the id of one of its runs, got {run!r}. There are: {', '.join(runs) or 'none'}."
        )
    return runs[run]
