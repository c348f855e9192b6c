"""One case in many disguises gives the same bytes: another order, written and read again, made in Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from rich_case import files, rich
from shuffled import shuffled

from pycobre.app import simulate, train
from pycobre.hydro.examples import EXAMPLES
from pycobre.hydro.files import case_files, load_case, read_case_files, write_case
from pycobre.hydro.model import Case

SETTINGS = {
    "training.selection.forward_passes": 2,
    "training.stopping_rules": [{"type": "iteration_limit", "limit": 3}],
}


def results(case: Case) -> tuple[str, dict[str, bytes]]:
    """The policy's digest and every simulation table, byte for byte."""
    trained = train(case, SETTINGS)
    found = simulate(case, trained.policy, 4, config_overrides=SETTINGS)
    return trained.policy.digest, {name: ipc(table) for name, table in found.tables.items()}


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


@pytest.fixture(scope="module")
def expected() -> tuple[str, dict[str, bytes]]:
    return results(rich())


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_declaration_changes_no_byte(
    seed: int, expected: tuple[str, Mapping[str, bytes]]
) -> None:
    content = files()
    other = shuffled(content, seed)
    assert any(other[name] != content[name] for name in content)
    assert results(read_case_files(other, "rich")) == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_another_order_are_written_as_they_were(name: str) -> None:
    content = case_files(EXAMPLES[name].build())
    assert case_files(read_case_files(shuffled(content, 7), name)) == content


def test_written_and_read_again(tmp_path: Path, expected: tuple[str, Mapping[str, bytes]]) -> None:
    """A case made of Python objects, its directory, and the directory of what was read from there."""
    write_case(rich(), tmp_path / "rich")
    first = load_case(tmp_path / "rich")
    write_case(first, tmp_path / "again" / "rich")
    second = load_case(tmp_path / "again" / "rich")
    assert first == rich()
    assert second == first
    assert case_files(second) == case_files(rich())
    assert results(first) == expected
    assert results(second) == expected
