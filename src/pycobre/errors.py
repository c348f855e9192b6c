"""Every exception pycobre raises on purpose.

    CobreError
    ├── CommError                    processes talking
    │   ├── CollectiveFailed         a peer died, stalled, aborted or called something else
    │   ├── InvalidBufferSize        the caller's arrays do not fit the collective
    │   ├── InvalidRoot              broadcast from a rank that does not exist
    │   ├── InvalidCommunicator      used after close
    │   └── AllocationFailed         the system refused memory
    ├── BackendError                 choosing and starting a backend
    │   ├── InvalidBackend           no such name
    │   ├── BackendNotAvailable      known, but not installed here
    │   ├── MissingConfiguration     variables that must be set are not
    │   └── InitializationFailed     it tried to start and could not
    ├── ProblemError                 a multistage problem that makes no sense
    ├── SolverError                  an LP that could not be solved
    ├── OptionError                  an option or override that does not exist or cannot have that value
    ├── CaseError                    a case directory with findings
    ├── PolicyError                  a policy or checkpoint file that is torn, changed or of another case
    ├── OutputError                  results that could not be written or read
    └── WorkerError                  a worker process failed

Fields are attributes, not only text. Each class declares its own with their types: so they are checked when an error
crosses from one process to another as a record (`pycobre._util.error_record`). Every exception survives pickling too.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AllocationFailed",
    "BackendError",
    "BackendNotAvailable",
    "CaseError",
    "CobreError",
    "CollectiveFailed",
    "CommError",
    "InitializationFailed",
    "InvalidBackend",
    "InvalidBufferSize",
    "InvalidCommunicator",
    "InvalidRoot",
    "MissingConfiguration",
    "OptionError",
    "OutputError",
    "PolicyError",
    "ProblemError",
    "SolverError",
    "WorkerError",
]


def _rebuild(cls: type[CobreError], args: tuple[Any, ...], state: dict[str, Any]) -> CobreError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class CobreError(Exception):
    """Root of everything pycobre raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class CommError(CobreError):
    """Processes could not talk to each other as asked."""


class CollectiveFailed(CommError):
    """A collective did not complete; `rank` is the rank at fault where it is known."""

    operation: str
    mpi_error_code: int
    message: str
    rank: int | None

    def __init__(self, operation: str, mpi_error_code: int, message: str, *, rank: int | None = None) -> None:
        super().__init__(f"{operation}: {message}")
        self.operation = operation
        self.mpi_error_code = mpi_error_code
        self.message = message
        self.rank = rank


class InvalidBufferSize(CommError):
    """The caller's buffers do not fit the collective. The communicator is unharmed.

    `expected` and `actual` are what was compared: numbers for sizes, dtypes for dtypes, words for the rest.
    `message` says of what they are the sizes, where the numbers alone do not.
    """

    operation: str
    expected: object
    actual: object
    message: str

    def __init__(self, operation: str, expected: object, actual: object, message: str = "") -> None:
        message = message or f"expected {expected}, got {actual}"
        super().__init__(f"{operation}: {message}")
        self.operation = operation
        self.expected = expected
        self.actual = actual
        self.message = message


class InvalidRoot(CommError):
    """A broadcast named a root that is not a rank. The communicator is unharmed."""

    root: int
    size: int

    def __init__(self, root: int, size: int) -> None:
        super().__init__(f"broadcast: expected a root from 0 to {size - 1}, got {root}")
        self.root = root
        self.size = size


class InvalidCommunicator(CommError):
    """The communicator was closed, or the layer under it was shut down."""

    def __init__(self, message: str = "the communicator is closed: create a new one to go on") -> None:
        super().__init__(message)


class AllocationFailed(CommError):
    """The system refused memory for a shared region."""

    requested_bytes: int
    message: str

    def __init__(self, requested_bytes: int, message: str) -> None:
        super().__init__(f"cannot allocate {requested_bytes} bytes: {message}")
        self.requested_bytes = requested_bytes
        self.message = message


class BackendError(CobreError):
    """A backend could not be chosen or started."""


