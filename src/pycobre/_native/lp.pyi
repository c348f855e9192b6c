from typing import Any

def open_library(path: str, /) -> None:
    """Find the C API of HiGHS in the library at `path`, once per process; OSError says what is missing."""

class Model:
    """A prepared LP model; the arrays stay alive and must not change."""

    def __new__(cls, arrays: tuple[Any, ...], *numbers: float) -> Model: ...

class Session:
    """One HiGHS object and the LP it holds. For one thread at a time; `solve` and `run` release the GIL."""

    def set_option(self, name: str, value: bool | int | float | str, /) -> bool: ...
    def solve(
        self,
        model: Model,
        arrays: tuple[Any, ...],
        chains: int,
        openings: int,
        plan: int,
        starts: int,
        pool_count: int,
        pool_width: int,
        values_per_chain: bool,
        lazy: bool,
        pool_tolerance: float,
        primal_tolerance: float,
        dual_tolerance: float,
        rows_per_round: int,
        seed_rows: int,
        tableau_entries: int,
        kernel_rows: int,
        iteration_limit: int,
        begin: int,
        end: int,
        retries: int,
        /,
    ) -> tuple[int, int, int] | None:
        """Chains `begin` to `end` of a block; None, or (chain, opening, HiGHS status) of the run that failed.

        `retries` ≥ 0 continues the failed opening, whose LP that many steps have brought to an optimal basis.
        """

    def lead(self, helpers: tuple[Session, ...], awake: bool, /) -> None:
        """Lead other sessions, each with a thread of its own; `awake`: there is a core for each of them."""

    def solve_together(self, *arguments: Any) -> tuple[int, list[tuple[int, tuple[int, int, int]]]] | None:
        """`solve` by the team; None, or the first chain that nobody began and the failures by member."""

    def clear(self) -> None: ...
    def run(self) -> int: ...
    def keep_basis(self) -> bool: ...
    def put_basis(self) -> None: ...
    def present(self) -> bytes: ...
    def kept_slots(self) -> bytes: ...
    def reject_answers(self, number: int, /) -> None:
        """Reject the next `number` answers of HiGHS or of the kernel as if their certificate failed: for tests."""
