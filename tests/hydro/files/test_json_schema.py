"""The exported JSON Schemas say what the reader accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic.json_schema import GenerateJsonSchema
from test_schemas import keys_of

from pycobre.hydro.examples import example
from pycobre.hydro.files import case_files, write_case, write_schemas
from pycobre.hydro.files.json_files import JSON_FILES
from pycobre.hydro.files.json_schema import json_schema
from pycobre.hydro.files.json_types import file_description


@pytest.mark.parametrize("file", JSON_FILES)
def test_keys_types_and_words_are_those_of_the_reader(file: str) -> None:
    """Against the validation library's own generator, which works from the same descriptions."""
    ours, theirs = keys_of(json_schema(file)), keys_of(GenerateJsonSchema().generate(file_description(file)))
    assert set(ours) - {"$schema"} == set(theirs)
    assert {path: ours[path].words for path in theirs} == {path: theirs[path].words for path in theirs}
    assert {path for path in theirs if theirs[path].required} <= {
        path for path in ours if ours[path].required
    }


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Whether a value has what a schema asks for: as much of JSON Schema as ours use."""
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for word, enough in (("anyOf", any), ("oneOf", lambda found: sum(found) == 1)):
        if word in schema:
            return enough([fits(value, each, root) for each in schema[word]])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
    }
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if value is None or not any(isinstance(value, kinds[n]) for n in named if n != "null"):
        return value is None and "null" in named
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", False)
        return set(schema.get("required", ())) <= set(value) and all(
            fits(item, known[key], root) if key in known else bool(others) and fits(item, others, root)
            for key, item in value.items()
        )
    if isinstance(value, list):
        parts = schema.get("prefixItems", [schema.get("items")] * len(value))
        return len(parts) == len(value) and all(map(lambda x, s: fits(x, s, root), value, parts))
    return True


def test_the_files_of_the_examples_fit(tmp_path: Path) -> None:
    written = write_schemas(tmp_path / "schemas")
    assert len(written) == len(JSON_FILES)
    schemas = {file: json.loads(path.read_text()) for file, path in zip(JSON_FILES, written, strict=True)}
    for name in ("one-reservoir", "cascade", "four-regions"):
        for file, content in case_files(example(name).build()).items():
            if file.endswith(".json"):
                data = json.loads(content)
                assert fits(data, schemas[file], schemas[file]), (name, file)
                assert not fits(data | {"surplus": 1}, schemas[file], schemas[file])


def test_written_files_name_the_schema_that_lies_beside_them(tmp_path: Path) -> None:
    """An editor follows the reference from the file's own folder, and finds the schema of that file."""
    home = tmp_path / "made"
    write_case(example("four-regions").build(), home)
    files = [path for path in home.rglob("*.json") if path.parent.name != "schemas"]
    assert len(files) >= 9
    for path in files:
        data = json.loads(path.read_text())
        named = (path.parent / data["$schema"]).resolve()
        assert named.parent == home / "schemas"
        schema = json.loads(named.read_text())
        assert schema["title"] == path.relative_to(home).as_posix()
        assert fits(data, schema, schema)
    # Written once more into the same directory, a schema that was changed comes back, and others stay as they are.
    changed, other = home / "schemas" / "stages.schema.json", home / "schemas" / "notes.txt"
    before, touched = changed.read_bytes(), (home / "schemas" / "buses.schema.json").stat().st_mtime_ns
    changed.write_text("{}")
    other.write_text("mine")
    write_case(example("four-regions").build(), home)
    assert changed.read_bytes() == before
    assert (other.read_text(), (home / "schemas" / "buses.schema.json").stat().st_mtime_ns) == (
        "mine",
        touched,
    )
