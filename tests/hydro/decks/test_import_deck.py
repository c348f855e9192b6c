"""Decks are repaired, converted in another process and validated; the converter is a stand-in at that border."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pycobre.app.cli import main
from pycobre.errors import CaseError, OptionError, OutputError
from pycobre.hydro.decks import import_deck
from pycobre.hydro.examples import example
from pycobre.hydro.files import load_case, validate, write_case
from pycobre.hydro.model.scenarios import InflowHistory

FAKE = Path(__file__).with_name("fake_bridge.py")
SHARED = Path(__file__).parents[4] / "shared" / "cases" / "pmo-2018-01"

ARQUIVOS = "DADOS GERAIS                : DGER.DAT\r\nDADOS DOS SUBSISTEMAS       : sistema.dat\r\n"
#: The end of a table of loads, and the table of small plants as it was in 2018; years are not subsystems.
SISTEMA = """ MERCADO DE ENERGIA
   2
 999
 GERACAO DE USINAS NAO SIMULADAS
 XXX
       XXXJAN. XXXFEV.
   1
2018     2918.   2919.
POS      3298.   3299.
 {second}
2018     1723.   1566.
 999
   3
"""


@pytest.fixture
def deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deck of 2018, and an interpreter that converts it to the one-reservoir example."""
    python = tmp_path / "python-with-bridge"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYCOBRE_BRIDGE_PYTHON", str(python))
    home = tmp_path / "deck"
    home.mkdir()
    (home / "Caso.dat").write_text("arquivos.dat\n")
    (home / "ARQUIVOS.DAT").write_text(ARQUIVOS)
    (home / "SISTEMA.DAT").write_bytes(SISTEMA.format(second="  2").replace("\n", "\r\n").encode("latin-1"))
    (home / "behave").write_text("converts")
    write_case(example("one-reservoir").build(), home / "case")
    return home


def behave(deck: Path, how: str) -> None:
    (deck / "behave").write_text(how)


def test_a_deck_becomes_a_valid_case_and_is_not_touched(deck: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in deck.rglob("*") if path.is_file()}
    done = import_deck("newave", deck, tmp_path / "studies" / "made")
    assert {path: path.read_bytes() for path in deck.rglob("*") if path.is_file()} == before
    assert [str(repair).partition(":")[0] for repair in done.repairs] == [
        "SISTEMA.DAT, line 7",
        "SISTEMA.DAT, line 10",
    ]
    assert [(note.severity, note.text) for note in done.notes] == [
        ("info", "Excluded 1 plant."),
        ("warning", "The cutoff is unknown. Look at REE.DAT."),
    ]
    assert done.findings == validate(deck / "case") == ()  # the manifest beside the case is no finding
    made = tmp_path / "studies" / "made"
    assert load_case(made).hydros == load_case(deck / "case").hydros
    manifest = json.loads((made / "conversion_manifest.json").read_text())
    assert (manifest["source_dir"], manifest["output_dir"]) == (str(deck), str(made))
    assert len(manifest["repairs"]) == 2
    assert sorted(path.name for path in made.parent.iterdir()) == ["made"]


def test_a_deck_of_today_is_passed_on_as_it_is(deck: Path, tmp_path: Path) -> None:
    text = SISTEMA.replace("   1\n", "   1    1  PCH\n").format(second="  2    3  EOL")
    (deck / "SISTEMA.DAT").write_bytes(text.replace("\n", "\r\n").encode())
    assert import_deck("newave", deck, tmp_path / "made").repairs == ()


def test_a_plant_without_turbines_and_gauge_gets_zeros_and_no_other(deck: Path, tmp_path: Path) -> None:
    """The plant that can generate keeps its hole: inventing its history would be wrong."""
    case = load_case(deck / "case")
    (real,) = case.hydros
    still = tuple(replace(g, max_turbined_m3s=0.0, max_generation_mw=0.0) for g in real.unit_groups)
    months = np.arange("1990-01", "2000-01", dtype="datetime64[M]")
    history = InflowHistory(
        hydro_id=np.full(120, real.id),
        start_date=months.astype("datetime64[D]"),
        end_date=(months + 1).astype("datetime64[D]"),
        value_m3s=np.arange(120.0),
    )
    plants = (real, replace(real, id=7, unit_groups=still), replace(real, id=8))
    write_case(replace(case, hydros=plants, inflow_history=history), deck / "case")
    done = import_deck("newave", deck, tmp_path / "made")
    (repair,) = [each for each in done.repairs if each.file == "scenarios/inflow_history.parquet"]
    assert "hydro 7 " in repair.where
    assert repair.what.startswith("120 months of zero inflow")
    import pyarrow.parquet as parquet

    table = parquet.read_table(tmp_path / "made" / "scenarios" / "inflow_history.parquet")
    by_plant = {id: table.filter(np.array(table["hydro_id"]) == id) for id in (real.id, 7, 8)}
    assert [len(rows) for rows in by_plant.values()] == [120, 120, 0]
    assert by_plant[real.id]["value_m3s"].to_pylist() == list(range(120))
    assert set(by_plant[7]["value_m3s"].to_pylist()) == {0.0}
    assert by_plant[7]["start_date"].to_pylist() == by_plant[real.id]["start_date"].to_pylist()


