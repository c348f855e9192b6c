"""The pages about the case format are complete: every key, every column, every kind of finding."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pycobre

SCRIPT = Path(__file__).parents[3] / "docs" / "case_fields.py"


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("case_fields", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = module.PAGE.read_text(encoding="utf-8")
    assert written == module.page(), "run `python docs/case_fields.py`"


def kinds_in(path: Path) -> set[str]:
    """The kinds of findings that a file makes: `Finding(kind="…")`, `error(layer, "…", …)`, `_problem("…", …)`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        position = {"error": 1, "warning": 1, "_problem": 0}.get(node.func.id)
        given = [keyword.value for keyword in node.keywords if keyword.arg == "kind"]
        if position is not None and len(node.args) > position:
            given.append(node.args[position])
        found |= {value.value for value in given if isinstance(value, ast.Constant)}
    return found


def test_every_kind_of_finding_is_described() -> None:
    root = Path(pycobre.__file__).parent
    sources = [path for part in ("files", "checks") for path in (root / "hydro" / part).glob("*.py")]
    kinds = set().union(*(kinds_in(path) for path in sources))
    assert len(kinds) > 50
    text = (SCRIPT.parent / "reference" / "case-format.md").read_text(encoding="utf-8")
    assert {kind for kind in kinds if f"`{kind}`" not in text} == set()
