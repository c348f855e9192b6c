"""Power-system nouns: data only.

`Case` is a whole study. `system`, `horizon`, `penalties`, `production`, `initial`, `scenarios`, `constraints`
and `config` hold its parts; `checks` says whether they make sense together.
"""

from pycobre.hydro.model.case import Case
from pycobre.hydro.model.findings import Finding, Layer, Severity

__all__ = ["Case", "Finding", "Layer", "Severity"]
