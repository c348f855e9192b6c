"""Nothing outside the root: every way to lead out of it is refused, by the rules and by a trace of the processes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import ask, content, over_stdio, refusal

from pycobre.app.answers.run_tables import RunTables
from pycobre.app.mcp.folder import Folder
from pycobre.errors import OptionError

pytestmark = pytest.mark.xdist_group("mcp")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty or unreadable one"),
        ("/etc", "an absolute one"),
        ("~/x", "an absolute one"),
        ("..", "one with '..'"),
        ("cascade/../../x", "one with '..'"),
        ("cascade\0", "an empty or unreadable one"),
        ("a\nb", "an empty or unreadable one"),
        ("\ud800", "an empty or unreadable one"),
        ("x" * 2000, "an empty or unreadable one"),
        ("..\\x", "an absolute one"),
        ("out", "a link that leads outside"),
        ("out/x", "a link that leads outside"),
        ("circle", "expected a directory"),
        ("nothing", "expected a directory"),
        ("file", "expected a directory"),
    ],
)
def test_paths_that_lead_outside_are_refused(tmp_path: Path, text: str, said: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").touch()
    (root / "out").symlink_to(tmp_path)
    (root / "circle").symlink_to("circle")
    with pytest.raises(OptionError, match="expected"):
        Folder(root).directory(text, "case")
    with pytest.raises(OptionError) as refused:
        Folder(root).directory(text, "case")
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "kind", ["link out", "link to nothing outside", "pipe", "socket", "device", "linked directory"]
)
def test_a_directory_with_anything_but_its_own_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    root = tmp_path / "root"
    (root / "case" / "system").mkdir(parents=True)
    (root / "other").mkdir()
    inside = root / "case" / "system" / "hydros.json"
    match kind:
        case "link out":
            (tmp_path / "secret").write_text("{}")
            inside.symlink_to(tmp_path / "secret")
        case "link to nothing outside":
            inside.symlink_to(tmp_path / "absent")
        case "pipe":
            os.mkfifo(inside)
        case "socket":
            monkeypatch.chdir(inside.parent)  # the name of a socket may not be long
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(inside.name)
        case "device":
            inside.symlink_to("/dev/zero")
        case _:
            inside.symlink_to(root / "other")
    folder = Folder(root)
    with pytest.raises(OptionError, match=r"expected regular files below the root.*system/hydros.json"):
        folder.directory("case", "case")
    assert folder.directory("other", "case") == root / "other"


def test_a_link_inside_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "shared.json").write_text("{}")
    (tmp_path / "case" / "config.json").symlink_to("../shared.json")
    (tmp_path / "alias").symlink_to("case")
    assert Folder(tmp_path).directory("alias", "case") == tmp_path / "case"


def test_a_new_name_has_to_be_free(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for text in ("there", "."):
        with pytest.raises(OptionError, match="expected a name that is free"):
            Folder(tmp_path).free(text, "target")
    assert Folder(tmp_path).free("a/b", "target") == tmp_path / "a" / "b"


TRACE = """
import os, sys
log = os.open(os.environ["TRACE_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink")
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        wanted = arguments[2] if isinstance(arguments[2], int) else 0
        writes = wanted & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        os.write(log, f"{'write' if writes else 'read'} {os.path.abspath(os.fsdecode(arguments[0]))}\\n".encode())
    elif event in ("os.listdir", "os.scandir") or event in CHANGES:
        if arguments and isinstance(arguments[0], (str, bytes)):
            what = "read" if event in ("os.listdir", "os.scandir") else "write"
            os.write(log, f"{what} {os.path.abspath(os.fsdecode(arguments[0]))}\\n".encode())
sys.addaudithook(hook)
"""


def test_a_trace_of_all_processes_stays_below_the_root(
    studies: Path, tables: RunTables, tmp_path: Path
) -> None:
    """Server, workers and runs: every file that Python opens is the interpreter's own or below the root."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.json").write_text("{}")
    (studies / "out").symlink_to(outside)
    (studies / "bad" / "system").mkdir(parents=True)
    for name in ("config.json", "stages.json", "initial_conditions.json", "run.json", "metadata.json"):
        (studies / "bad" / name).symlink_to(outside / "secret.json")
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(TRACE)
    trace = tmp_path / "trace"
    path = os.pathsep.join([str(tmp_path / "hook"), *filter(None, [os.environ.get("PYTHONPATH")])])

    async def hostile() -> None:
        async with over_stdio(studies, "--allow-run", PYTHONPATH=path, TRACE_FILE=str(trace)) as client:
            assert [each["case"] for each in (await ask(client, "list_cases"))["cases"]] == ["cascade"]
            assert len((await ask(client, "list_runs"))["runs"]) == 1
            for case in (
                "out",
                "out/secret.json",
                "bad",
                str(outside),
                "../outside",
                "cascade/../../outside",
            ):
                await refusal(client, "describe_case", case=case)
                await refusal(client, "validate_case", case=case)
                await refusal(client, "start_run", case=case)
                await refusal(client, "run_status", run=case)
                await refusal(client, "explain_price", run=tables.run, bus="Coast", stage=1, case=case)
                change = [{"path": "config.training.tree_seed", "value": 1}]
                new = "out/new" if case == "bad" else f"{case}/new"
                await refusal(client, "edit_case", case="cascade", target=new, changes=change)
                await refusal(client, "start_run", case="cascade", output=new)
            await ask(client, "query_table", run=tables.run, table="buses", aggregates=[])
            started = await ask(client, "start_run", case="cascade", output="new", scenarios=4)
            assert (await ask(client, "wait_for_run", run=started["run"]))["state"] == "finished"

    before = content(outside)
    asyncio.run(hostile())
    assert content(outside) == before
    lines = {tuple(line.split(" ", 1)) for line in trace.read_text().splitlines()}
    own = [str(Path(each).resolve()) for each in {sys.prefix, sys.base_prefix, *sys.path} if each]
    own += [sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]), str(tmp_path / "hook")]
    system = (
        "/proc",
        "/sys",
        "/dev/null",
        "/dev/shm/pycobre-",
        "/dev/urandom",
        "/etc/localtime",
        "/usr/share/zoneinfo/",
        "/usr/lib",
        "/lib",
    )
    inside = str(studies)
    writes = {path for what, path in lines if what == "write"}
    assert any(path.startswith(inside) for path in writes)  # the trace sees the run
    assert not {
        path
        for path in writes
        if not path.startswith((inside, "/dev/null", "/dev/shm/pycobre-")) and "__pycache__" not in path
    }
    assert not {path for _, path in lines if path.startswith(str(outside))}
    assert not {
        path
        for _, path in lines
        if not path.startswith((inside, *own, *system)) and path not in ("/", str(tmp_path))
    }


def test_errors_tell_no_path_outside_the_root(studies: Path) -> None:
    async def told() -> list[Any]:
        async with over_stdio(studies) as client:
            return [
                await refusal(client, "describe_case", case="nothing"),
                await refusal(client, "run_status", run="nothing"),
                await refusal(client, "query_table", run="cascade/output", table="nothing"),
            ]

    (studies / "empty" / "output").mkdir(parents=True)
    assert str(studies) not in json.dumps(asyncio.run(told()))
