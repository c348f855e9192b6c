"""Files: cases in and out, validation, tables and checkpoints out."""

from pycobre.io.case_data import case_from_data, case_to_data, identity
from pycobre.io.migrate import migrate
from pycobre.io.overrides import with_overrides
from pycobre.io.read_case import load_case, read_case_files, validate, validate_files
from pycobre.io.write_case import case_files, write_case

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
]
