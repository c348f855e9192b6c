"""The bundled examples: valid, the same in files as in memory, and as good as their READMEs say."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pycobre.app import simulate, train
from pycobre.errors import OptionError
from pycobre.hydro.examples import EXAMPLES, example
from pycobre.hydro.files import case_files, load_case, validate, write_case

pytestmark = pytest.mark.xdist_group("trained examples")


@cache
def trained(name):
    """The result of training an example, which takes seconds; nobody changes it."""
    return train(EXAMPLES[name].build())


@pytest.mark.parametrize("name", EXAMPLES)
def test_files_say_what_the_object_says(name, tmp_path):
    case = EXAMPLES[name].build()
    write_case(case, tmp_path / name)
    assert validate(tmp_path / name) == ()
    read = load_case(tmp_path / name)
    assert read == case
    assert case_files(read) == case_files(case)


@pytest.mark.parametrize("name", EXAMPLES)
def test_training_reaches_the_bound_that_the_readme_names(name):
    chosen = EXAMPLES[name]
    result = trained(name)
    assert result.final_lower_bound == pytest.approx(chosen.lower_bound, rel=2e-4)
    assert f"{chosen.lower_bound:,.0f} $" in " ".join(chosen.readme.split())
    assert f"after the {result.iterations} iterations" in chosen.readme


def test_an_example_that_does_not_exist_names_the_others():
    with pytest.raises(OptionError, match=r"no example 'itaipu'. Choose one of: one-reservoir, four-regions"):
        example("itaipu")


def simulated(name):
    """Means over scenarios by table and column, [stage, block, entity]."""
    case = EXAMPLES[name].build()
    result = simulate(case, trained(name).policy, 60)
    stages, blocks = len(case.stages), len(case.stages[0].blocks)

    def mean(table, column):
        return result.tables[table][column].to_numpy().reshape(60, stages, blocks, -1).mean(axis=0)

    return result, mean


def test_the_lake_fills_in_summer_and_its_water_is_dear_when_dry():
    result, mean = simulated("one-reservoir")
    storage, value = mean("hydros", "storage_final_hm3")[:, -1, 0], mean("hydros", "water_value")[:, 0, 0]
    assert result.mean_cost == pytest.approx(EXAMPLES["one-reservoir"].lower_bound, rel=0.15)
    assert np.argmax(storage) in (2, 3)
    assert np.argmin(storage[3:-1]) + 3 in (9, 10)
    assert value[5:9].mean() > value[:3].mean()


def test_water_is_worth_less_from_plant_to_plant_down_the_river():
    _, mean = simulated("cascade")
    springs, canyon, _, junction, delta = mean("hydros", "water_value")[:-1, 0].mean(axis=0)
    assert springs > canyon > junction > delta > 0.0


def test_regions_export_when_their_rivers_are_high():
    _, mean = simulated("four-regions")
    net = mean("exchanges", "net_mw").mean(axis=1)
    assert (np.ptp(net, axis=0) > 0.1 * np.abs(net).max()).any(), (
        "lines carry more in some months than in others"
    )


def test_the_guide_names_every_example_and_its_bound():
    page = (Path(__file__).parents[3] / "docs" / "guides" / "examples.md").read_text(encoding="utf-8")
    for chosen in EXAMPLES.values():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{chosen.name}`"))
        assert f"{chosen.lower_bound:,.0f} $" in row
