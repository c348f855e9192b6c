"""Where calls are answered: the folder, what is allowed, and the runs and policies in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pycobre.app.mcp.folder import Folder
from pycobre.app.mcp.limits import Limits
from pycobre.errors import OptionError

if TYPE_CHECKING:
    from pycobre.app.answers.run_tables import RunTables
    from pycobre.app.results.directory import Results
    from pycobre.sddp import Policy

__all__ = ["Desk"]

_OUTPUT = frozenset({"output"})


class Desk:
    """One per worker process."""

    def __init__(self, folder: Folder, *, writing: bool, limits: Limits | None = None) -> None:
        self.folder, self.writing = folder, writing
        self.limits = limits or Limits()

    def case(self, name: str) -> Path:
        """The directory of a case."""
        return self.folder.directory(name, "case", apart=_OUTPUT)

    def run(self, name: str) -> tuple[str, Results]:
        """A run by its id, with nothing in its directory that leads outside."""
        from pycobre.app.answers.run_index import find_run

        found, results = find_run(self.folder.root, name, self.folder.sound)
        if not self.folder.holds(Path(results.directory)):
            raise OptionError(f"run {name!r}: expected one below the root, got another.")
        self.folder.check_tree(results.directory, f"run {name!r}")
        return found, results

    def tables(self, name: str) -> RunTables:
        """The tables of a run."""
        from pycobre.app.answers.run_tables import RunTables

        return RunTables(*self.run(name))

    def policy(self, tables: RunTables) -> Policy:
        """The policy of a run."""
        from pycobre.sddp import Policy

        return Policy.load(tables.results.policy_path)

    def case_of(self, tables: RunTables, name: str) -> Path:
        """The case of a run: as named, else the directory whose output the run is."""
        if name:
            return self.case(name)
        inside = tables.results.directory
        for above in inside.parents:
            if self.folder.holds(above) and (above / "config.json").is_file() and (above / "system").is_dir():
                return self.case(self.folder.name(above))
        raise OptionError(
            f"case: expected the case of run {tables.run}, which is not in its case's directory. Name it."
        )

    def require_writing(self, what: str) -> None:
        """Refuse what starts, stops or writes, unless the server was started for that."""
        if not self.writing:
            raise OptionError(
                f"{what}: expected a server that may start, stop and write, got one that only answers. "
                "Start it with --allow-run."
            )
