"""The tables of a run: their columns and units, names for the ids in them, the digest of their file."""

from __future__ import annotations

import hashlib
from typing import Any

from pycobre.app.answers.case_records import Source
from pycobre.app.answers.names import named, stage_id
from pycobre.app.answers.table_scan import TableFile
from pycobre.app.results.directory import Results
from pycobre.app.results.layout import MANIFEST
from pycobre.app.results.schemas import ENTITIES, TABLES, Table
from pycobre.errors import OptionError, OutputError

__all__ = ["RunTables"]

_SINGULAR = {"hydros": "plant", "thermals": "plant", "buses": "bus", "exchanges": "line"}


class RunTables:
    """The tables of one run by name."""

    def __init__(self, run: str, results: Results) -> None:
        self.run, self.results = run, results
        self._described = {table.name: table for table in TABLES}

    @property
    def available(self) -> tuple[str, ...]:
        return tuple(
            name for name, table in self._described.items() if (self.results.directory / table.path).is_file()
        )

    def describe(self, name: str) -> Table:
        """The schema of a table that this run has."""
        found = self._described.get(name)
        if found is None or name not in self.available:
            there = ", ".join(self.available) or "none: the run has not simulated"
            raise OptionError(f"table {name!r}: expected one of this run's, got another. There are: {there}.")
        if found.path.startswith("simulation/"):
            metadata = self.results.metadata
            trained = metadata.get("policy_digest")
            if metadata.get("simulation", {}).get("policy_digest", trained) != trained:
                raise OutputError(
                    f"{name}: expected a simulation of the run's policy, got one of another. "
                    "Simulate the policy again with `pycobre simulate`."
                )
        return found

    def open(self, name: str) -> TableFile:
        return TableFile(self.results.directory / self.describe(name).path)

    def source(self, name: str) -> Source:
        """Where the numbers of a table come from."""
        path = self.describe(name).path
        return Source("run", self.run, path, self.digest(path))

    def policy_source(self) -> Source:
        """Where what the policy says comes from: its file, with the digest of its content."""
        return Source("run", self.run, "policy", self.results.metadata.get("policy_digest"))

    def digest(self, path: str) -> str:
        """SHA-256 of a file of the run: from its manifest, or computed where there is none yet."""
        root = self.results.directory
        if (root / MANIFEST).is_file() and path in self.results.files:
            return str(self.results.files[path]["sha256"])
        with (root / path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def entities(self, kind: str) -> list[tuple[int, str]]:
        """Ids and names of the entities of one kind (`hydros`, `buses`, …)."""
        found = self.results.metadata.get("entities", {}).get(kind, [])
        return [(int(number), str(name)) for number, name in found]

    def entity(self, kind: str, wanted: str | int) -> tuple[int, str]:
        """One of them, by name or id."""
        return named(_SINGULAR.get(kind, "entity"), self.entities(kind), wanted)

    @property
    def stages(self) -> list[tuple[int, str]]:
        return [(int(each["id"]), str(each["label"])) for each in self.results.metadata.get("stages", [])]

    def stage(self, wanted: str | int) -> int:
        """A stage by id or label."""
        return stage_id(self.stages, wanted)

    def key(self, column: str, wanted: Any) -> float:
        """A value of a column, where a name may stand for an id."""
        if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
            raise OptionError(f"value of {column}: expected a number or a name, got {wanted!r}.")
        if not isinstance(wanted, str):
            return float(wanted)
        if column == "stage_id" and self.stages:
            return float(self.stage(wanted))
        if column in ENTITIES:
            return float(self.entity(ENTITIES[column], wanted)[0])
        try:
            return float(wanted)
        except ValueError:
            raise OptionError(f"value of {column}: expected a number, got {wanted!r}.") from None

    def names(self, column: str) -> dict[int, str]:
        """The names of a column's ids; empty for a column that holds none."""
        if column == "stage_id":
            return dict(self.stages)
        return dict(self.entities(ENTITIES[column])) if column in ENTITIES else {}
