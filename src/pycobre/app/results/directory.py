"""Read a result directory as typed tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.app.results.files import MANIFEST, read_json, read_table
from pycobre.app.results.schemas import CONVERGENCE, PROBLEM_TABLES, SIMULATION_TABLES, TIMING, Table
from pycobre.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Results", "default_output", "open_results", "policy_file"]

METADATA = "metadata.json"
_OUTPUT = "output"
_BY_NAME = {table.name: table for table in (*SIMULATION_TABLES, *PROBLEM_TABLES)}


@dataclass(frozen=True)
class Results:
    """A finished run on disk. Tables are read when asked for, as Arrow tables."""

    directory: Path
    metadata: dict[str, Any]

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
        """One simulation table, such as `costs` or `hydros`."""
        if name not in _BY_NAME:
            raise OutputError(f"there is no simulation table {name!r}. Choose one of: {', '.join(_BY_NAME)}.")
        return read_table(self.directory, _BY_NAME[name])

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


def default_output(case: str | os.PathLike[str]) -> Path:
    """Where the results of a case directory are unless another place is named."""
    return Path(case) / _OUTPUT


def policy_file(directory: str | os.PathLike[str]) -> Path:
    """The file of the trained policy in a result directory."""
    return Path(directory) / "policy" / "policy.cobre"


def open_results(directory: str | os.PathLike[str]) -> Results:
    """Open a result directory; raise `OutputError` where it is none."""
    root = Path(directory)
    if not root.is_dir():
        raise OutputError(f"{root}: there is no such result directory. Check the path.")
    inside = default_output(root)
    if not (root / METADATA).exists() and (inside / METADATA).is_file():
        raise OutputError(f"{root}: this is a case; its results are in {inside}. Give that directory.")
    return Results(root, read_json(root / METADATA))
