"""A result directory: what its tables hold, and how they are written and read.

schemas    every table of a run: columns, types, units
files      tables and JSON files, written atomically, with a manifest
directory  a result directory, opened
"""

from typing import TYPE_CHECKING

from pycobre._util.lazy import lazy_names

if TYPE_CHECKING:
    from pycobre.app.results.directory import Results, open_results

__all__ = ["Results", "open_results"]

__getattr__, __dir__ = lazy_names(__name__, {"directory": ("Results", "open_results")})
