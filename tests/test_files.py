"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pycobre._util import files
from pycobre._util.files import write_atomically
from pycobre.errors import OutputError


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.cobre"
    write_atomically(path, b"old")
    write_atomically(path, (b"ne", b"w"))
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.cobre"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.cobre"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OutputError, match=r"No space left on device\. What was there before is untouched"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.cobre"]


def test_what_a_killed_writer_left_can_be_removed(tmp_path: Path) -> None:
    """A block that kills the writer leaves its temporary file, and nothing else is taken for one."""
    deeper = tmp_path / "deeper"
    deeper.mkdir()
    for name in ("whole.cobre", ".hidden", "named.part"):
        (deeper / name).write_bytes(b"kept")
    code = (
        "import os, sys\nfrom pycobre._util.files import write_atomically\n"
        "write_atomically(sys.argv[1], (os.kill(os.getpid(), 9) or b'' for _ in range(1)))"
    )
    done = subprocess.run([sys.executable, "-c", code, deeper / "torn.cobre"], timeout=250, check=False)
    assert done.returncode == -9
    assert len([path for path in deeper.iterdir() if path.name.startswith(".torn.cobre.")]) == 1
    files.remove_unfinished(tmp_path)
    assert sorted(path.name for path in deeper.iterdir()) == [".hidden", "named.part", "whole.cobre"]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write: No such file or directory"):
        write_atomically(tmp_path / "no" / "x", b"")
