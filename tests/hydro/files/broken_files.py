"""Cases whose files are missing, cannot be read, or do not have the right shape."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
from broken import (
    BUSES,
    CONFIG,
    HISTORY,
    HYDROS,
    INFLOW,
    INITIAL,
    LIMITS,
    LOAD,
    PENALTIES,
    STAGES,
    THERMALS,
    Broken,
    Said,
    broken,
    doubt,
)
from rich_case import (
    Files,
    Mutation,
    cell,
    drop,
    files,
    keys,
    parquet_of,
    put,
    raw,
    rows,
    table_of,
    without,
)


def renamed(old: str, new: str) -> Mutation:
    def mutate(content: Files) -> None:
        content[new] = content.pop(old)

    return mutate


def column(file: str, old: str, new: str) -> Mutation:
    return rows(file, lambda t: t.rename_columns([new if n == old else n for n in t.column_names]))


def codec(file: str, compression: str) -> Mutation:
    return raw(file, parquet_of(table_of(files()[file]), compression))


def truncated() -> bytes:
    return files()[INFLOW][:-30]


def history(kind: pa.DataType, *values: object) -> bytes:
    """Inflow history whose start dates have another type."""
    count = len(values)
    table = pa.table(
        {
            "hydro_id": pa.array([0] * count, type=pa.int32()),
            "start_date": pa.array(values, type=kind),
            "end_date": pa.array([date(2025, 12, 1)] * count, type=pa.date32()),
            "value_m3s": pa.array([1.0] * count),
        }
    )
    return parquet_of(table)


BROKEN_FILES: tuple[Broken, ...] = (
    broken(
        "a required file is missing",
        without(PENALTIES),
        Said("missing_file", PENALTIES, "the file is required"),
    ),
    broken(
        "a required file is misspelt",
        renamed(PENALTIES, "penalites.json"),
        Said("missing_file", PENALTIES, "the file is required"),
        Said("unknown_file", "penalites.json", "is not read. Did you mean 'penalties.json'?"),
    ),
    broken(
        "an optional file is misspelt",
        renamed("constraints/line_bounds.parquet", "constraints/lines_bounds.parquet"),
        Said(
            "unknown_file",
            "constraints/lines_bounds.parquet",
            "Did you mean 'constraints/line_bounds.parquet'?",
        ),
    ),
    broken(
        "a file that belongs to no case",
        raw("system/notes.json", b"{}"),
        doubt("unknown_file", "system/notes.json", "is not part of a case and is not read"),
    ),
    broken(
        "JSON that ends too early",
        raw(BUSES, b'{"buses": ['),
        Said("malformed_json", BUSES, "expected well-formed JSON, got Expecting value: line 1 column 12"),
    ),
    broken(
        "an empty file",
        raw(BUSES, b""),
        Said("malformed_json", BUSES, "got Expecting value: line 1 column 1"),
    ),
    broken(
        "JSON in another encoding",
        raw(BUSES, '{"buses": "é"}'.encode("latin-1")),
        Said("malformed_json", BUSES, "codec can't decode"),
    ),
    broken(
        "a key twice in one object",
        raw(BUSES, b'{"buses": [], "buses": []}'),
        Said("malformed_json", BUSES, "the key 'buses' twice in one object"),
    ),
    broken(
        "NaN in JSON",
        raw(BUSES, b'{"buses": [NaN]}'),
        Said("malformed_json", BUSES, "NaN, which is not a JSON number"),
    ),
    broken(
        "a number too large for a double",
        raw(
            BUSES,
            b'{"buses": [{"id": 0, "name": "a", "operational_start_date": "2000-01-01",'
            b'"deficit_segments": [{"cost": 1e400}]}]}',
        ),
        Said(
            "not_finite",
            BUSES,
            "input should be a finite number",
            where="buses[0].deficit_segments[0].cost",
        ),
    ),
    broken(
        "a list where an object is expected",
        raw(BUSES, b"[]"),
        Said("wrong_type", BUSES, "should be an object, got []"),
    ),
    broken(
        "an object where a list is expected",
        put(BUSES, "buses", {}),
        Said("wrong_type", BUSES, "valid array, got {}", where="buses"),
    ),
    broken(
        "a text where a number is expected",
        put(THERMALS, "thermals.2.generation.max_mw", "90"),
        Said("wrong_type", THERMALS, 'valid number, got "90"', where="thermals[2].generation.max_mw"),
    ),
    broken(
        "a fraction where an integer is expected",
        put(STAGES, "stages.1.num_openings", 2.5),
        Said("wrong_type", STAGES, "valid integer, got 2.5", where="stages[1].num_openings"),
    ),
    broken(
        "a truth value where a number is expected",
        put(THERMALS, "thermals.0.cost_per_mwh", True),
        Said("wrong_type", THERMALS, "valid number, got true", where="thermals[0].cost_per_mwh"),
    ),
    broken(
        "null where a value is required",
        put(HYDROS, "hydros.0.reservoir", None),
        Said("wrong_type", HYDROS, "got null", where="hydros[0].reservoir"),
    ),
    broken(
        "a required key is missing",
        drop(HYDROS, "hydros.3.reservoir.max_storage_hm3"),
        Said(
            "missing_key",
            HYDROS,
            "the key 'max_storage_hm3' is required",
            where="hydros[3].reservoir.max_storage_hm3",
        ),
    ),
    broken(
        "a misspelt key",
        keys(THERMALS, "thermals.0", "cost_per_mwh", "cost_per_mhw"),
        Said("missing_key", THERMALS, "'cost_per_mwh' is required", where="thermals[0].cost_per_mwh"),
        Said("unknown_key", THERMALS, "Did you mean 'cost_per_mwh'?", where="thermals[0].cost_per_mhw"),
    ),
    broken(
        "a misspelt key deep inside",
        keys(STAGES, "stages.0.state_variables", "inflow_lags", "inflow_lag"),
        Said(
            "unknown_key",
            STAGES,
            "there is no key 'inflow_lag' here. Did you mean 'inflow_lags'?",
            where="stages[0].state_variables.inflow_lag",
        ),
    ),
    broken(
        "a key that resembles none",
        put(CONFIG, "training.colour", "blue"),
        Said("unknown_key", CONFIG, "there is no key 'colour' here. Remove it.", where="training.colour"),
    ),
    broken(
        "a word that is not one of the choices",
        put(CONFIG, "training.stopping_mode", "some"),
        Said(
            "invalid_value",
            CONFIG,
            "should be 'any' or 'all', got \"some\"",
            where="training.stopping_mode",
        ),
    ),
    broken(
        "a method that does not exist",
        put(CONFIG, "training.selection.method", "guessed"),
        Said("invalid_value", CONFIG, "'sampled', 'enumerated'", where="training.selection"),
    ),
    broken(
        "a choice without its method",
        drop(CONFIG, "training.selection.method"),
        Said("missing_key", CONFIG, "the key 'method' is required", where="training.selection"),
    ),
    broken(
        "a day that does not exist",
        put(STAGES, "stages.1.start_date", "2026-02-30"),
        Said(
            "invalid_value",
            STAGES,
            'day value is outside expected range, got "2026-02-30"',
            where="stages[1].start_date",
        ),
    ),
    broken(
        "bytes that are not Parquet",
        raw(INFLOW, b"PAR1 nonsense"),
        Said("malformed_parquet", INFLOW, "expected a readable Parquet file"),
    ),
    broken(
        "a Parquet file that ends too early",
        raw(INFLOW, truncated()),
        Said("malformed_parquet", INFLOW, "Write it again, for example with pyarrow"),
    ),
    broken(
        "a required column is missing",
        rows(INFLOW, lambda t: t.drop_columns(["mean_m3s"])),
        Said("missing_column", INFLOW, "the column is required", where="mean_m3s"),
    ),
    broken(
        "a required column is misspelt",
        column(INFLOW, "mean_m3s", "mean_m3"),
        Said("missing_column", INFLOW, "Is 'mean_m3' meant to be it?", where="mean_m3s"),
        Said("unknown_column", INFLOW, "Did you mean 'mean_m3s'?", where="mean_m3"),
    ),
    broken(
        "an optional column is misspelt",
        column(LIMITS, "max_storage_hm3", "max_storage_hm"),
        Said(
            "unknown_column", LIMITS, "is not read. Did you mean 'max_storage_hm3'?", where="max_storage_hm"
        ),
    ),
    broken(
        "a column of the author's own",
        rows(LIMITS, lambda t: t.append_column("remark", pa.array(["dry year"]))),
        doubt("unknown_column", LIMITS, "the column has no meaning here and is not read", where="remark"),
    ),
    broken(
        "texts in a column of numbers",
        rows(LOAD, lambda t: t.set_column(2, "mean_mw", t["mean_mw"].cast(pa.string()))),
        Said("wrong_type", LOAD, "expected numbers, got string", where="mean_mw"),
    ),
    broken(
        "fractions in a column of ids",
        rows(LOAD, lambda t: t.set_column(0, "bus_id", t["bus_id"].cast(pa.float64()))),
        Said("wrong_type", LOAD, "expected integers, got double", where="bus_id"),
    ),
    broken(
        "numbers in a column of dates",
        raw(HISTORY, history(pa.int64(), 20240101)),
        Said("wrong_type", HISTORY, "expected dates, got int64", where="start_date"),
    ),
    broken(
        "no date",
        raw(HISTORY, history(pa.date32(), None)),
        Said("null", HISTORY, "expected a value in every row, got null", where="start_date, row 0"),
    ),
    broken(
        "NaN in a table",
        cell(INFLOW, "std_m3s", 7, float("nan")),
        Said("not_finite", INFLOW, "expected a finite number, got nan", where="std_m3s, row 7"),
    ),
    broken(
        "infinity in a table",
        cell(INFLOW, "mean_m3s", 3, float("inf")),
        Said("not_finite", INFLOW, "expected a finite number, got inf", where="mean_m3s, row 3"),
    ),
    broken(
        "null in a table",
        cell(LOAD, "mean_mw", 2, None),
        Said("null", LOAD, "expected a value in every row, got null", where="mean_mw, row 2"),
    ),
    broken(
        "an id of 64 bits in a table",
        rows(LOAD, lambda t: t.set_column(0, "bus_id", pa.array([2**40] * 6))),
        Said("out_of_range", LOAD, "expected a 32-bit integer, got 1099511627776", where="bus_id, row 0"),
    ),
    broken(
        "snappy Parquet",
        codec(INFLOW, "snappy"),
        doubt("snappy_codec", INFLOW, "pycobre reads it, Cobre does not: write it with compression='zstd'"),
    ),
    broken(
        "post-study stages",
        raw("post_study_stages.json", b"{}"),
        Said("unsupported", "post_study_stages.json", "post-study stages are not supported yet"),
    ),
    Broken(
        "many files at once",
        (without(PENALTIES), raw(BUSES, b"{"), raw(INFLOW, b""), drop(INITIAL, "storage")),
        (
            Said("missing_file", PENALTIES, "the file is required"),
            Said("malformed_json", BUSES, "expected well-formed JSON"),
            Said("malformed_parquet", INFLOW, "expected a readable Parquet file"),
            Said("missing_key", INITIAL, "the key 'storage' is required", where="storage"),
        ),
    ),
)
