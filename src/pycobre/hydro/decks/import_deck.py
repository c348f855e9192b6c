"""A deck directory to a case directory: repairs, conversion, repairs of the result, validation."""

from __future__ import annotations

import json
import os
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any

from pycobre._util.files import expect_free
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError
from pycobre.hydro.decks.bridge import Note, convert
from pycobre.hydro.decks.case_repairs import repair_case
from pycobre.hydro.decks.deck_repairs import Repair, repaired_files
from pycobre.hydro.files.read_case import validate
from pycobre.hydro.model.findings import Finding

__all__ = ["DECK_KINDS", "ImportedDeck", "import_deck"]

DECK_KINDS = ("newave", "decomp")
MANIFEST = "conversion_manifest.json"


@frozen()
class ImportedDeck:
    """What was done to a deck, what the converter says of it, and what validation says of the case."""

    repairs: tuple[Repair, ...]
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]


def import_deck(
    kind: str, deck: str | PathLike[str], case: str | PathLike[str], *, cost_to_go: bool = True
) -> ImportedDeck:
    """Convert the deck in directory `deck` to a new case directory `case`; the deck is not touched.

    `kind` is one of `DECK_KINDS`. Of a DECOMP deck the cost-to-go beyond its horizon (its `cortes` files) comes along
    as a boundary policy, unless `cost_to_go` is False. The case appears as a whole or not at all; findings that are
    errors do not hinder, so that they can be corrected in it.
    """
    if kind not in DECK_KINDS:
        raise OptionError(f"import: expected one of {', '.join(DECK_KINDS)}, got {kind!r}.")
    source, target = Path(deck), Path(case)
    if not source.is_dir():
        raise OptionError(f"{deck}: expected the directory of a deck. Unpack its archive first.")
    expect_free(target)
    files, repairs = repaired_files(source) if kind == "newave" else ({}, ())
    options = ["--no-fcf"] if kind == "decomp" and not cost_to_go else []
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        work = Path(scratch)
        _link(source, work / "deck", files)
        notes = convert(kind, work, "deck", "case", options)
        made = work / "case"
        repairs += repair_case(made)
        _sign(made / MANIFEST, source, target, repairs)
        if target.exists():
            target.rmdir()
        made.rename(target)
    return ImportedDeck(repairs, notes, validate(target))


def _link(source: Path, target: Path, files: dict[str, bytes]) -> None:
    """The deck without a copy of it: links to its files, some of which hold gigabytes, and the repaired ones."""
    target.mkdir()
    for entry in sorted(source.iterdir()):
        if entry.name not in files:
            (target / entry.name).symlink_to(entry.resolve())
    for name, content in files.items():
        (target / name).write_bytes(content)


def _sign(path: Path, source: Path, target: Path, repairs: tuple[Repair, ...]) -> None:
    """The converter's manifest, where it wrote one, with the deck's own path and the repairs in it."""
    try:
        manifest: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(manifest, dict):
        manifest |= {"source_dir": os.fspath(source), "output_dir": os.fspath(target)}
        manifest["repairs"] = [str(repair) for repair in repairs]
        path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
