"""Reading a large policy file, 60 stages × 10,000 cuts, beside reading its bytes and computing their checksum."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import entry
from benchmarks.harness.document import Document, Figure, Table
from benchmarks.harness.timing import Spread, interleaved, seconds
from pycobre.problem import Sense
from pycobre.sddp import Cuts, Policy

__all__ = ["measure"]


def measure(settings: entry.Settings) -> Document:
    """Loading and saving a policy of 60 stages × 10,000 cuts."""
    stages, cuts, states = (6, 100, 10) if settings.quick else (60, 10_000, 60)
    policy = _policy(stages, cuts, states)
    with tempfile.TemporaryDirectory(prefix="pycobre-bench-") as directory:
        path = Path(directory) / "policy.cobre"
        policy.save(path)
        size = path.stat().st_size
        found = interleaved(
            {
                "reading the bytes": lambda: seconds(lambda: path.read_bytes()),
                "and their SHA-256": lambda: seconds(lambda: hashlib.sha256(path.read_bytes()).digest()),
                "Policy.load": lambda: seconds(lambda: Policy.load(path)),
                "Policy.save": lambda: seconds(lambda: policy.save(path)),
            },
            settings.repetitions(5),
        )
    spreads = {name: Spread(tuple(values)) for name, values in found.items()}
    plain = spreads["reading the bytes"].median
    rows = tuple(
        (name, each.median, each.least, each.most, size / each.median / 1e9, each.median / plain)
        for name, each in spreads.items()
    )
    columns = ("", "seconds (median)", "least", "most", "GB/s", "ratio to reading")
    title = f"{stages} stages × {cuts:,} cuts of {states} states, {size / 1e6:.0f} MB"
    return Document(
        "policy_load",
        (Table(title, columns, rows),),
        (
            Figure("loading a policy", spreads["Policy.load"].median, "s"),
            Figure("loading against reading its bytes", spreads["Policy.load"].median / plain),
            Figure(
                "loading against reading its bytes and their checksum",
                spreads["Policy.load"].median / spreads["and their SHA-256"].median,
            ),
        ),
    )


def _policy(stages: int, cuts: int, states: int) -> Policy:
    random = np.random.default_rng(0)
    slots = np.arange(cuts, dtype=np.int32)
    tables = tuple(
        Cuts(
            intercept=random.random(cuts),
            slope=random.random((cuts, states)),
            iteration=slots // 100 + 1,
            trajectory=slots % 100,
            depth=np.full(cuts, stage, np.int32),
            active=np.ones(cuts, np.uint8),
        )
        for stage in range(stages)
    )
    return Policy(
        problem_name="large",
        fingerprint="0" * 64,
        sense=Sense.MINIMISE,
        state_names=tuple(f"storage {i}" for i in range(states)),
        node_names=tuple(f"stage {t}" for t in range(stages)),
        theta_lower=np.zeros(stages),
        cuts=tables,
        iterations=cuts // 100,
        lower_bound=0.0,
    )


if __name__ == "__main__":
    entry.main(measure)
