"""A failed solve in one file: everything its chain was a function of, so that it can be solved alone."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.container import Container, pack, read
from pycobre._util.files import write_atomically
from pycobre._util.frozen import frozen
from pycobre.errors import SolverError
from pycobre.solver.api import (
    F64,
    BasisBlock,
    Block,
    Engine,
    Floors,
    LpModel,
    LpTemplate,
    PatchPlan,
    RowPool,
    SolverOptions,
)
from pycobre.solver.explicit import explicit_lp

__all__ = ["Bundle", "read_bundle", "write_bundle"]

KIND, VERSION = "lp bundle", 1


@frozen(eq=False)
class Bundle:
    """One chain up to the opening that failed: the arguments of `Engine.solve` and the engine's options."""

    model: LpModel
    options: SolverOptions
    x: F64  #: [1, inputs]
    values: F64  #: [openings up to the failed one, plan]
    pool: RowPool | None
    start: BasisBlock | None
    seed: F64 | None
    lazy: bool

    def last_lp(self) -> LpTemplate:
        """The LP that failed, with every active pool row written out."""
        slots = None
        if self.pool is not None:
            active = np.ones(self.pool.count, np.bool_) if self.pool.active is None else self.pool.active != 0
            slots = np.flatnonzero(active[: self.pool.count]).astype(np.int32)
        return explicit_lp(self.model, self.x[0], self.values[-1], self.pool, slots)

    def solve(self, engine: Engine) -> Block:
        return engine.solve(
            self.model,
            self.x,
            self.values,
            self.pool,
            start=self.start,
            seed=self.seed,
            lazy=self.lazy,
            want_primal=True,
        )


_PARTS: dict[str, type] = {"template": LpTemplate, "plan": PatchPlan, "floors": Floors, "start": BasisBlock}


def write_bundle(directory: str | os.PathLike[str], bundle: Bundle) -> Path:
    """Write a bundle into `directory` (made if needed); its name is a digest of its content."""
    model = bundle.model
    arrays: dict[str, NDArray[Any]] = {"x": bundle.x, "values": bundle.values}
    arrays |= {"inputs": model.inputs, "outputs": model.outputs}
    for name, part in (
        ("template", model.template),
        ("plan", model.plan),
        ("floors", model.floors),
        ("start", bundle.start),
    ):
        if part is not None:
            fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
            arrays |= {
                f"{name}.{key}": value for key, value in fields.items() if isinstance(value, np.ndarray)
            }
    if bundle.pool is not None:
        count = bundle.pool.count
        arrays |= {"pool.intercept": bundle.pool.intercept[:count], "pool.slope": bundle.pool.slope[:count]}
        if bundle.pool.active is not None:
            arrays["pool.active"] = bundle.pool.active[:count]
    if bundle.seed is not None:
        arrays["seed"] = bundle.seed
    meta = {
        "options": dataclasses.asdict(bundle.options),
        "offset": model.template.offset,
        "col_names": list(model.template.col_names),
        "row_names": list(model.template.row_names),
        "pool_head": model.pool_head,
        "lazy": bundle.lazy,
    }
    data = pack(Container(KIND, VERSION, meta, arrays))
    target = Path(directory) / f"failed-lp-{hashlib.sha256(data).hexdigest()[:12]}.cobre"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, data)
    return target


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Read and check a bundle; `SolverError` says what is wrong with the file."""
    content = read(path, KIND, VERSION, error=SolverError)
    arrays, meta = content.arrays, content.meta
    try:
        parts: dict[str, Any] = {}
        for name, kind in _PARTS.items():
            fields = {key.split(".")[1]: value for key, value in arrays.items() if key.startswith(f"{name}.")}
            if name == "template":
                fields |= {
                    "offset": meta["offset"],
                    "col_names": meta["col_names"],
                    "row_names": meta["row_names"],
                }
            parts[name] = kind(**fields) if fields else None
        pool = None
        if "pool.intercept" in arrays:
            pool = RowPool(
                arrays["pool.intercept"],
                arrays["pool.slope"],
                arrays["pool.intercept"].size,
                arrays.get("pool.active"),
            )
        model = LpModel(
            parts["template"],
            arrays["inputs"],
            arrays["outputs"],
            parts["plan"],
            parts["floors"],
            meta["pool_head"],
        )
        options = SolverOptions(**meta["options"])
        return Bundle(
            model,
            options,
            arrays["x"],
            arrays["values"],
            pool,
            parts["start"],
            arrays.get("seed"),
            meta["lazy"],
        )
    except (KeyError, TypeError) as cause:
        raise SolverError(f"{path}: the bundle lacks {cause}. It was written by another version.") from cause
