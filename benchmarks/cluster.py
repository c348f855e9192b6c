"""Expected efficiency at 16, 64 and 256 ranks, by a model whose solve times and costs are measured in the same run.

The model is first asked for what can be measured here, one and two ranks, and has to come near. What this machine
cannot say is assumed, and named: the networks, and the memory of a larger node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.cluster_costs import measure_line
from benchmarks.cluster_model import Line, Network, Nodes, Prediction, Shared, Star, Work, predict
from benchmarks.harness import entry
from benchmarks.harness.document import Curve, Document, Figure, Picture, Table
from pycobre._util.arrays import F64
from pycobre.app import train
from pycobre.events import Event, ForwardFinished, IterationFinished, StageFinished
from pycobre.hydro.examples import example, synthetic
from pycobre.hydro.files import with_overrides
from pycobre.hydro.model import Case
from pycobre.sddp import Policy

__all__ = ["measure"]


PER_NODE = 64
MEMORY = 200e9  # bytes per second of a two-socket node
INFINIBAND = Line(2e-6, 1 / 12e9)
ETHERNET = Line(30e-6, 1 / 1.1e9)  # ten gigabits
CACHE_LINE_S = 0.2e-6
RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHOWN = (16, 64, 256)
PASSES = 256
ENOUGH = 0.9  # of the efficiency of shm + mpi: below, the star is what limits


@dataclass(frozen=True)
class Study:
    """A case to measure, and the size at which it is predicted."""

    name: str
    case: Case
    stages: int
    passes: int  #: of the measured runs
    iterations: int


@dataclass(frozen=True)
class Late:
    """The second half of a run's iterations, as rank 0 saw them: all samples, in seconds."""

    iteration_s: F64
    forward_s: F64
    step_s: F64  #: the solves of one step backwards
    policy: Policy

    @property
    def seconds(self) -> float:
        return float(np.median(self.iteration_s))


def measure(settings: entry.Settings) -> Document:
    """Predict larger machines from what is measured here."""
    shm, tcp = (measure_line(backend, quick=settings.quick) for backend in ("shm", "tcp"))
    inside = Shared(shm, CACHE_LINE_S, MEMORY)
    # A star moves every byte twice, in and out; between two ranks here both ways share one processor.
    here: dict[str, Network] = {"shm": inside, "tcp": Star(Line(0.0, 2 * tcp.byte_s), tcp.latency_s / 2)}
    larger: dict[str, Network] = {
        "shm + mpi": Nodes(inside, INFINIBAND, PER_NODE),
        "tcp star": Star(Line(ETHERNET.latency_s, max(ETHERNET.byte_s, 2 * tcp.byte_s)), tcp.latency_s / 2),
    }
    costs = Table(
        "a gather of two ranks here",
        ("", "latency, µs", "GB/s"),
        tuple(
            (name, 1e6 * line.latency_s, 1e-9 / line.byte_s) for name, line in (("shm", shm), ("tcp", tcp))
        ),
    )
    checks, rows, pictures, figures = [], [], [], []
    for study in _studies(settings.quick):
        alone = _run(study, 1, "auto", study.passes)
        work = _measured_work(study, alone)
        for backend in ("local", "shm", "tcp"):
            ranks = 1 if backend == "local" else 2
            found = alone if ranks == 1 else _run(study, ranks, backend, study.passes)
            expected = predict(work, here.get(backend, inside), ranks, study.passes)
            ratio = expected.seconds / found.seconds
            checks.append((study.name, backend, ranks, 1e3 * found.seconds, 1e3 * expected.seconds, ratio))
        figures.append(Figure(f"{study.name}: model against two ranks measured (shm)", checks[-2][-1]))
        full = replace(work, stages=study.stages)
        curves = {name: _efficiencies(full, network) for name, network in larger.items()}
        for name, predictions in curves.items():
            one = predictions[1].seconds
            for ranks in SHOWN:
                at = predictions[ranks]
                share = (at.solve_s / at.seconds, at.wait_s / at.seconds, at.communicate_s / at.seconds)
                rows.append((study.name, name, ranks, one / ranks / at.seconds, *share))
        pictures.append(_picture(study, curves))
        enough = [
            ranks
            for ranks in RANKS
            if _efficiency(curves["tcp star"], ranks) >= ENOUGH * _efficiency(curves["shm + mpi"], ranks)
        ]
        figures.append(Figure(f"{study.name}: ranks up to which the star is enough", float(max(enough))))
    predicted = Table(
        f"predicted: {PASSES} trajectories",
        ("", "network", "ranks", "efficiency", "solving", "waiting", "communicating"),
        tuple(rows),
    )
    columns = ("", "backend", "ranks", "measured, ms", "model, ms", "ratio")
    return Document(
        "cluster",
        (costs, Table("an iteration, measured here and by the model", columns, tuple(checks)), predicted),
        tuple(figures),
        tuple(pictures),
        (
            f"assumed: nodes of {PER_NODE} ranks with {MEMORY / 1e9:.0f} GB/s, mpi over 2 µs and 12 GB/s, "
            "tcp over 30 µs and 1.1 GB/s (ten gigabits)",
        ),
    )


