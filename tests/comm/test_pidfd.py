"""Descriptors of processes, with and without Python's own function for them."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from pycobre._util.pidfd import open_pidfd, pidfds_work


@pytest.fixture(params=["of Python", "of the system"], autouse=True)
def function(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "of the system":
        monkeypatch.delattr(os, "pidfd_open")


def test_it_becomes_readable_when_the_process_ends() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    descriptor = open_pidfd(process.pid)
    try:
        assert select.select([descriptor], [], [], 0) == ([], [], [])
        process.communicate()
        assert select.select([descriptor], [], [], 60) == ([descriptor], [], [])
        assert not os.get_inheritable(descriptor)
    finally:
        process.kill()
        process.wait()
        os.close(descriptor)


def test_a_process_that_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(ProcessLookupError):
        open_pidfd(process.pid)


def test_they_work_here() -> None:
    assert pidfds_work()
