"""The three floors: which package may import which, and what each package says of its modules.

An AST walk over every module, so imports inside functions and behind TYPE_CHECKING count too, and so do names
of modules that are loaded dynamically.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import pycobre

SOURCE = Path(pycobre.__file__).parent

#: From the ground up; a package imports from its own floor and from those below.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "events", "_util", "_native", "comm", "launch", "solver", "problem", "stochastic", "sddp"),
    ("hydro",),
    ("app", "", "__main__"),
)
#: Beside the floors: test kits for authors of backends, which nothing imports.
BESIDE = {"testing": ("errors", "_util", "comm", "launch", "problem", "solver")}

#: Exactly what each package imports besides itself; subpackages of hydro and app count by themselves.
#: "" is `pycobre/__init__.py`.
IMPORTS: dict[str, set[str]] = {
    "": {"app", "app.results", "comm", "errors", "hydro.files", "hydro.model", "problem", "sddp"},
    "__main__": {"app.cli"},
    "_native": set(),
    "_util": {"errors"},
    "app": {
        "_util",
        "app.results",
        "comm",
        "errors",
        "events",
        "hydro.checks",
        "hydro.files",
        "hydro.model",
        "hydro.study",
        "launch",
        "problem",
        "sddp",
        "solver",
    },
    "app.answers": {
        "_util",
        "app",
        "app.results",
        "errors",
        "hydro",
        "hydro.checks",
        "hydro.files",
        "hydro.model",
        "hydro.study",
        "sddp",
        "solver",
    },
    "app.cli": {
        "_native",
        "_util",
        "app",
        "app.answers",
        "app.mcp",
        "app.plot",
        "app.results",
        "app.tui",
        "comm",
        "errors",
        "events",
        "hydro.decks",
        "hydro.examples",
        "hydro.files",
        "hydro.model",
        "hydro.uncertainty",
        "problem",
        "sddp",
        "solver",
    },
    "app.mcp": {
        "_util",
        "app",
        "app.answers",
        "app.plot",
        "app.results",
        "errors",
        "hydro.checks",
        "hydro.files",
        "sddp",
    },
    "app.plot": {"_util", "app.results", "errors", "sddp"},
    "app.results": {"_util", "errors", "events"},
    "app.tui": {"_util", "app", "app.plot", "app.results", "errors"},
    "comm": {"_native", "_util", "errors"},
    "errors": set(),
    "events": {"_util"},
    "hydro": {
        "_util",
        "hydro.checks",
        "hydro.equations",
        "hydro.model",
        "hydro.uncertainty",
        "problem",
        "stochastic",
    },
    "hydro.checks": {"errors", "hydro.model"},
    "hydro.decks": {"_util", "errors", "hydro.files", "hydro.model"},
    "hydro.equations": {"_util", "errors", "hydro.model", "solver"},
    "hydro.examples": {"_util", "errors", "hydro.model"},
    "hydro.files": {"_util", "errors", "hydro.checks", "hydro.model", "sddp"},
    "hydro.model": {"_util"},
    "hydro.study": {
        "_util",
        "hydro",
        "hydro.files",
        "hydro.model",
        "hydro.tables",
        "hydro.uncertainty",
        "problem",
        "sddp",
    },
    "hydro.tables": {
        "_util",
        "hydro",
        "hydro.equations",
        "hydro.uncertainty",
        "sddp",
        "solver",
        "stochastic",
    },
    "hydro.uncertainty": {
        "_util",
        "errors",
        "hydro.equations",
        "hydro.model",
        "solver",
        "stochastic",
    },
    "launch": {"_util", "comm", "errors", "events"},
    "problem": {"_util", "errors", "solver"},
    "sddp": {"_util", "comm", "errors", "events", "problem", "solver", "stochastic"},
    "solver": {"_native", "_util", "errors"},
    "stochastic": {"_util", "errors"},
    "testing": {"comm", "errors", "problem"},
}

#: General packages say nothing of power systems.
FORBIDDEN_WORDS = re.compile(
    r"(?<![a-z])(hydro|hydrothermal|power plants?|turbines?)(?![a-z])", re.IGNORECASE
)
LAZY_ONLY = {
    "mpi4py",
    "uvicorn",
    "rich",
    "scipy",
    "matplotlib",
    "plotly",
    "pytest_timeout",
    "pandas",
    "polars",
    "openpyxl",
    "textual",
}
#: Classes are derived from those of Textual, so these modules are loaded as a whole when the app is asked for.
DRAWS_ON_TERMINALS = ("app/tui/widgets/", "app/tui/screens/", "app/tui/app.py")


def package_of(parts: tuple[str, ...]) -> str:
    """The package that counts: the first directory, below hydro and app the first two."""
    if len(parts) <= 1:
        return ".".join(parts)
    inside = len(parts) > 1 and parts[0] in {"hydro", "app"} and (SOURCE / parts[0] / parts[1]).is_dir()
    return ".".join(parts[:2]) if inside else parts[0]


def home_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return package_of(parts[:-1] if parts[-1] == "__init__" else parts)


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


@cache
def packages_imported(path: Path) -> frozenset[str]:
    package = ".".join(["pycobre", *path.relative_to(SOURCE).parent.parts])
    found = set()
    for module in imported_modules(ast.parse(path.read_text()), package):
        parts = module.split(".")[1:]
        while parts and not (
            (SOURCE / Path(*parts)).is_dir() or (SOURCE / Path(*parts)).with_suffix(".py").is_file()
        ):
            parts = parts[:-1]
        found.add(package_of(tuple(parts)))
    return frozenset(found)


MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted({home_of(path) for path in MODULES})


@cache
def edges() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for path in MODULES:
        found[home_of(path)] |= packages_imported(path) - {home_of(path), ""}
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_are_the_ones_on_the_plan(package):
    found = edges()[package]
    assert package in IMPORTS, f"package {package!r} is new: give it a line in IMPORTS"
    assert found == IMPORTS[package], (
        f"{package}: new {found - IMPORTS[package]}, unused {IMPORTS[package] - found}"
    )


def test_no_import_points_to_a_higher_floor():
    floor = {package: number for number, packages in enumerate(FLOORS) for package in packages}
    for package, imported in IMPORTS.items():
        top = package.split(".")[0]
        if top in BESIDE:
            assert imported <= set(BESIDE[top])
            continue
        for other in imported:
            assert floor[other.split(".")[0]] <= floor[top], f"{package} imports {other} from a higher floor"


def test_packages_do_not_import_each_other_in_a_circle():
    done: set[str] = set()

    def visit(package: str, path: tuple[str, ...]) -> None:
        assert package not in path, f"circle: {' -> '.join([*path, package])}"
        if package in done:
            return
        for other in sorted(IMPORTS[package]):
            visit(other, (*path, package))
        done.add(package)

    for package in IMPORTS:
        visit(package, ())


@pytest.mark.parametrize(
    "package", sorted({path.parent for path in MODULES}), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_every_package_names_its_modules(package):
    """The docstring of a package is its map: each module and subpackage once, by name."""
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    inside = [path.stem for path in package.glob("*.py") if not path.stem.startswith("__")]
    inside += [path.parent.name for path in package.glob("*/__init__.py")]
    missing = [name for name in sorted(inside) if not re.search(rf"\b{re.escape(name)}\b", doc)]
    assert not missing, f"{package.relative_to(SOURCE)}/__init__.py does not name {missing}"


@pytest.mark.parametrize("package", ["comm", "launch", "solver", "problem", "stochastic", "sddp"])
def test_general_packages_do_not_speak_of_power_systems(package):
    for path in sorted((SOURCE / package).rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not FORBIDDEN_WORDS.search(line), f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_optional_and_heavy_packages_are_imported_inside_functions(path):
    draws = str(path.relative_to(SOURCE)).startswith(DRAWS_ON_TERMINALS)
    for node in ast.parse(path.read_text()).body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        heavy = {name.split(".")[0] for name in names} & (
            LAZY_ONLY - ({"rich", "textual"} if draws else set())
        )
        assert not heavy, (
            f"{path.relative_to(SOURCE)}:{node.lineno} imports {sorted(heavy)} when it is loaded"
        )


def test_nobody_imports_the_test_kits():
    users = {home_of(path) for path in MODULES if "testing" in packages_imported(path)}
    assert users <= {"testing"}


def test_exceptions_live_in_one_module():
    """Only a carrier that is caught in its own package, and says so, may be defined outside errors.py."""
    endings = ("Error", "Exception", "Failed")
    for path in MODULES:
        if home_of(path) == "errors":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).split(".")[-1] for base in node.bases]
                stays = "never leaves this package" in (ast.get_docstring(node) or "")
                raised = any(base.endswith(endings) for base in bases)
                assert not raised or stays, f"{path.relative_to(SOURCE)}: define {node.name} in errors.py"


def test_the_walk_sees_what_it_must(tmp_path):
    """The test of the test: each way to write an import is found."""
    source = (
        "import pycobre.sddp.training.train\n"
        "from pycobre import hydro\n"
        "def f():\n    from ..solver import api\n    importlib.import_module('pycobre.app.cli.doctor')\n"
        "if TYPE_CHECKING:\n    from pycobre.hydro.model import Bus\n"
        "text = 'see pycobre.app.plot for more'\n"
    )
    found = imported_modules(ast.parse(source), "pycobre.comm")
    assert {name.split(".")[1] for name in found} == {"sddp", "hydro", "solver", "app"}
    assert FORBIDDEN_WORDS.search("a Turbine")
    assert not FORBIDDEN_WORDS.search("hydrogen")
