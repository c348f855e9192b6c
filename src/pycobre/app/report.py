"""What a run hands back to whoever asked for it; also the form in which rank 0 sends it to its launcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util import container
from pycobre._util.frozen import frozen
from pycobre.errors import OutputError
from pycobre.sddp import Policy

__all__ = ["Report"]

KIND, VERSION = "report", 1
Columns = Mapping[str, NDArray[Any]]


@frozen(eq=False)
class Report:
    """Results of one run. `tables` are columns by table name (`convergence`, `timing`, simulation tables)."""

    metadata: dict[str, Any]
    policy: Policy | None = None
    tables: Mapping[str, Columns] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        arrays = {
            f"{table}/{name}": a for table, columns in self.tables.items() for name, a in columns.items()
        }
        if self.policy is not None:
            arrays["policy"] = np.frombuffer(self.policy.to_bytes(), np.uint8)
        return container.pack(container.Container(KIND, VERSION, {"metadata": self.metadata}, arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        found = container.unpack(data, KIND, VERSION, where="report", error=OutputError)
        tables: dict[str, dict[str, NDArray[Any]]] = {}
        for name, array in found.arrays.items():
            if name != "policy":
                table, _, column = name.partition("/")
                tables.setdefault(table, {})[column] = array
        stored = found.arrays.get("policy")
        policy = None if stored is None else Policy.from_bytes(stored.tobytes())
        return cls(found.meta["metadata"], policy, tables)
