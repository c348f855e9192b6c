"""Cases as CSV files and workbooks: there and back is the identity; wrong cells are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pycobre.app.case_sheets import case_to_sheets, read_sheets, sheets_to_case, write_sheets
from pycobre.app.cli import main
from pycobre.app.results import workbook
from pycobre.errors import CaseError, OutputError
from pycobre.hydro.examples import example
from pycobre.hydro.files import case_files, identity, load_case, write_case


@pytest.mark.parametrize("form", ["csv", "xlsx"])
@pytest.mark.parametrize("name", ["one-reservoir", "four-regions", "cascade"])
def test_there_and_back_is_the_same_case(name: str, form: str, tmp_path: Path) -> None:
    if form == "xlsx":
        pytest.importorskip("openpyxl", reason="the extra frames is not installed")
    case = example(name).build()
    # Names that a spreadsheet, or a reader of JSON, could take for something else.
    odd = ("12", "=1+1", "true", " x ", 'a,"b"\nc', "NaN")
    buses = tuple(replace(bus, name=text) for bus, text in zip(case.buses, odd, strict=False))
    case = replace(case, buses=(*buses, *case.buses[len(buses) :]))
    target = tmp_path / ("sheets" if form == "csv" else "sheets.xlsx")
    sheets = case_to_sheets(case)
    write_sheets(sheets, form, target)
    back = sheets_to_case(read_sheets(form, target), case.name)
    assert case_files(back) == case_files(case)
    assert identity(back) == identity(case)
    again = tmp_path / ("again" if form == "csv" else "again.xlsx")
    write_sheets(case_to_sheets(back), form, again)
    assert read_sheets(form, again) == read_sheets(form, target)


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets = case_to_sheets(example("cascade").build())
    with pytest.raises(CaseError, match=r"table system/plants: expected one of a case's"):
        sheets_to_case({**sheets, "system/plants": [["id"], [1]]}, "a")
    table = next(name for name, grid in sheets.items() if "mean_mw" in grid[0])
    header, first, *rest = sheets[table]
    wrong = [("much" if name == "mean_mw" else cell) for name, cell in zip(header, first, strict=True)]
    with pytest.raises(
        CaseError, match=r"row 2, mean_mw: expected a number, got 'much'\. Correct the cell\."
    ):
        sheets_to_case({**sheets, table: [header, wrong, *rest]}, "a")
    names = ["nmae" if name == "name" else name for name in sheets["system/hydros"][0]]
    with pytest.raises(CaseError, match="Did you mean 'name'"):
        sheets_to_case({**sheets, "system/hydros": [names, *sheets["system/hydros"][1:]]}, "a")
    with pytest.raises(OutputError, match="expected a folder with CSV files"):
        read_sheets("csv", tmp_path)
    (tmp_path / "book.xlsx").write_text("no workbook")
    pytest.importorskip("openpyxl", reason="the extra frames is not installed")
    with pytest.raises(OutputError, match=r"expected a workbook \(\.xlsx\)"):
        read_sheets("xlsx", tmp_path / "book.xlsx")
    write_sheets(sheets, "xlsx", tmp_path / "large.xlsx")
    monkeypatch.setattr(workbook, "LARGEST_UNPACKED", 1000)
    with pytest.raises(OutputError, match="more than 1,000"):
        read_sheets("xlsx", tmp_path / "large.xlsx")


def test_long_lists_fit_into_csv_and_are_refused_by_workbooks(tmp_path: Path) -> None:
    long = {"config.settings": [["path", "value"], ["x", "[" + "1, " * 60_000 + "1]"]]}
    write_sheets(long, "csv", tmp_path)
    assert read_sheets("csv", tmp_path) == long
    pytest.importorskip("openpyxl", reason="the extra frames is not installed")
    with pytest.raises(OutputError, match=r"at most 32,767 characters.*Write csv instead\."):
        write_sheets(long, "xlsx", tmp_path / "long.xlsx")
    assert not (tmp_path / "long.xlsx").exists()


def test_the_command_line_exports_and_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    case = tmp_path / "lake"
    write_case(example("one-reservoir").build(), case)
    assert main(["export", str(case), "--to", "csv"]) == 0
    assert "next: edit them, then pycobre import csv" in capsys.readouterr().out
    assert main(["import", "csv", str(tmp_path / "lake-csv"), str(tmp_path / "back")]) == 0
    assert identity(load_case(tmp_path / "back")) == identity(load_case(case))
    assert main(["import", "csv", str(tmp_path / "lake-csv"), str(tmp_path / "back")]) == 1
    assert "expected a new directory" in capsys.readouterr().err
