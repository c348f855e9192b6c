"""The LPs of a stage in both programs at the same states, with the same cuts and the same noise.

    python -m benchmarks.cobre_states --case DIRECTORY [--iterations N] [--scenarios S] [--every K] [--cost-scale C]

Cobre trains and simulates the case. Then every K-th stage that it simulated is solved here, from the state in which
Cobre entered it, with Cobre's openings and all of Cobre's cuts: the two optimal values are compared. And the cut that
its first iteration made at every K-th stage is computed here again, from all openings at its trial point: value and
slopes are compared. Conventions differ on purpose (`docs/reference/differences-to-cobre.md`). Taken out of the case
that both programs read: `min_generation_mw` of stage bounds, which Cobre ignores, and withdrawals of plants that are
not in operation, whose water Cobre takes. Taken over from Cobre: θ ≥ 0. Accounted for: the minimum outflow that such
plants owe, a constant. `--cost-scale` is Cobre's divisor of costs, with which the tolerances of its LPs grow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cobre_environment import Missing, cobre_python
from benchmarks.cobre_national import NATIONAL_VARIABLE
from benchmarks.cobre_policy import CobreRun, Visit
from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from pycobre.hydro import HydroModel, build_model
from pycobre.hydro.files import case_files, load_case
from pycobre.hydro.model import Case
from pycobre.hydro.study.options import train_options
from pycobre.sddp import DecisionRule, RiskMeasure

__all__ = ["CutCheck", "StageCheck", "measure", "owed_before_entry"]

F64 = NDArray[np.float64]
SAME = 1e-8
SEED = 7
HYDRO_BOUNDS = "constraints/hydro_bounds.parquet"


@dataclass(frozen=True)
class StageCheck:
    """One simulated stage: optimal values with all that follows."""

    scenario: int
    stage: int
    cobre: float
    own: float
    constant: float  #: what Cobre charges for plants that are not in operation

    @property
    def remainder(self) -> float:
        """What is left of the difference, relative to Cobre's value."""
        return (self.own + self.constant - self.cobre) / max(1.0, abs(self.cobre))


@dataclass(frozen=True)
class CutCheck:
    """One cut of Cobre's first iteration against the same cut computed here."""

    stage: int
    cobre: float  #: at the trial point
    own: float
    constant: float
    slopes: float  #: largest difference, relative to the largest slope
    differing: int  #: slopes that differ by more than a millionth of the largest

    @property
    def remainder(self) -> float:
        return (self.own + self.constant - self.cobre) / max(1.0, abs(self.cobre))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--case", type=Path, help=f"case directory ({NATIONAL_VARIABLE})")
    parser.add_argument("--iterations", type=int, default=2, help="of Cobre, one trajectory each (2)")
    parser.add_argument("--scenarios", type=int, default=3, help="that Cobre simulates (3)")
    parser.add_argument(
        "--every", type=int, default=8, help="stages from one that is compared to the next (8)"
    )
    parser.add_argument("--cost-scale", type=float, help="Cobre's divisor of costs (its default: a million)")
    parser.add_argument("--keep", type=Path, help="where Cobre's run is kept, or taken from if it is there")


def measure(settings: entry.Settings) -> Document:
    """Compare stage LPs and cuts with Cobre's at the same states."""
    given = settings.given
    source = given.get("case") or os.environ.get(NATIONAL_VARIABLE)
    if not source:
        return Document("cobre-states", skipped=f"name a case by --case or {NATIONAL_VARIABLE}")
    try:
        python = cobre_python()
    except Missing as reason:
        return Document("cobre-states", skipped=str(reason))
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        root = given.get("keep") or Path(directory)
        if not (root / "run" / "cuts.json").exists():
            _run_cobre(python, Path(source), root, settings)
        model = build_model(load_case(root / "case"))
        stages, cuts = compare(model, root / "run", given.get("every") or 8)
    return _document(Path(source).name, stages, cuts)


def one_problem(case: Case) -> Case:
    """The case without what the programs do not both mean, but for a constant."""
    bounds = case.hydro_bounds
    starts = {
        hydro.id: hydro.filling.start_stage_id if hydro.filling is not None else hydro.entry_stage_id or 0
        for hydro in case.hydros
    }
    absent = bounds.stage_id < np.array([starts[id_] for id_ in bounds.hydro_id.tolist()])
    withdrawn = np.where(absent, 0.0, bounds.water_withdrawal_m3s)
    nothing = np.full_like(bounds.min_generation_mw, np.nan)
    changed = replace(bounds, water_withdrawal_m3s=withdrawn, min_generation_mw=nothing)
    return replace(case, hydro_bounds=changed)


