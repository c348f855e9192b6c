"""What benchmarks are made of: documents, rounds, cases, Cobre's environment, the catalogue."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cobre_environment
from benchmarks.cobre_cases import longer, trials, with_openings
from benchmarks.cobre_environment import Missing, cobre_python
from benchmarks.cobre_examples import Comparison, cases_in
from benchmarks.cobre_national import Study, findings, studies
from benchmarks.cobre_runs import Run
from benchmarks.cobre_states import one_problem, owed_before_entry
from benchmarks.harness.catalogue import CATALOGUE, ROOT, select
from benchmarks.harness.document import Curve, Document, Figure, Picture, Table, show
from benchmarks.harness.machine import look
from benchmarks.harness.plots import draw
from benchmarks.harness.timing import Spread, interleaved
from pycobre.app import train
from pycobre.errors import OptionError
from pycobre.hydro import build_model
from pycobre.hydro.examples import example
from pycobre.hydro.files import load_case, validate, write_case
from pycobre.hydro.model.constraints import HydroBounds

DOCUMENT = Document(
    "one",
    (Table("a table", ("", "seconds"), (("first", 0.5), ("second", None), ("third", 12345.6))),),
    (Figure("ratio", 0.3, "", at_most=1 / 3), Figure("rate", 0.9, "LP/s", at_least=1.0), Figure("MB", 3.0)),
    (Picture("p", "x", "y", (Curve("c", (1.0, 2.0), (3.0, 4.0)),), log_x=True),),
    ("a note",),
    data={"raw": [1, 2]},
)


def test_a_document_survives_its_file(tmp_path):
    DOCUMENT.write(tmp_path / "one.json")
    assert Document.read(tmp_path / "one.json") == DOCUMENT


def test_a_document_says_which_aims_are_missed():
    shown = show(DOCUMENT)
    assert "| third | 12,346 |" in shown
    assert "| second | – |" in shown
    assert "ratio: 0.3 (target ≤ 0.333: met)" in shown
    assert "rate: 0.9 LP/s (target ≥ 1: MISSED)" in shown
    assert show(Document("two", skipped="no Cobre")) == "skipped: no Cobre"


def test_rounds_go_forwards_and_backwards():
    order = []
    found = interleaved({name: (lambda n=name: order.append(n) or len(order)) for name in "abc"}, 2)
    assert "".join(order) == "abccba"
    assert found == {"a": [1, 6], "b": [2, 5], "c": [3, 4]}
    assert (Spread((3.0, 1.0, 2.0)).median, str(Spread((1.0, 2.0, 3.0)))) == (2.0, "2 (1–3)")


def test_the_machine_is_described():
    found = look()
    assert found.processor
    assert found.usable_cores >= 1
    assert json.loads(json.dumps(found.to_dict()))["packages"]["numpy"]
    assert len(found.lines()) == 4


def test_a_run_reaches_a_bound_when_it_does():
    run = Run(
        9.0,
        9.0,
        1.0,
        (10.0, 20.0, 30.0),
        (1.0, 2.0, 3.0),
        (1.0, 1.0, 0.5),
        (100, 100, 50),
        (0.5, 1.25, 2.0),
    )
    assert [run.seconds_to(bound) for bound in (5.0, 20.0, 30.0 * (1 + 1e-12), 31.0)] == [
        1.0,
        2.0,
        3.0,
        float("inf"),
    ]
    assert [run.cpu_to(20.0), run.iterations_to(20.0), run.cpu_to(31.0)] == [1.25, 2.0, float("inf")]
    assert run.cpu_per_lp(3) == 0.01  # (2.0 − 0.5) s for the 150 LPs after the first iteration
    assert run.rate(2) == 100.0
    assert run.last_iterations_s(3) == 0.5


def test_studies_of_production_size_are_written_with_their_seed(tmp_path):
    write_case(example("one-reservoir").build(), tmp_path / "given")
    known = studies(tmp_path / "given", None, quick=True)
    assert list(known) == ["national", "nat60", "nat160", "regions"]
    assert list(studies(None, None)) == ["nat60", "nat160", "regions"]
    for name in ("national", "nat60"):
        known[name].write(tmp_path / name, 5, 11)
        training = load_case(tmp_path / name).config.training
        assert (training.tree_seed, training.selection.forward_passes) == (11, known[name].passes)
        assert training.stopping_rules[0].limit == 5
        assert not [f for f in validate(tmp_path / name) if f.severity.name == "ERROR"], name


def test_findings_compare_at_equal_work_and_to_equal_bounds():
    study = Study("s", Path("s"), 1, 3, ((2, 0.5), (3, 0.5)), per_lp=0.5)
    cobre = Run(9, 9, 200, (1.0, 5.0, 6.0), (1, 2, 3), (1, 1, 1), (10, 10, 10), (2.0, 4.0, 6.0))
    own = Run(9, 9, 100, (4.0, 5.5, 5.6, 7.0), (1, 2, 3, 4), (1,) * 4, (10,) * 4, (1.0, 1.5, 2.0, 2.5))
    figures = {
        f.name: (f.value, f.met) for f in findings(study, 7, {"Cobre": [cobre], "pycobre": [own]}).figures
    }
    assert figures == {
        "s: CPU to Cobre's bound after 2 iterations, ratio": (1.5 / 4.0, True),
        "s: CPU to Cobre's bound after 3 iterations, ratio": (2.5 / 6.0, True),
        "s: CPU per LP, ratio": (0.25, True),
        "s: peak memory, ratio": (0.5, None),
    }


def test_scaled_cases_are_valid_and_as_large_as_they_say(tmp_path):
    base = example("four-regions").build()
    many, long = with_openings(base, 5), longer(base, 2)
    assert {stage.num_openings for stage in many.stages} == {50}
    assert [stage.id for stage in long.stages] == list(range(24))
    assert long.stages[12].start_date == long.stages[11].end_date
    for name, trial in trials(None, quick=True).items():
        if name in ("passes", "stages"):
            trial.write(tmp_path / name, 1)
            assert not [f for f in validate(tmp_path / name) if f.severity.name == "ERROR"], name
    case = load_case(tmp_path / "stages")
    assert case.num_stages == 60
    assert case.config.training.stopping_rules[0].limit == 1


def test_a_repeated_year_is_a_year_again(tmp_path):
    """Two years of a system cost more than one of them, and less than twice: water is carried over."""
    base = example("one-reservoir").build()
    few = {"training.stopping_rules": [{"type": "iteration_limit", "limit": 10}]}
    one, two = (train(case, few).final_lower_bound for case in (base, longer(base, 2)))
    assert one < two


def test_scaled_trials_cover_what_is_compared():
    assert set(trials(None, quick=False)) == {"base", "openings", "passes", "stages", "production"}
    assert trials(Path("x/4ree"), quick=False)["base"].name == "4ree"


def test_names_and_prefixes_choose_benchmarks():
    assert [each.name for each in select([])] == list(CATALOGUE)
    assert [each.name for each in select(["cli_start"])] == ["cli_start"]
    assert {each.name for each in select(["cobre"])} == {
        name for name in CATALOGUE if name.startswith("cobre")
    }
    with pytest.raises(OptionError, match=r"there is no benchmark 'cli_stat'\. Did you mean 'cli_start'\?"):
        select(["cli_stat"])


def test_every_benchmark_is_a_module_and_every_module_has_its_line():
    package = ROOT / "benchmarks"
    for each in CATALOGUE.values():
        assert (package / f"{each.module or each.name}.py").is_file()
    for home in (package, package / "harness"):
        doc = ast.get_docstring(ast.parse((home / "__init__.py").read_text())) or ""
        modules = {path.stem for path in home.glob("*.py") if not path.stem.startswith("__")}
        assert not {name for name in modules if not re.search(rf"\b{name}\b", doc)}


def test_a_named_python_without_the_peer_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PYCOBRE_COBRE_PYTHON", str(tmp_path / "python"))
    with pytest.raises(Missing, match="cannot import cobre"):
        cobre_python()


def test_no_python_that_is_new_enough_is_said(monkeypatch, tmp_path):
    monkeypatch.delenv("PYCOBRE_COBRE_PYTHON", raising=False)
    monkeypatch.setenv("PYCOBRE_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(cobre_environment, "_new_enough", lambda: None)
    with pytest.raises(Missing, match=r"needs Python 3\.12 or newer"):
        cobre_python()


def test_an_environment_that_cannot_be_made_is_said_and_not_used_later(monkeypatch, tmp_path):
    monkeypatch.delenv("PYCOBRE_COBRE_PYTHON", raising=False)
    monkeypatch.setenv("PYCOBRE_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(cobre_environment, "_new_enough", lambda: "/bin/false")
    for _ in range(2):
        with pytest.raises(Missing, match="failed"):
            cobre_python()


def test_a_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    assert draw(DOCUMENT.pictures[0], tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_bounds_are_compared_iteration_by_iteration(tmp_path):
    assert Comparison("a", (100.0, 200.0), (100.0, 200.0 + 2e-8)).row()[-1] == "equal"
    assert Comparison("b", (100.0, 200.0), (100.0, 201.0)).row() == (
        "b",
        2,
        200.0,
        201.0,
        0.0,
        0.005,
        "first equal",
    )
    assert Comparison("c", (100.0,), (150.0,)).row()[-1] == "differ"
    assert Comparison("d", reason="Cobre: no").row()[-1] == "Cobre: no"
    for name in ("x", "y/output"):
        write_case(example("one-reservoir").build(), tmp_path / name)
    assert [path.relative_to(tmp_path).as_posix() for path in cases_in(tmp_path)] == ["x", "y/output"]


def test_both_programs_read_one_problem():
    """Minima of generation of stages go, and what plants withdraw before they fill or operate."""
    case = example("cascade").build()
    first, second = case.hydros[:2]
    plants = (replace(first, entry_stage_id=2), *case.hydros[1:])
    bounds = HydroBounds(
        hydro_id=np.array([first.id, first.id, second.id]),
        stage_id=np.array([1, 2, 1]),
        water_withdrawal_m3s=np.array([5.0, 6.0, 7.0]),
        min_generation_mw=np.array([1.0, np.nan, 3.0]),
    )
    made = one_problem(replace(case, hydros=plants, hydro_bounds=bounds)).hydro_bounds
    assert made.water_withdrawal_m3s.tolist() == [0.0, 6.0, 7.0]
    assert np.isnan(made.min_generation_mw).all()


def test_the_constant_is_the_minimum_outflow_of_plants_that_are_not_there_yet():
    case = example("cascade").build()
    first = replace(case.hydros[0], entry_stage_id=1)
    owing = replace(first, outflow=replace(first.outflow, min_outflow_m3s=10.0))
    model = build_model(replace(case, hydros=(owing, *case.hydros[1:])))
    hours = sum(block.hours for block in case.stages[0].blocks)
    price = model.numbers[0].hydro.penalty["outflow_violation_below"][0]
    assert owed_before_entry(model, 0) == pytest.approx(10.0 * hours * price)
    assert owed_before_entry(model, 1) == 0.0
