"""The rooms of the house: who may import whom, and which words must not be heard where.

An AST walk over every module, so imports inside functions and behind TYPE_CHECKING count too, and so do names
of modules that are loaded dynamically.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pycobre

SOURCE = Path(pycobre.__file__).parent
FOUNDATION = {"errors", "frozen", "lazy", "events", "_native", "container"}

#: What each room may import besides itself. "" is the façade.
MAY_IMPORT: dict[str, set[str]] = {
    "": {
        "errors",
        "events",
        "comm",
        "solver",
        "problem",
        "stochastic",
        "sddp",
        "model",
        "hydro",
        "io",
        "run",
        "results",
    },
    "__main__": {"cli"},
    "errors": set(),
    "frozen": set(),
    "lazy": set(),
    "events": {"errors", "frozen"},
    "_native": set(),
    "container": {"errors", "frozen", "_native"},
    "comm": FOUNDATION,
    "solver": FOUNDATION,
    "problem": FOUNDATION | {"comm", "solver"},
    "stochastic": FOUNDATION | {"comm", "solver"},
    "sddp": FOUNDATION | {"comm", "solver", "problem", "stochastic"},
    "model": {"errors", "frozen"},
    "hydro": {
        "errors",
        "frozen",
        "events",
        "model",
        "solver",
        "problem",
        "stochastic",
    },  # solver: templates are its nouns
    "io": {"errors", "frozen", "lazy", "events", "container", "model"},
    "cases": {"errors", "model"},
    "results": {"errors", "events", "io"},
    "run": FOUNDATION
    | {"comm", "solver", "problem", "stochastic", "sddp", "model", "hydro", "io", "results"},
    "plot": {"errors", "events", "container", "run", "results"},
    # Measures every room but the faces, which it starts as a user would.
    "bench": FOUNDATION
    | {"comm", "solver", "problem", "stochastic", "sddp", "model", "hydro", "io", "results", "run", "cases"},
    # A face consumes run, results and events. What it names besides: backends (doctor), one LP (replay), the
    # nouns that run takes and returns (cases, findings, policies).
    "cli": {
        *("errors", "events", "run", "results", "plot", "comm", "solver", "model", "cases", "io", "sddp"),
        "bench",
    },
    "testing": FOUNDATION | {"comm", "solver", "problem", "stochastic", "sddp"},
}

#: The root package itself (its version) may be read from anywhere but the rooms everything stands on.
MAY_READ_VERSION = set(MAY_IMPORT) - {"errors", "events", "_native"}

FORBIDDEN_WORDS = re.compile(r"(?<![a-z])(sddp|cuts?|hydro)(?![a-z])", re.IGNORECASE)
LAZY_ONLY = {"mpi4py", "rich", "scipy", "matplotlib", "plotly", "pytest_timeout", "pandas"}


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    if len(relative.parts) > 1:
        return relative.parts[0]
    return "" if relative.stem == "__init__" else relative.stem


def imported_modules(tree: ast.Module, package: str) -> set[str]:
    """Every module of the package that is imported, or named by a string that can be nothing else."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and re.fullmatch(r"pycobre(\.[a-z_]\w*)+", str(node.value)):
            found.add(str(node.value))
    return {name for name in found if name.split(".")[0] == "pycobre"}


def rooms_imported(path: Path) -> set[str]:
    package = ".".join(["pycobre", *path.relative_to(SOURCE).parent.parts])
    rooms = set()
    for module in imported_modules(ast.parse(path.read_text()), package):
        parts = module.split(".")
        rooms.add(parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "")
    return rooms


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = room_of(path)
    assert room in MAY_IMPORT, (
        f"room {room!r} is new: give it a line in MAY_IMPORT, and its place in the README's map"
    )
    allowed = MAY_IMPORT[room] | {room}
    if room in MAY_READ_VERSION:
        allowed = allowed | {""}
    refused = rooms_imported(path) - allowed
    assert not refused, (
        f"{path.relative_to(SOURCE)} imports {sorted(refused)}; {room!r} may import {sorted(allowed)}"
    )


@pytest.mark.parametrize("room", ["comm", "solver", "problem"])
def test_general_rooms_do_not_know_what_they_are_used_for(room):
    for path in sorted((SOURCE / room).rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not FORBIDDEN_WORDS.search(line), f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_optional_and_heavy_packages_are_imported_inside_functions(path):
    for node in ast.parse(path.read_text()).body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        heavy = {name.split(".")[0] for name in names} & LAZY_ONLY
        assert not heavy, (
            f"{path.relative_to(SOURCE)}:{node.lineno} imports {sorted(heavy)} when it is loaded"
        )


def test_nobody_imports_the_test_kits():
    users = {room_of(path) for path in MODULES if "testing" in rooms_imported(path)}
    assert users <= {"testing"}


def test_exceptions_live_in_one_module():
    """Only a carrier that is caught in its own room, and says so, may be defined outside errors.py."""
    endings = ("Error", "Exception", "Failed")
    for path in MODULES:
        if room_of(path) == "errors":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).split(".")[-1] for base in node.bases]
                stays = "never leaves this room" in (ast.get_docstring(node) or "")
                raised = any(base.endswith(endings) for base in bases)
                assert not raised or stays, f"{path.relative_to(SOURCE)}: define {node.name} in errors.py"


def test_the_walk_sees_what_it_must(tmp_path):
    """The test of the test: each way to write an import is found."""
    source = (
        "import pycobre.sddp.training.train\n"
        "from pycobre import io\n"
        "def f():\n    from ..hydro import equations\n    importlib.import_module('pycobre.app.cli.doctor')\n"
        "if TYPE_CHECKING:\n    from pycobre.hydro.model import Bus\n"
        "text = 'see pycobre.app.plot for more'\n"
    )
    found = imported_modules(ast.parse(source), "pycobre.comm")
    assert {name.split(".")[1] for name in found} == {"sddp", "io", "hydro", "cli", "model"}
    assert FORBIDDEN_WORDS.search("the Cut pool")
    assert FORBIDDEN_WORDS.search("hydro_thermal") is not None
    assert not FORBIDDEN_WORDS.search("execute, cutoff, shortcut")
