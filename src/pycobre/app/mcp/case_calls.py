"""What can be asked of cases: one function per tool, with the schema that its signature says.

Loaded by the server for the signatures alone, so what does the work is imported inside.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pycobre.app.answers.case_records import (
    CaseDescription,
    CaseDifferences,
    CaseEdit,
    CaseList,
    Change,
    SchemaText,
    Validation,
)
from pycobre.app.mcp.desk import Desk

__all__ = ["CALLS"]

CaseName = Annotated[
    str, Field(description="path of the case directory below the root, as list_cases names it")
]
Limit = Annotated[int, Field(ge=1, le=1000, description="most rows of the answer")]
Kind = Literal["", "buses", "lines", "hydros", "thermals", "non_controllables", "contracts", "pumping"]


def list_cases(desk: Desk, limit: Limit = 200) -> CaseList:
    """List the cases (decks) below the root."""
    from pycobre.app.answers.cases import list_cases

    return list_cases(desk.folder.root, limit, desk.folder.sound)


def describe_case(
    desk: Desk,
    case: CaseName,
    kind: Annotated[Kind, Field(description="list only entities of this kind")] = "",
    limit: Limit = 50,
) -> CaseDescription:
    """Say what a case is about: horizon, sizes, capacities, settings, plants."""
    from pycobre.app.answers.cases import describe_case

    return describe_case(desk.case(case), case, kind, limit)


def validate_case(desk: Desk, case: CaseName, limit: Limit = 100) -> Validation:
    """Report every error and warning of a case, with file, place, rule and what to do."""
    from pycobre.app.answers.cases import validate_case

    return validate_case(desk.case(case), case, limit)


def diff_cases(
    desk: Desk,
    a: Annotated[str, Field(description="the case before: its path below the root")],
    b: Annotated[str, Field(description="the case after: its path below the root")],
    limit: Limit = 200,
) -> CaseDifferences:
    """Say what changed between two cases: load, initial storage, costs, limits, outages; in words and as a table."""
    from pycobre.app.answers.case_differences import diff_cases
    from pycobre.hydro.files import load_case

    return diff_cases(load_case(desk.case(a)), load_case(desk.case(b)), (a, b), limit)


def get_schema(
    desk: Desk,
    name: Annotated[
        str, Field(description="a file such as hydros.json, or status, or events; empty lists them")
    ] = "",
) -> SchemaText:
    """Give the JSON Schema of a case's file, of a run's status or of its events."""
    from pycobre.app.answers.cases import schema_text

    return schema_text(name)


def edit_case(
    desk: Desk,
    case: CaseName,
    target: Annotated[str, Field(description="path of the copy below the root; has to be free")],
    changes: Annotated[
        list[Change],
        Field(
            min_length=1,
            max_length=200,
            description=(
                "paths such as config.training.tree_seed, hydros.NAME.reservoir.max_storage_hm3, "
                "initial_conditions.storage.NAME.value_hm3, load_stats.BUS.STAGE.mean_mw (* for all), each with "
                "a value or a factor"
            ),
        ),
    ],
    confirm: Annotated[
        str, Field(description="empty for a preview; what the preview gave as confirm, to write the copy")
    ] = "",
) -> CaseEdit:
    """Make a copy of a case with some values replaced: a preview first, the copy when it is confirmed."""
    from pycobre.app.answers.case_edits import edit_case

    if confirm:
        desk.require_writing("edit_case")
    return edit_case(desk.case(case), desk.folder.free(target, "target"), (case, target), changes, confirm)


CALLS: tuple[Any, ...] = (list_cases, describe_case, validate_case, diff_cases, get_schema, edit_case)
