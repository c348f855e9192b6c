"""The exception tree: fields, texts, one root, and that every exception survives pickling whole."""

from __future__ import annotations

import copy
import pickle

import pytest

from pycobre import errors
from pycobre.errors import (
    AllocationFailed,
    BackendError,
    BackendNotAvailable,
    CaseError,
    CobreError,
    CollectiveFailed,
    CommError,
    InitializationFailed,
    InvalidBackend,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    MissingConfiguration,
    SolverError,
    WorkerError,
)

EXAMPLES = [
    CollectiveFailed("allreduce", 0, "rank 2 died", rank=2),
    InvalidBufferSize("allgatherv", 4, 5),
    InvalidRoot(7, 4),
    InvalidCommunicator(),
    AllocationFailed(1024, "no space left"),
    BackendNotAvailable("mpi", ("local", "tcp"), "mpi4py is not installed"),
    InvalidBackend("gloo", ("local",)),
    InitializationFailed("tcp", "port taken"),
    MissingConfiguration("shm", ("COBRE_SHM_NAME", "COBRE_SHM_RANK")),
    SolverError("no solution", stage=3, iteration=2, scenario=1, opening=0, status="infeasible", bundle="x"),
    CaseError("three problems", findings=("a", "b", "c")),
    WorkerError(2, -9, ValueError("inner")),
    *(
        getattr(errors, name)("text")
        for name in ("ProblemError", "OptionError", "OutputError", "PolicyError")
    ),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_pickling_keeps_type_text_fields_and_notes(error, protocol):
    error.__notes__ = ["on rank 1"]
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert repr(vars(back)) == repr(vars(error))
    assert repr(vars(copy.copy(error))) == repr(vars(error))
    del error.__notes__


def test_every_exception_has_an_example_and_one_root():
    tree = {getattr(errors, name) for name in errors.__all__}
    assert all(issubclass(kind, CobreError) for kind in tree)
    assert tree - {type(error) for error in EXAMPLES} == {CobreError, CommError, BackendError}


@pytest.mark.parametrize(
    ("error", "root"),
    [(error, CommError) for error in EXAMPLES[:5]] + [(error, BackendError) for error in EXAMPLES[5:9]],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
def test_roots(error, root):
    assert isinstance(error, root)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (EXAMPLES[0], "allreduce: rank 2 died"),
        (EXAMPLES[1], "allgatherv: expected 4, got 5"),
        (EXAMPLES[2], "broadcast: expected a root from 0 to 3, got 7"),
        (EXAMPLES[3], "the communicator is closed: create a new one to go on"),
        (EXAMPLES[4], "cannot allocate 1024 bytes: no space left"),
        (
            EXAMPLES[5],
            "backend 'mpi' is not available here (mpi4py is not installed). Available: local, tcp.",
        ),
        (EXAMPLES[6], "there is no backend 'gloo'. Choose one of: local."),
        (EXAMPLES[7], "the tcp backend could not start: port taken"),
        (
            EXAMPLES[8],
            "the shm backend needs COBRE_SHM_NAME, COBRE_SHM_RANK: set them in the environment, or pass a "
            "configuration object.",
        ),
        (EXAMPLES[11], "worker 2 was killed by signal 9: ValueError: inner"),
        (WorkerError(0, 3, None, "see its log"), "worker 0 ended with exit code 3. see its log"),
        (WorkerError(0, None, None), "worker 0 failed"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_texts(error, text):
    assert str(error) == text


def test_a_cause_is_kept():
    cause = OSError("port taken")
    with pytest.raises(InitializationFailed) as caught:
        raise InitializationFailed("tcp", "port taken") from cause
    assert caught.value.__cause__ is cause
