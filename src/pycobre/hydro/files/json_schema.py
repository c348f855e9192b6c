"""JSON Schemas of a case's files, for editors that complete and check what is typed.

They are made from the same descriptions that the reader checks with, so that the two cannot differ. What depends on
several files (references, coverage) is left to `pycobre validate`. A written case has them beside its files, which
refer to them by relative paths: that works without a network, and is of the version that wrote the case.
"""

from __future__ import annotations

import json
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from pycobre._util.files import write_atomically
from pycobre.hydro.files.json_files import JSON_FILES
from pycobre.hydro.files.json_types import Description, file_description

__all__ = ["FOLDER", "json_schema", "schema_files", "schema_reference", "write_schemas"]

FOLDER = "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {"bool": "boolean", "float": "number", "str": "string"}


def write_schemas(directory: str | PathLike[str]) -> tuple[Path, ...]:
    """Write the schema of every JSON file of a case, `stages.schema.json` for `stages.json`; returns their paths."""
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    for name, content in schema_files().items():
        path = root / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content)
    return tuple(root / name for name in schema_files())


@cache
def schema_files() -> dict[str, bytes]:
    """Name to content of every schema, in the order of the files that they are about."""
    return {
        _name(file): json.dumps(json_schema(file), indent=2, ensure_ascii=False).encode() + b"\n"
        for file in JSON_FILES
    }


def schema_reference(file: str) -> str:
    """What a file of a case says in `$schema`: the way from its folder to its schema."""
    return f"{'../' * file.count('/') or './'}{FOLDER}/{_name(file)}"


def _name(file: str) -> str:
    return f"{Path(file).stem}.schema.json"


def json_schema(file: str) -> dict[str, Any]:
    """The schema of one file, by its path in a case."""
    definitions: dict[str, Any] = {}
    root = _Writer(definitions).schema(file_description(file))
    root = definitions.pop(root["$ref"].rpartition("/")[2]) if "$ref" in root else root
    root["properties"] = {"$schema": {"type": ["string", "null"]}, **root["properties"]}
    return {"$schema": DIALECT, "title": file, **root, "$defs": dict(sorted(definitions.items()))}


class _Writer:
    """From the validation library's words to those of JSON Schema; records are written once, under their names."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def schema(self, given: Description) -> dict[str, Any]:
        """The schema of one description."""
        kind = given["type"]
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        made: dict[str, Any] = getattr(self, f"_{kind.replace('-', '_')}")(given)
        return made

    def _int(self, given: Description) -> dict[str, Any]:
        return {"type": "integer", "minimum": given["ge"], "maximum": given["le"]}

    def _chain(self, given: Description) -> dict[str, Any]:
        return {"type": "string", "format": given["steps"][-1]["type"]}

    def _literal(self, given: Description) -> dict[str, Any]:
        return {"enum": list(given["expected"])}

    def _default(self, given: Description) -> dict[str, Any]:
        return self.schema(given["schema"])

    def _nullable(self, given: Description) -> dict[str, Any]:
        return {"anyOf": [self.schema(given["schema"]), {"type": "null"}]}

    def _union(self, given: Description) -> dict[str, Any]:
        return {"anyOf": [self.schema(each) for each in given["choices"]]}

    def _tagged_union(self, given: Description) -> dict[str, Any]:
        members = []
        for each in given["choices"].values():
            member = self.schema(each)
            if member not in members:
                members.append(member)
            # The key that tells members apart has its only value in Python, and must be said in a file.
            record = self._definitions[member["$ref"].rpartition("/")[2]]
            record["required"] = sorted({*record["required"], given["discriminator"]})
        return {"oneOf": members}

    def _tuple(self, given: Description) -> dict[str, Any]:
        items = [self.schema(each) for each in given["items_schema"]]
        if "variadic_item_index" in given:
            return {"type": "array", "items": items[0]}
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def _dict(self, given: Description) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.schema(given["values_schema"])}

    def _typed_dict(self, given: Description) -> dict[str, Any]:
        parts = given["fields"]
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: self.schema(part["schema"]) for key, part in parts.items()},
            "required": sorted(key for key, part in parts.items() if part["required"]),
        }

    def _dataclass(self, given: Description) -> dict[str, Any]:
        cls, parts = given["cls"], given["schema"]["fields"]
        if cls.__name__ not in self._definitions:
            self._definitions[cls.__name__] = {}
            about = {"description": " ".join(cls.__doc__.split())} if cls.__doc__ else {}
            self._definitions[cls.__name__].update(
                about,
                type="object",
                additionalProperties=False,
                properties={part["validation_alias"]: self.schema(part["schema"]) for part in parts},
                required=sorted(
                    part["validation_alias"] for part in parts if part["schema"]["type"] != "default"
                ),
            )
        return {"$ref": f"#/$defs/{cls.__name__}"}
