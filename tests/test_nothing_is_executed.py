"""No source file unpickles or evaluates anything; only the test kit may, for processes that it starts itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pycobre

SOURCE = Path(pycobre.__file__).parent
MODULES = {
    "pickle",
    "_pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "multiprocessing",
    "runpy",
    "code",
}
CALLS = {"eval", "exec", "compile", "__import__"}
#: mpi4py pickles whatever is given to these methods; those with a capital letter take buffers.
MPI_METHODS = {
    *("bcast", "scatter", "gather", "allgather", "alltoall", "reduce", "allreduce", "scan", "exscan"),
    *("isend", "irecv", "ssend", "bsend", "sendrecv", "mprobe"),
}


def offences(tree: ast.AST, *, mpi: bool) -> list[str]:
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [f"imports {name}" for name in names if name.split(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                found.append(f"calls {node.func.id}")
            if mpi and isinstance(node.func, ast.Attribute) and node.func.attr in MPI_METHODS:
                found.append(f"calls {node.func.attr}")
            found += [
                "allows pickles"
                for word in node.keywords
                if word.arg == "allow_pickle" and getattr(word.value, "value", True) is not False
            ]
            if ast.unparse(node.func) in {"np.load", "numpy.load"}:
                found += [] if any(word.arg == "allow_pickle" for word in node.keywords) else ["np.load"]
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_unpickled_or_evaluated(path):
    inside = path.relative_to(SOURCE)
    if inside.parts[0] == "testing":
        pytest.skip("the test kit pickles for its own children")
    assert offences(ast.parse(path.read_text()), mpi=inside.parts[:2] == ("comm", "mpi")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "def f():\n    from pickle import loads",
        "import marshal as m",
        "from multiprocessing.connection import Client",
        "eval(text)",
        "exec(text, {})",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "np.load(path)",
        "comm.bcast(value)",
    ],
)
def test_the_search_finds(source):
    assert offences(ast.parse(source), mpi=True)


def test_the_search_lets_pass():
    source = (
        "re.compile(x)\nnp.load(path, allow_pickle=False)\ncomm.Bcast(buffer)\ncomm.allgatherv(a, b, c, d)"
    )
    assert offences(ast.parse(source), mpi=True) == []
