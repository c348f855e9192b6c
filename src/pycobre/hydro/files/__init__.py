"""A case on disk: reading with every finding, writing, overriding settings, rewriting the older form.

read_case    a directory to a case and its findings   write_case     a case to a directory
json_files · json_types · parquet_files · parquet_footer  single files
json_schema  what editors check JSON files with
case_data    a case for another process, its identity
boundary · flat_buffer  the policy of another study, as the cost beyond the last stage
overrides    settings replaced by dotted path          old_form       how the form of 0.5 is recognised
migration · migrate_config · migrate_scenarios · migrate_system · old_files  the form of 0.5 rewritten
"""

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names
from pycobre.hydro.files.write_case import case_files, write_case

if TYPE_CHECKING:
    from pycobre.hydro.files.case_data import case_from_data, case_to_data, identity
    from pycobre.hydro.files.json_schema import write_schemas
    from pycobre.hydro.files.migration import migrate
    from pycobre.hydro.files.overrides import with_overrides
    from pycobre.hydro.files.read_case import load_case, read_case_files, validate, validate_files

__all__ = [
    "case_files",
    "case_from_data",
    "case_to_data",
    "identity",
    "load_case",
    "migrate",
    "read_case_files",
    "validate",
    "validate_files",
    "with_overrides",
    "write_case",
    "write_schemas",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "case_data": ("case_from_data", "case_to_data", "identity"),
        "json_schema": ("write_schemas",),
        "migration": ("migrate",),
        "overrides": ("with_overrides",),
        "read_case": ("load_case", "read_case_files", "validate", "validate_files"),
    },
)
