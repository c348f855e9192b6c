"""What a NEWAVE deck of an earlier year lacks, added to a copy of the file in question.

Each repair changes nothing in a deck of today's format.
"""

from __future__ import annotations

from pathlib import Path

from pycobre._util.frozen import frozen

__all__ = ["Repair", "repaired_files"]

_ENCODING = "latin-1"  # every byte is a character, and comes back as it was
_INDEX_OF_FILES = "caso.dat"
_FILE_COLUMN = 30
_SUBSYSTEMS = "DADOS DOS SUBSISTEMAS"
_SMALL_PLANTS = "GERACAO DE USINAS NAO SIMULADAS"
_END_OF_BLOCK = "999"
_BLOCK_FIELD = "  1  PCH"  # the index in columns 7 to 9, the source's name from column 12: small hydro plants
_BEFORE_BLOCK = 6


@frozen()
class Repair:
    """One change, and where it was made."""

    file: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}, {self.where}: {self.what}"


def repaired_files(deck: Path) -> tuple[dict[str, bytes], tuple[Repair, ...]]:
    """The files of a NEWAVE deck that need a repair, as they should be, and what was done."""
    name = _named_file(deck, _SUBSYSTEMS)
    path = _there(deck, name) if name else None
    if path is None:
        return {}, ()  # the converter says which file it misses
    text, repairs = _with_block_indices(path.read_bytes().decode(_ENCODING), path.name)
    return ({path.name: text.encode(_ENCODING)} if repairs else {}), repairs


def _with_block_indices(text: str, file: str) -> tuple[str, tuple[Repair, ...]]:
    """The table of small plants with a block index behind each subsystem; decks before 2020 have one block only."""
    lines = text.split("\n")
    repairs: list[Repair] = []
    start = next((n for n, line in enumerate(lines) if line.strip().startswith(_SMALL_PLANTS)), len(lines))
    for number in range(start + 3, len(lines)):  # below two lines of headings
        line = lines[number].rstrip()
        if line.strip() == _END_OF_BLOCK:
            break
        if len(line) <= _BEFORE_BLOCK and line.strip().isdigit() and line[:1] == " ":
            ending = lines[number][len(line) :]
            lines[number] = line.ljust(_BEFORE_BLOCK) + _BLOCK_FIELD + ("\r" if ending.endswith("\r") else "")
            what = f"small plants of subsystem {line.strip()} get block index 1 and the name PCH, fields that the "
            what += "deck is older than"
            repairs.append(Repair(file, f"line {number + 1}", what))
    return "\n".join(lines), tuple(repairs)


def _named_file(deck: Path, legend: str) -> str | None:
    """The name that the deck's list of files gives to one of them."""
    first = _there(deck, _INDEX_OF_FILES)
    names = _lines(first) if first is not None else []
    listed = _there(deck, names[0].strip()) if names else None
    for line in _lines(listed) if listed is not None else []:
        if line.upper().startswith(legend):
            return line[_FILE_COLUMN:].strip() or None
    return None


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode(_ENCODING).splitlines()


def _there(deck: Path, name: str) -> Path | None:
    """The deck's file of that name, in whatever case it is written."""
    return next((p for p in sorted(deck.iterdir()) if p.name.lower() == name.lower() and p.is_file()), None)
