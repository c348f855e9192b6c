"""`pycobre doctor`: every fact it promises, for people and for programs."""

from __future__ import annotations

import dataclasses
import json
import os
import sys

import numpy as np
import pytest

import pycobre
from pycobre.app.cli import doctor, main
from pycobre.comm import available_backends


def test_json_holds_every_fact(capsys):
    assert main(["doctor", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["version"] == pycobre.__version__
    assert seen["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert seen["cores"] >= seen["usable_cores"] >= 1
    assert seen["memory_bytes"] > 2**20
    backends = {backend["name"]: (backend["available"], backend["reason"]) for backend in seen["backends"]}
    assert backends == {name: tuple(status) for name, status in available_backends().items()}
    assert seen["packages"]["numpy"] == np.__version__
    assert seen["solvers"]["highspy"]
    assert set(seen) == {field.name for field in dataclasses.fields(doctor.Diagnosis)}


def test_the_shared_memory_mount_is_measured():
    diagnosis = doctor.diagnose({})
    mount = os.statvfs("/dev/shm")
    assert diagnosis.shm_bytes == mount.f_frsize * mount.f_blocks
    assert 0 <= diagnosis.shm_free_bytes <= diagnosis.shm_bytes


def test_people_see_the_same(capsys):
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for word in (
        "pycobre",
        "python",
        "platform",
        "cores",
        "memory",
        "/dev/shm",
        "launcher",
        "backends",
        "solvers",
    ):
        assert word in shown
    assert "  yes  local\n" in shown


def test_reasons_are_shown_and_absence_is_no_failure(monkeypatch):
    diagnosis = dataclasses.replace(
        doctor.diagnose({}),
        backends=[doctor.Backend("shm", False, "no compiler")],
        shm_bytes=None,
        shm_free_bytes=None,
        native={"shm": False},
        solvers={"highspy": None},
    )
    shown = doctor.show(diagnosis)
    assert "  no   shm    no compiler" in shown
    assert "/dev/shm   not mounted" in shown
    assert "  no   shm\n" in shown
    assert "  absent     highspy" in shown


@pytest.mark.parametrize(("environ", "expected"), [({}, None), ({"PMI_RANK": "0"}, "PMI_RANK")])
def test_a_launcher_is_detected(environ, expected):
    diagnosis = doctor.diagnose(environ)
    assert diagnosis.launcher == expected
    assert (f"{expected} is set" if expected else "none detected") in doctor.show(diagnosis)


def test_mpi_is_not_imported():
    doctor.diagnose({"PMI_RANK": "0"})
    assert "mpi4py.MPI" not in sys.modules
