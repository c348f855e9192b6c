"""Whatever happens to a file of a case is a finding: never another table, an endless wait, or the end of the process.

The Parquet library can end the process, so damaged files are read in children.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pycobre.hydro.examples import example
from pycobre.hydro.files import case_files, validate, validate_files, write_case
from pycobre.hydro.files.parquet_files import dump_parquet, read_parquet
from pycobre.hydro.files.parquet_footer import LARGEST_DECODED, largest_decoded, read_footer
from pycobre.hydro.model.findings import Severity
from pycobre.hydro.model.scenarios import InflowStats

SECTION = "inflow_stats"
TABLE = InflowStats(
    hydro_id=np.array([1, 1, 2]),
    stage_id=np.array([0, 1, 0]),
    mean_m3s=np.array([1.5, 2.5, 3.0]),
    std_m3s=np.array([0.1, 0.2, 0.3]),
)


def outcome(content: bytes) -> int:
    """0: the same table or an error among the findings; 1: another table; 2: an exception."""
    try:
        table, findings = read_parquet(content, SECTION)
    except Exception:  # noqa: BLE001 - any is a failure
        return 2
    if table is None:
        return 0 if any(f.severity is Severity.ERROR for f in findings) else 1
    return 0 if table == TABLE else 1


def in_a_child(mutants: Iterator[bytes]) -> list[int]:
    """How a child ended, for every mutant that was not read as it should be."""
    wrong = []
    for mutant in mutants:
        child = os.fork()
        if child == 0:
            os._exit(outcome(mutant))
        _, status = os.waitpid(child, 0)
        if status:
            wrong.append(status)
    return wrong


def flipped(content: bytes, places: list[int], bits: range) -> Iterator[bytes]:
    for place in places:
        for bit in bits:
            mutant = bytearray(content)
            mutant[place] ^= 1 << bit
            yield bytes(mutant)


def test_flipped_bits_are_findings() -> None:
    content = dump_parquet(TABLE)
    drawn = np.random.default_rng(3).choice(len(content), 60, replace=False)
    assert in_a_child(flipped(content, drawn.tolist(), range(7, 8))) == []


@pytest.mark.slow
def test_every_flipped_bit_is_a_finding() -> None:
    content = dump_parquet(TABLE)
    assert in_a_child(flipped(content, list(range(len(content))), range(8))) == []


@pytest.mark.slow
def test_random_damage_is_a_finding() -> None:
    content, draw = dump_parquet(TABLE), np.random.default_rng(11)

    def mutants() -> Iterator[bytes]:
        for _ in range(3000):
            mutant = bytearray(content)
            for _ in range(int(draw.integers(1, 6))):
                mutant[int(draw.integers(len(mutant)))] = int(draw.integers(256))
            yield bytes(mutant[: int(draw.integers(1, len(mutant) + 1))] if draw.random() < 0.2 else mutant)

    assert in_a_child(mutants()) == []


def test_a_cut_file_is_a_finding() -> None:
    content = dump_parquet(TABLE)
    assert in_a_child(content[:length] for length in range(0, len(content), 37)) == []


def written(columns: dict[str, pa.Array], **how: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, **{"compression": "zstd", **how})
    return bytes(sink.getvalue())


def kinds(content: bytes) -> list[tuple[str, str]]:
    table, findings = read_parquet(content, SECTION)
    return [(f.kind, f.where) for f in findings] if table is None else []


def with_ids(array: pa.Array) -> bytes:
    ones = pa.array([1.0] * len(array))
    return written(
        {"hydro_id": array, "stage_id": pa.array([0] * len(array)), "mean_m3s": ones, "std_m3s": ones}
    )


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2**63], pa.uint64()),
        pa.array([1, 2**64 - 1], pa.uint64()),
        pa.array([1, 2**63 - 1], pa.int64()),
        pa.array([1, -(2**63)], pa.int64()),
        pa.array([1, -(2**31)], pa.int64()),
        pa.array([1, None, 2**63], pa.uint64()),
    ],
    ids=str,
)
def test_ids_beyond_32_bits_are_findings(array: pa.Array) -> None:
    row = len(array) - 1
    assert ("out_of_range", f"hydro_id, row {row}") in kinds(with_ids(array))


def test_small_unsigned_ids_and_large_counts_are_read() -> None:
    table, findings = read_parquet(with_ids(pa.array([1, 7], pa.uint64())), SECTION)
    assert findings == []
    assert table is not None
    large = written(
        {
            "hydro_id": pa.array([1]),
            "stage_id": pa.array([0]),
            "mean_m3s": pa.array([2**64 - 1], pa.uint64()),
            "std_m3s": pa.array([0.0]),
        }
    )
    found, _ = read_parquet(large, SECTION)
    assert isinstance(found, InflowStats)
    assert found.mean_m3s[0] == 2.0**64


def test_dates_of_no_calendar_are_findings() -> None:
    content = written(
        {
            "hydro_id": pa.array([1]),
            "start_date": pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
            "end_date": pa.array([1], pa.int32()).cast(pa.date32()),
            "value_m3s": pa.array([1.0]),
        }
    )
    table, findings = read_parquet(content, "inflow_history")
    assert table is None
    assert [str(f) for f in findings] == [
        "error [out_of_range] scenarios/inflow_history.parquet: start_date, row 0: expected a date of the years "
        "1 to 9999, got 5881580-07-11."
    ]


def test_a_column_twice_is_a_finding() -> None:
    ones = pa.array([1.0])
    sink = pa.BufferOutputStream()
    ids = pa.array([1])
    names = ["hydro_id", "stage_id", "mean_m3s", "std_m3s", "std_m3s"]
    pq.write_table(pa.Table.from_arrays([ids, ids, ones, ones, ones], names=names), sink)
    assert kinds(bytes(sink.getvalue())) == [("duplicate_column", "std_m3s")]


def test_a_small_file_that_becomes_a_large_table_is_not_read() -> None:
    rows = 20_000_000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([1.0]))
    content = written(dict.fromkeys(("mean_m3s", "std_m3s"), same))
    assert len(content) < 200_000
    table, findings = read_parquet(content, SECTION)
    assert table is None
    assert [f.kind for f in findings] == ["table_too_large"]
    assert f"expected a table of at most {64 << 20:,} bytes in memory for a file of {len(content):,}" in str(
        findings[0]
    )
    assert "20,000,000 rows" in str(findings[0])


def test_the_limit_grows_with_the_file() -> None:
    assert largest_decoded(100) == 64 << 20
    assert largest_decoded(1 << 20) == 200 << 20
    assert largest_decoded(1 << 40) == LARGEST_DECODED


def test_the_footer_counts_what_the_library_counts() -> None:
    content = written(
        {"a": pa.array(range(1000)), "b": pa.array([1.5] * 1000)}, compression="snappy", row_group_size=300
    )
    footer = read_footer(content)
    meta = pq.ParquetFile(pa.BufferReader(content)).metadata
    groups = [meta.row_group(g) for g in range(meta.num_row_groups)]
    assert footer.rows == meta.num_rows
    assert footer.codecs == {"SNAPPY"}
    assert footer.decoded <= sum(g.total_byte_size for g in groups) + 8 * 2000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_case(example("one-reservoir").build(), tmp_path / "case")
    return tmp_path / "case"


def test_a_pipe_in_place_of_a_file_is_a_finding(directory: Path) -> None:
    for name in ("config.json", "scenarios/inflow_seasonal_stats.parquet"):
        (directory / name).unlink()
        os.mkfifo(directory / name)
    found = {f.file: str(f) for f in validate(directory) if f.kind == "not_a_file"}
    assert found == {
        "config.json": "error [not_a_file] config.json: expected a regular file, got a pipe.",
        "scenarios/inflow_seasonal_stats.parquet": "error [not_a_file] scenarios/inflow_seasonal_stats.parquet: "
        "expected a regular file, got a pipe.",
    }


def test_a_device_in_place_of_a_file_is_a_finding(directory: Path) -> None:
    (directory / "penalties.json").unlink()
    (directory / "penalties.json").symlink_to("/dev/zero")
    (found,) = [str(f) for f in validate(directory) if f.kind == "not_a_file"]
    assert found == "error [not_a_file] penalties.json: expected a regular file, got a device or socket."


def test_a_file_beyond_the_limit_is_not_read(directory: Path) -> None:
    with (directory / "penalties.json").open("r+b") as file:
        file.truncate((4 << 30) + 1)  # sparse
    (found,) = [str(f) for f in validate(directory) if f.kind == "file_too_large"]
    assert found.startswith(
        "error [file_too_large] penalties.json: expected a file of at most 4,294,967,296 bytes, got"
    )


def test_a_link_to_a_regular_file_is_read(directory: Path, tmp_path: Path) -> None:
    (directory / "penalties.json").rename(tmp_path / "elsewhere.json")
    (directory / "penalties.json").symlink_to(tmp_path / "elsewhere.json")
    assert [f for f in validate(directory) if f.severity is Severity.ERROR] == []


def integers(data: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of every number in a JSON value; of a list, those of its first item."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from integers(value, (*path, key))
    elif isinstance(data, list):
        for value in data[:1]:
            yield from integers(value, (*path, 0))
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path


def with_number(data: Any, path: tuple[str | int, ...], number: int) -> bytes:
    changed = holder = json.loads(json.dumps(data))
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = number
    return json.dumps(changed).encode()


@pytest.mark.parametrize("number", [2**63, -(2**63), 10**400], ids=["2^63", "-2^63", "10^400"])
def test_huge_numbers_anywhere_are_findings(number: int) -> None:
    files = case_files(example("cascade").build())
    for name, content in files.items():
        if not name.endswith(".json"):
            continue
        data = json.loads(content)
        for path in integers(data):
            found = validate_files({**files, name: with_number(data, path, number)})
            if path[-1] == "id" or str(path[-1]).endswith("_id"):
                assert "out_of_range" in {f.kind for f in found}, (name, path)


def test_a_count_of_more_bits_than_any_is_a_finding() -> None:
    files = case_files(example("cascade").build())
    config = json.loads(files["config.json"])
    path = ("training", "selection", "forward_passes")
    (found,) = validate_files({**files, "config.json": with_number(config, path, 2**64)})
    assert str(found) == (
        "error [out_of_range] config.json: training.selection.forward_passes: "
        "input should be an integer of 64 bits, got 18446744073709551616."
    )