def test_the_cost_to_go_of_a_weekly_deck_is_left_out_on_demand(deck: Path, tmp_path: Path) -> None:
    for wanted, options in ((True, []), (False, ["--no-fcf"])):
        import_deck("decomp", deck, tmp_path / str(wanted), cost_to_go=wanted)
        manifest = json.loads((tmp_path / str(wanted) / "conversion_manifest.json").read_text())
        assert manifest["options"] == options
        assert manifest["repairs"] == []


REFUSALS = {
    "refuses": (
        CaseError,
        r"newave deck: expected one that cobre-bridge can convert, got: dger.dat has no year. field",
    ),
    "garbage": (CaseError, r"ended with 1: ZeroDivisionError: division by zero\)\. `.*check newave DECK`"),
    "not a report": (
        CaseError,
        r"expected a report of cobre-bridge, got none \(it ended with 0: no message\)",
    ),
    "killed": (CaseError, r"got none \(it ended with -6: "),
    "absent": (
        OptionError,
        r"expected the package cobre-bridge, got .*python-with-bridge, which does not have it\. ",
    ),
}


@pytest.mark.parametrize("how", REFUSALS)
def test_whatever_the_converter_does_ends_in_a_sentence_and_leaves_nothing(
    deck: Path, tmp_path: Path, how: str
) -> None:
    behave(deck, how)
    error, text = REFUSALS[how]
    with pytest.raises(error, match=text):
        import_deck("newave", deck, tmp_path / "made")
    assert not (tmp_path / "made").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_the_package_the_sentence_says_what_to_install(
    deck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYCOBRE_BRIDGE_PYTHON")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    with pytest.raises(
        OptionError, match=r"got Python 3\.11 without it\. It needs Python 3\.12 or newer: `python3"
    ):
        import_deck("newave", deck, tmp_path / "made")
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    with pytest.raises(
        OptionError, match=r'Install it with `pip install "pycobre\[newave\]"`, or name an inter'
    ):
        import_deck("newave", deck, tmp_path / "made")


def test_wrong_arguments_are_refused_before_anything_is_done(
    deck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match=r"import: expected one of newave, decomp, got 'dessem'\."):
        import_deck("dessem", deck, tmp_path / "made")
    with pytest.raises(OptionError, match=r"expected the directory of a deck\. Unpack its archive first\."):
        import_deck("newave", deck / "Caso.dat", tmp_path / "made")
    with pytest.raises(OutputError, match=r"expected a new or empty directory, got a directory with files"):
        import_deck("newave", deck, deck)
    monkeypatch.setenv("PYCOBRE_BRIDGE_PYTHON", "/nowhere/python")
    with pytest.raises(
        OptionError, match=r"expected a Python interpreter, got /nowhere/python: No such file"
    ):
        import_deck("newave", deck, tmp_path / "made")


def test_the_command_prints_a_line_for_each_repair_and_remark(
    deck: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "newave", str(deck), str(tmp_path / "made")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "repaired",
        "repaired",
        "note",
        "warning",
        str(tmp_path / "made"),
        "next",
    ]
    assert lines[4].endswith("written, 0 errors, 0 warnings")


def test_a_case_with_errors_is_kept_for_correction(
    deck: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (deck / "case" / "penalties.json").unlink()
    assert main(["import", "newave", str(deck), str(tmp_path / "made")]) == 1
    printed = capsys.readouterr().out
    assert "error [missing_file] penalties.json" in printed
    assert printed.splitlines()[-1].startswith(f"hint: correct these in {tmp_path / 'made'}")
    assert (tmp_path / "made" / "config.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    not (os.environ.get("PYCOBRE_NEWAVE_DECK") and os.environ.get("PYCOBRE_BRIDGE_PYTHON")),
    reason="PYCOBRE_NEWAVE_DECK names no deck of January 2018 or PYCOBRE_BRIDGE_PYTHON no converter",
)
@pytest.mark.skipif(not SHARED.is_dir(), reason="the converted national study is not beside the checkout")
def test_the_deck_of_january_2018_gives_the_national_study(tmp_path: Path) -> None:
    done = import_deck("newave", os.environ["PYCOBRE_NEWAVE_DECK"], tmp_path / "made")
    assert len(done.repairs) == 5
    made, known = load_case(tmp_path / "made"), load_case(SHARED)
    assert replace(made, name="") == replace(known, name="")
