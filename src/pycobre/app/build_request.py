"""From what a caller passes to a request: the one place where `Request` objects are made.

The modules that read a case or build a problem are imported when they are needed: workers are started first, and
load them at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pycobre.errors import OptionError

if TYPE_CHECKING:
    from pycobre.app.request import CaseSource, ProblemSource, Request
    from pycobre.hydro.model import Case
    from pycobre.problem import Problem
    from pycobre.sddp import Policy, TrainOptions

__all__ = ["build_request"]


def build_request(
    case_or_problem: Case | Problem | str | os.PathLike[str],
    config_overrides: Mapping[str, Any] | None = None,
    options: TrainOptions | None = None,
    *,
    policy: Policy | str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    train: bool = True,
    simulate: bool | None = None,
    scenarios: int | None = None,
    **others: Any,
) -> Request:
    """A request for a case (an object or its directory) or a problem; `others` are fields of `Request`.

    `policy` is simulated, or its cuts are started from. Without `simulate` and `scenarios` a case's own
    configuration says what is simulated.
    """
    from pycobre.app.request import ProblemSource, Request

    source = _source(case_or_problem, {} if config_overrides is None else config_overrides, options)
    if simulate and scenarios is None and isinstance(source, ProblemSource):
        raise OptionError(
            "scenarios: expected how many to simulate, got none: a problem has no configuration."
        )
    return Request(
        source=source,
        train=train,
        simulate=simulate if simulate is not None or scenarios is None else scenarios > 0,
        scenarios=scenarios,
        output=None if output is None else os.fspath(output),
        policy=_policy_bytes(policy),
        **others,
    )


def _source(
    given: Case | Problem | str | os.PathLike[str], overrides: Mapping[str, Any], options: TrainOptions | None
) -> CaseSource | ProblemSource:
    from pycobre.app.request import CaseSource, ProblemSource

    if not isinstance(given, str | os.PathLike):
        from pycobre.problem import Problem

        if isinstance(given, Problem):
            from pycobre.app.options import problem_options
            from pycobre.sddp import TrainOptions

            return ProblemSource(given, problem_options(options or TrainOptions(), overrides))
    if options is not None:
        raise OptionError("options: expected config_overrides for a case, got TrainOptions.")
    from pycobre.hydro.files import load_case, with_overrides
    from pycobre.hydro.model import Case

    if not isinstance(given, Case | str | os.PathLike):
        raise OptionError(
            f"case: expected a Case, the directory of one or a Problem, got {type(given).__name__}. "
            "`pycobre init` writes an example case."
        )
    case = given if isinstance(given, Case) else load_case(given)
    return CaseSource(with_overrides(case, overrides))


def _policy_bytes(policy: Policy | str | os.PathLike[str] | None) -> bytes | None:
    if policy is None:
        return None
    from pycobre.sddp import Policy

    return policy.to_bytes() if isinstance(policy, Policy) else Policy.load(Path(policy)).to_bytes()
