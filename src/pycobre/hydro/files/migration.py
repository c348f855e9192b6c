"""From the 0.5 form of a case to the 0.18 form, files to files.

The result means the same as far as 0.18 can say it; `Migration.notes` names what it cannot. Nothing is
interpreted beyond what changed, so that a case which was wrong before is wrong afterwards, and validation says
how.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from pycobre._util.frozen import frozen
from pycobre.errors import CaseError, OptionError
from pycobre.hydro.files.migrate_config import migrate_config
from pycobre.hydro.files.migrate_scenarios import migrate_scenarios
from pycobre.hydro.files.migrate_system import migrate_system
from pycobre.hydro.files.old_files import OldCase
from pycobre.hydro.files.old_form import is_old_form
from pycobre.hydro.files.read_case import read_directory

__all__ = ["Migration", "migrate", "migrated_files"]


@frozen()
class Migration:
    """The files of the new form, and what the author should know about them."""

    files: Mapping[str, bytes]
    notes: tuple[str, ...]


def migrate(source: str | PathLike[str], target: str | PathLike[str]) -> tuple[str, ...]:
    """Write the case of `source`, which is in the 0.5 form, to `target` in the 0.18 form; return the notes.

    Raises `CaseError` if the source is not in the 0.5 form or cannot be read, `OptionError` if the target is
    taken.
    """
    root = Path(target)
    files, unreadable = read_directory(Path(source))
    if unreadable:
        raise CaseError(f"case {source}: {'; '.join(str(f) for f in unreadable)}", tuple(unreadable))
    case = OldCase(files)
    if not is_old_form(case.json):
        raise CaseError(
            f"case {source}: expected the form of Cobre 0.5, got another. "
            f"`pycobre validate {source}` says whether it is in the form of 0.18."
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise OptionError(f"{target}: expected a new or empty directory. Choose another name.")
    result = _migrated(case)
    for file, content in result.files.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes(content)
    return result.notes


def migrated_files(files: Mapping[str, bytes]) -> Migration:
    """The same on files in memory; raises `CaseError` for a file that cannot be read at all."""
    return _migrated(OldCase(files))


def _migrated(case: OldCase) -> Migration:
    try:
        migrate_config(case)
        migrate_system(case)
        migrate_scenarios(case)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
        raise CaseError(
            f"the case is not a sound case of the 0.5 form: {type(problem).__name__}: {problem}. "
            "Make it load in Cobre 0.5 first."
        ) from problem
    return Migration(case.written(), tuple(case.notes))