def _run_cobre(python: Path, source: Path, root: Path, settings: entry.Settings) -> None:
    given = settings.given
    shutil.copytree(source, root / "case", ignore=shutil.ignore_patterns("output"))
    changed = one_problem(load_case(source))
    if len(changed.hydro_bounds):
        (root / "case" / HYDRO_BOUNDS).write_bytes(case_files(changed)[HYDRO_BOUNDS])
    path = root / "case" / "config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    config["training"] = {
        **config["training"],
        "stopping_rules": [
            {"type": "iteration_limit", "limit": 1 if settings.quick else given["iterations"]}
        ],
        "selection": {"method": "sampled", "forward_passes": 1},
        "tree_seed": SEED,
    }
    config["training"].pop("cut_selection", None)
    config["exports"] = {"states": True, "stochastic": True}
    scenarios = 1 if settings.quick else given["scenarios"]
    config["simulation"] = {
        **config.get("simulation", {}),
        "enabled": True,
        "selection": {"method": "sampled", "num_scenarios": scenarios},
    }
    if given.get("cost_scale"):
        config["modeling"] = {**config.get("modeling", {}), "cost_scale_factor": given["cost_scale"]}
    path.write_text(json.dumps(config), encoding="utf-8")
    child = Path(__file__).with_name("cobre_states_child.py")
    command = [str(python), str(child), str(root / "case"), str(root / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def compare(model: HydroModel, output: Path, every: int) -> tuple[list[StageCheck], list[CutCheck]]:
    """Both comparisons, for a run of Cobre on the case that `model` is built of."""
    run = CobreRun(output, model)
    owed = [owed_before_entry(model, t) for t in range(model.case.num_stages)]
    with DecisionRule(model.problem, run.policy()) as rule:
        visits = [visit for visit in run.visits() if visit.stage % every == 0]
        stages = [_stage(model, run, rule, visit, owed[visit.stage]) for visit in visits]
    with DecisionRule(model.problem, run.policy(iteration=1)) as rule:
        cuts = [_cut(model, run, rule, t, owed[t + 1]) for t in range(0, model.case.num_stages - 1, every)]
    return stages, cuts


def owed_before_entry(model: HydroModel, t: int) -> float:
    """Penalties of the minimum outflow of plants that are not in operation."""
    numbers = model.numbers[t]
    hydro = numbers.hydro
    outflow = (hydro.min_outflow * numbers.hours).sum(axis=1) * hydro.penalty["outflow_violation_below"]
    return float(outflow[~hydro.exists].sum())


def _stage(model: HydroModel, run: CobreRun, rule: DecisionRule, visit: Visit, owed: float) -> StageCheck:
    """The opening is the one whose inflow is nearest to what Cobre says flowed; negative inflow counts as none."""
    t, plants = visit.stage, len(model.case.hydros)
    order = model.par.order
    lags = visit.state[plants : plants * (order + 1)].reshape(order, plants)
    noise = run.openings[t]
    flows = np.maximum(model.par.inflow(t, lags, noise[:, :plants]), 0.0)
    nearest = np.abs(flows - np.maximum(visit.inflow, 0.0)).max(axis=1)
    opening = int(nearest.argmin())
    decided = rule.decide(index=t, state=visit.state, noise=model.noise[t].values(noise[opening]))
    return StageCheck(visit.scenario, t, visit.value, decided.value, owed)


def _cut(model: HydroModel, run: CobreRun, rule: DecisionRule, t: int, owed: float) -> CutCheck:
    state, noise = run.first_trial_point(t), run.openings[t + 1]
    found = [rule.decide(index=t + 1, state=state, noise=model.noise[t + 1].values(row)) for row in noise]
    values = np.array([each.value for each in found])
    measure = train_options(model).risk
    chosen = measure if isinstance(measure, RiskMeasure) else measure[model.problem.nodes[t].name]
    weights = chosen.weights(np.full(values.size, 1.0 / values.size), values[None])
    value = float((weights.weight[0] * values).sum() + weights.offset[0])
    slope = (weights.weight[0][:, None] * np.array([each.gradient for each in found])).sum(axis=0)
    cuts = run.cuts(t, iteration=1)
    theirs = cuts.slope[0]
    largest, gap = max(1e-300, float(np.abs(theirs).max())), np.abs(slope - theirs)
    return CutCheck(
        t,
        float(cuts.intercept[0] + theirs @ state),
        value,
        owed,
        float(gap.max()) / largest,
        int((gap > 1e-6 * largest).sum()),
    )


def _document(name: str, stages: list[StageCheck], cuts: list[CutCheck]) -> Document:
    left = np.abs([each.remainder for each in stages])
    left_cuts = np.abs([each.remainder for each in cuts])
    return Document(
        "cobre-states",
        tables=(
            Table(
                f"{name}: simulated stages from Cobre's states, with Cobre's cuts and noise",
                ("scenario", "stage", "Cobre", "pycobre", "owed before entry", "rel. rest"),
                tuple((s.scenario, s.stage, s.cobre, s.own, s.constant, s.remainder) for s in stages),
            ),
            Table(
                f"{name}: cuts of Cobre's first iteration",
                (
                    "stage",
                    "Cobre",
                    "pycobre",
                    "owed before entry",
                    "rel. rest",
                    "slopes",
                    "slopes that differ",
                ),
                tuple(
                    (c.stage, c.cobre, c.own, c.constant, c.remainder, c.slopes, c.differing) for c in cuts
                ),
            ),
        ),
        figures=(
            Figure("stages compared", len(stages)),
            Figure(f"of them within {SAME:g}, share", float((left <= SAME).mean())),
            Figure("largest relative rest of a stage", float(left.max())),
            Figure("cuts compared", len(cuts)),
            Figure(f"of them within {SAME:g}, share", float((left_cuts <= SAME).mean())),
            Figure("largest relative rest of a cut", float(left_cuts.max())),
        ),
    )


if __name__ == "__main__":
    entry.main(measure, arguments)
