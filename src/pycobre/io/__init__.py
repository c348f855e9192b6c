"""Files: cases in and out, validation, tables and checkpoints out."""

from pycobre.io.migrate import migrate
from pycobre.io.read_case import load_case, read_case_files, validate, validate_files
from pycobre.io.write_case import case_files, with_overrides, write_case

__all__ = [
    "case_files",
    "load_case",
    "migrate",
    "read_case_files",
    "validate",
    "validate_files",
    "with_overrides",
    "write_case",
]
