"""Prompts: what planners do every month, as a way through the tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pycobre.app.mcp.server import StudyServer

__all__ = ["add_prompts"]

_MONTHLY = """\
Carry out the monthly study of the case {case!r}{earlier}.

1. validate_case; stop and report if there are errors, list the warnings.
2. {diff}
3. estimate_run; say what the run needs, and ask before going on if it takes more than an hour.
4. start_run, then wait_for_run. If it fails: explain_failure, and stop.
5. is_converged; say the evidence. Propose more iterations if it has not converged.
6. Report: mean cost with its interval (query_table on costs), prices by bus, deficit_risk, reservoir_risk, and the
   water values of the three largest reservoirs at the end of the first stage. Where a price is unusual:
   explain_price.

Name the source (table, run, digest) of every number. Do not invent any.
"""
_STOPPED = """\
Find out why the run {run!r} stopped.

1. run_status, then explain_failure. Read run://{run}/events if the last events do not suffice.
2. If rows of an LP cannot hold together, say in plain words which plants and limits they are, and look into the case
   with describe_case and validate_case.
3. Say the cause, the evidence and the remedy; if an edit of the case would mend it, show it with edit_case as a
   preview, without confirming.
"""
_COMPARE = """\
Compare two months: the cases {a!r} and {b!r}{runs}.

1. diff_cases: what changed in load, initial storage, costs, limits and outages.
2. {compare}
3. Explain each large change of a result by a change of the decks; use explain_price for prices. Say what remains
   unexplained.

Name the source (table, run, digest) of every number. Do not invent any.
"""

CaseArgument = Annotated[str, Field(description="path of the case below the root")]


def add_prompts(server: StudyServer) -> None:
    """Give the server its prompts."""

    @server.prompt(title="Monthly study")
    def monthly_study(
        case: CaseArgument,
        previous: Annotated[str, Field(description="last month's case")] = "",
    ) -> str:
        """Validate, compare with last month, run, check convergence and report."""
        earlier = f", after last month's {previous!r}" if previous else ""
        diff = f"diff_cases from {previous!r} to {case!r}." if previous else "describe_case."
        return _MONTHLY.format(case=case, earlier=earlier, diff=diff)

    @server.prompt(title="Why did my run stop")
    def why_did_my_run_stop(run: Annotated[str, Field(description="id of the run")]) -> str:
        """Find the cause of a run's end and what to do."""
        return _STOPPED.format(run=run)

    @server.prompt(title="Compare two months")
    def compare_two_months(
        a: CaseArgument,
        b: CaseArgument,
        run_a: Annotated[str, Field(description="run of the first case")] = "",
        run_b: Annotated[str, Field(description="run of the second case")] = "",
    ) -> str:
        """Say what changed in the decks, and what that did to costs, prices and storage."""
        runs = f", runs {run_a!r} and {run_b!r}" if run_a and run_b else ""
        compare = (
            f"compare_runs from {run_a!r} to {run_b!r}."
            if runs
            else "list_runs finds the newest finished run of each; then compare_runs."
        )
        return _COMPARE.format(a=a, b=b, runs=runs, compare=compare)
