"""A failed solve in one file: everything its chain was a function of, so that it can be solved alone."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pycobre._util.container import Container, pack, read
from pycobre._util.files import write_atomically
from pycobre._util.frozen import frozen
from pycobre.errors import OptionError, SolverError
from pycobre.solver.api import (
    BasisBlock,
    Block,
    CutView,
    Engine,
    LpModel,
    LpTemplate,
    PatchPlan,
    RhsCorrections,
    SolveCall,
    SolverOptions,
)
from pycobre.solver.explicit import explicit_lp

__all__ = ["Bundle", "read_bundle", "write_bundle"]

KIND, VERSION = "lp bundle", 2


@frozen(eq=False)
class Bundle:
    """One chain up to the opening that failed, and the options of the engine that solved it."""

    call: SolveCall  #: x [1, inputs], values [openings up to the failed one, plan]
    options: SolverOptions

    def last_lp(self) -> LpTemplate:
        """The LP that failed, with every active cut written out."""
        call, slots = self.call, None
        if (cuts := call.cuts) is not None:
            active = np.ones(cuts.count, np.bool_) if cuts.active is None else cuts.active != 0
            slots = np.flatnonzero(active[: cuts.count]).astype(np.int32)
        return explicit_lp(call.model, call.x[0], call.values[-1], cuts, slots)

    def solve(self, engine: Engine) -> Block:
        return engine.solve(replace(self.call, want_primal=True))


_PARTS: dict[str, type] = {
    "template": LpTemplate,
    "plan": PatchPlan,
    "corrections": RhsCorrections,
    "start": BasisBlock,
}


def write_bundle(directory: str | os.PathLike[str], bundle: Bundle) -> Path:
    """Write a bundle into `directory` (made if needed); its name is a digest of its content."""
    call, model = bundle.call, bundle.call.model
    arrays: dict[str, NDArray[Any]] = {"x": call.x, "values": call.values}
    arrays |= {"inputs": model.inputs, "outputs": model.outputs}
    for name, part in (
        ("template", model.template),
        ("plan", model.plan),
        ("corrections", model.rhs_corrections),
        ("start", call.start),
    ):
        if part is not None:
            fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
            arrays |= {
                f"{name}.{key}": value for key, value in fields.items() if isinstance(value, np.ndarray)
            }
    if (cuts := call.cuts) is not None:
        count = cuts.count
        arrays |= {"cuts.intercept": cuts.intercept[:count], "cuts.slope": cuts.slope[:count]}
        if cuts.active is not None:
            arrays["cuts.active"] = cuts.active[:count]
    if call.trial_point is not None:
        arrays["trial_point"] = call.trial_point
    meta = {
        "options": dataclasses.asdict(bundle.options),
        "offset": model.template.offset,
        "col_names": list(model.template.col_names),
        "row_names": list(model.template.row_names),
        "theta_column": model.theta_column,
        "lazy": call.lazy,
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
        cuts = None
        if "cuts.intercept" in arrays:
            cuts = CutView(
                arrays["cuts.intercept"],
                arrays["cuts.slope"],
                arrays["cuts.intercept"].size,
                arrays.get("cuts.active"),
            )
        model = LpModel(
            parts["template"],
            arrays["inputs"],
            arrays["outputs"],
            parts["plan"],
            parts["corrections"],
            meta["theta_column"],
        )
        call = SolveCall(
            model,
            arrays["x"],
            arrays["values"],
            cuts,
            parts["start"],
            arrays.get("trial_point"),
            meta["lazy"],
        )
        return Bundle(call, SolverOptions(**meta["options"]))
    except OptionError as cause:
        raise SolverError(
            f"{path}: {cause} The bundle was changed, or written by another version."
        ) from cause
    except (KeyError, TypeError) as cause:
        raise SolverError(f"{path}: the bundle lacks {cause}. It was written by another version.") from cause