def _studies(quick: bool) -> list[Study]:
    if quick:
        small = synthetic(hydros=2, thermals=3, buses=1, stages=4, openings=3)
        return [Study("tiny", small, 4, 4, 6)]
    large = synthetic(hydros=60, cascades=8, thermals=100, buses=5, stages=6, openings=20)
    return [
        Study("like 4ree", example("four-regions").build(), 12, 16, 60),
        Study("production-like", large, 60, 8, 8),
    ]


def _run(study: Study, ranks: int, backend: str, passes: int, warm_start: Policy | None = None) -> Late:
    """One training; its later iterations, when bases are warm and the number of cuts hardly grows."""
    overrides = {
        "training.stopping_rules": [{"type": "iteration_limit", "limit": study.iterations}],
        "training.selection": {"method": "sampled", "forward_passes": passes},
    }
    found: dict[type[Event], list[float]] = {IterationFinished: [], ForwardFinished: [], StageFinished: []}

    def note(event: Event) -> None:
        if event.worker_id == 0 and isinstance(event, IterationFinished | ForwardFinished | StageFinished):
            spent = event.solve_s if isinstance(event, StageFinished) else event.elapsed_s
            found[type(event)].append(spent)

    result = train(with_overrides(study.case, overrides), None, note, backend, ranks, warm_start=warm_start)
    iterations, forward, steps = (np.array(values[len(values) // 2 :]) for values in found.values())
    return Late(iterations, forward, steps, result.policy)


def _measured_work(study: Study, many: Late) -> Work:
    """What one trajectory costs, and what a call costs however many there are.

    A step with M trajectories takes call + M·chain, with one trajectory call + chain; the second run trains with one
    trajectory on the cuts of the first, so that each of its steps is one chain, timed alone.
    """
    single = _run(study, 1, "auto", 1, many.policy)
    chain, call = _parts(single.step_s, many.step_s, study.passes)
    forward, forward_call = _parts(single.forward_s, many.forward_s, study.passes)
    stages = len(study.case.stages)
    steps = (stages - 1) * float(many.step_s.mean()) + call + float(chain.mean())
    rest = float(many.iteration_s.mean()) - float(many.forward_s.mean()) - steps
    states = len(many.policy.state_names)
    return Work(forward, chain, call, forward_call, max(0.0, rest / stages), stages, 8 * (1 + states))


def _parts(single: F64, many: F64, passes: int) -> tuple[F64, float]:
    """Samples of one chain without the cost of a call, and that cost."""
    mean = max(0.0, float(many.mean() - single.mean())) / (passes - 1)
    mean = min(mean, float(single.mean())) or float(many.mean()) / passes
    return single * (mean / float(single.mean())), float(single.mean()) - mean


def _efficiencies(work: Work, network: Network) -> dict[int, Prediction]:
    return {ranks: predict(work, network, ranks, PASSES) for ranks in RANKS}


def _efficiency(found: dict[int, Prediction], ranks: int) -> float:
    return found[1].seconds / ranks / found[ranks].seconds


def _picture(study: Study, curves: dict[str, dict[int, Prediction]]) -> Picture:
    lines = tuple(
        Curve(name, tuple(map(float, RANKS)), tuple(_efficiency(found, ranks) for ranks in RANKS))
        for name, found in curves.items()
    )
    return Picture(f"{study.name}, {PASSES} trajectories", "ranks", "efficiency", lines, log_x=True)


if __name__ == "__main__":
    entry.main(measure)