class BackendNotAvailable(BackendError):
    """A known backend that cannot run here; `reason` says why and what to install."""

    requested: str
    available: tuple[str, ...]
    reason: str

    def __init__(self, requested: str, available: tuple[str, ...], reason: str = "") -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(
            f"backend {requested!r} is not available here{why}. Available: {', '.join(available) or 'none'}."
        )
        self.requested = requested
        self.available = tuple(available)
        self.reason = reason


class InvalidBackend(BackendError):
    """No backend has that name."""

    requested: str
    available: tuple[str, ...]

    def __init__(self, requested: str, available: tuple[str, ...]) -> None:
        super().__init__(f"there is no backend {requested!r}. Choose one of: {', '.join(available)}.")
        self.requested = requested
        self.available = tuple(available)


class InitializationFailed(BackendError):
    """A backend tried to start and could not; chained from its cause where there is one."""

    backend: str
    message: str

    def __init__(self, backend: str, message: str) -> None:
        super().__init__(f"the {backend} backend could not start: {message}")
        self.backend = backend
        self.message = message


class MissingConfiguration(BackendError):
    """Variables a backend needs are not set; all of them are named at once."""

    backend: str
    missing_vars: tuple[str, ...]

    def __init__(self, backend: str, missing_vars: tuple[str, ...]) -> None:
        them = "it" if len(missing_vars) == 1 else "them"
        super().__init__(
            f"the {backend} backend needs {', '.join(missing_vars)}: set {them} in the environment, "
            "or pass a configuration object."
        )
        self.backend = backend
        self.missing_vars = tuple(missing_vars)


class ProblemError(CobreError):
    """A multistage problem that cannot be what its author meant; `findings` lists all that is wrong."""

    findings: tuple[str, ...]

    def __init__(self, message: str, findings: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class OptionError(CobreError):
    """An option or override that does not exist, or that cannot have this value."""


class OutputError(CobreError):
    """A result could not be written or read."""


class PolicyError(CobreError):
    """A policy or checkpoint file that is torn, tampered with, of another version or of another case."""


class SolverError(CobreError):
    """An LP that the whole retry ladder could not solve.

    `bundle` is the file that `pycobre replay` solves alone, where one could be written. `rows` are rows that
    cannot hold together, where the LP is infeasible, and `incoming` is the incoming state by name. `chain` is the
    position in the block of solves that failed; `stage`, `iteration` and `scenario` are added by those who know
    them.
    """

    message: str
    stage: str | int | None
    iteration: int | None
    scenario: int | None
    opening: int | None
    chain: int | None
    status: str
    bundle: str | None
    rows: tuple[str, ...]
    incoming: dict[str, float]

    def __init__(
        self,
        message: str,
        *,
        stage: str | int | None = None,
        iteration: int | None = None,
        scenario: int | None = None,
        opening: int | None = None,
        chain: int | None = None,
        status: str = "unknown",
        bundle: str | None = None,
        rows: tuple[str, ...] = (),
        incoming: dict[str, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rows = rows
        self.incoming = incoming or {}
        self.stage = stage
        self.iteration = iteration
        self.scenario = scenario
        self.opening = opening
        self.chain = chain
        self.status = status
        self.bundle = bundle


class CaseError(CobreError):
    """A case directory that cannot be used; `findings` lists everything that is wrong with it."""

    findings: tuple[Any, ...]

    def __init__(self, message: str, findings: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class WorkerError(CobreError):
    """The first worker that failed; the others were ended and reaped."""

    rank: int
    exit_code: int | None
    inner: BaseException | None

    def __init__(
        self, rank: int, exit_code: int | None, inner: BaseException | None, message: str = ""
    ) -> None:
        if exit_code is not None and exit_code < 0:
            how = f"was killed by signal {-exit_code}"
        elif exit_code is not None:
            how = f"ended with exit code {exit_code}"
        else:
            how = "failed"
        text = f"worker {rank} {how}"
        if inner is not None:
            text += f": {type(inner).__name__}: {inner}"
        super().__init__(f"{text}. {message}" if message else text)
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner
