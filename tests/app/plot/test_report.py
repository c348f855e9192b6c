"""The report: right numbers, one file, drawn by a real browser without an error."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from fake_run import HOURS, write_run

from pycobre.app.plot.report import page, write_report
from pycobre.app.plot.summary import QUANTILES, summarise
from pycobre.app.results.directory import open_results
from pycobre.errors import OutputError


def test_bands_are_the_quantiles_of_hour_weighted_means(tmp_path: Path) -> None:
    results = open_results(write_run(tmp_path))
    summary = summarise(results)
    rows = results.simulation("hydros").to_pylist()
    for hydro, stage in ((0, 0), (2, 11)):
        per_scenario = [
            sum(r["generation_mw"] * r["hours"] for r in rows if _at(r, s, stage, hydro)) / sum(HOURS)
            for s in range(40)
        ]
        expected = np.quantile(per_scenario, QUANTILES)
        assert summary.hydro_generation[hydro].values[:, stage] == pytest.approx(expected, rel=1e-12)
    assert summary.storage[0].name == "PLANT </script> 0"


def _at(row: dict[str, float], scenario: int, stage: int, hydro: int) -> bool:
    return (row["scenario_id"], row["stage_id"], row["hydro_id"]) == (scenario, stage, hydro)


def test_scenario_costs_are_discounted_totals(tmp_path: Path) -> None:
    results = open_results(write_run(tmp_path))
    rows = results.simulation("costs").to_pylist()
    expected = np.zeros(40)
    for row in rows:
        expected[row["scenario_id"]] += row["discount_factor"] * row["stage_cost"]
    assert summarise(results).scenario_costs == pytest.approx(expected, rel=1e-12)


def test_the_inflow_model_is_shown_as_its_tables_say(tmp_path: Path) -> None:
    picture = summarise(open_results(write_run(tmp_path))).inflow
    assert picture.plants[1] == "PLANT </script> 1"
    assert picture.orders.tolist() == [[0, 2] * 6] * 3
    assert picture.correlation.tolist() == [[1.0, 0.25, 0.25], [0.25, 1.0, 0.25], [0.25, 0.25, 1.0]]
    assert picture.whiteness == pytest.approx(np.arange(1, 10) / 10)
    assert [plant.openings[0, 3] for plant in picture.moments] == [3.0, 103.0, 203.0]
    assert set(picture.moments[2].history[1]) == {7.0}
    (tmp_path / "stochastic" / "inflow_models.parquet").unlink()
    assert summarise(open_results(tmp_path)).inflow.plants == []


def test_the_page_is_self_contained_and_its_data_is_quoted(tmp_path: Path) -> None:
    text = page(summarise(open_results(write_run(tmp_path))))
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?https?:", text)
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert data is not None
    assert json.loads(data[1])["storage"][0]["name"] == "PLANT </script> 0"
    assert "four regions &amp; &lt;friends&gt;" in text
    assert "<!--" not in text.split("<script>")[0]


def test_png_pictures_are_written(tmp_path: Path) -> None:
    write_report(write_run(tmp_path, hydros=21))
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"convergence.png", "costs.png", "storage_1.png", "storage_2.png", "marginal_cost_1.png"} <= names
    assert {"inflow_model.png", "inflow_1.png", "inflow_2.png"} <= names
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in (tmp_path / "plots").iterdir())


def test_a_directory_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no such result directory"):
        write_report(tmp_path / "nothing")
    with pytest.raises(OutputError, match="Is this a result directory"):
        write_report(tmp_path)


def dumped(report: Path, width: int, profile: Path, *more: str) -> tuple[str, str]:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip(
            "no Chromium on this machine: install Debian's `chromium` to test the report in a browser"
        )
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            f"--window-size={width},900",
            "--virtual-time-budget=10000",
            *more,
            "--dump-dom",
            report.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_draws_every_plot_without_an_error(width: int, tmp_path: Path) -> None:
    report = write_report(write_run(tmp_path / "run"), png=False)
    dom, log = dumped(report, width, tmp_path / "profile")
    assert 'data-drawn="yes"' in dom
    assert dom.count("main-svg") >= 12
    assert "CONSOLE" not in log, log
    inflow = ("moments", "orders", "correlation", "tests")
    for section in (
        "convergence",
        "costs",
        "parts",
        "storage",
        "hydro",
        "thermal",
        "price",
        "timing",
        *inflow,
    ):
        assert f'<section id="{section}">' in dom


def test_a_run_without_simulation_shows_what_it_has(tmp_path: Path) -> None:
    report = write_report(write_run(tmp_path / "run", simulated=False), png=False)
    dom, log = dumped(report, 1280, tmp_path / "profile")
    assert "CONSOLE" not in log, log
    assert '<section id="convergence">' in dom
    assert '<section id="storage">' not in dom
    assert '<section id="moments">' not in dom


def test_a_short_run_has_no_half_iterations(tmp_path: Path) -> None:
    report = write_report(write_run(tmp_path / "run", simulated=False, length=5), png=False)
    dom, log = dumped(report, 1280, tmp_path / "profile")
    assert "CONSOLE" not in log, log
    plot = dom[dom.index('<section id="convergence">') : dom.index('<section id="timing">')]
    ticks = re.findall(r'<g class="xtick"><text[^>]*>([^<]*)</text>', plot)
    assert ticks == ["1", "2", "3", "4", "5"]


PHONE = 390

#: The page in a frame as wide as a phone (a browser's window cannot be that narrow), and where its parts are.
FRAME = """<!doctype html>
<html><body style="margin:0"><iframe style="width:{width}px;height:844px;border:0" src="{page}"></iframe>
<pre id="measured"></pre>
<script>
const box = (e) => {{ const r = e.getBoundingClientRect(); return [Math.round(r.left), Math.round(r.right)]; }};
document.querySelector("iframe").addEventListener("load", (event) => {{
  const page = event.target.contentWindow, at = (query) => [...page.document.querySelectorAll(query)];
  document.getElementById("measured").textContent = JSON.stringify({{
    width: page.innerWidth,
    scrolls: page.document.documentElement.scrollWidth,
    drawn: page.document.body.dataset.drawn,
    facts: at(".facts div").map(box),
    sections: at("section").map(box),
    plots: at("section .plot .main-svg").map(box),
    choices: at("select").map(box),
    texts: at(".plot .main-svg text").map((e) => [...box(e), e.textContent]),
    cells: at("#metadata th, #metadata td").map(box),
  }});
}});
</script></body></html>
"""


def test_the_page_fits_a_phone(tmp_path: Path) -> None:
    report = write_report(write_run(tmp_path / "run"), png=False)
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=PHONE, page=report.as_uri()))
    dom, log = dumped(frame, 800, tmp_path / "profile", "--allow-file-access-from-files", "--hide-scrollbars")
    assert "CONSOLE" not in log, log
    text = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.S)
    assert text is not None
    found = json.loads(html.unescape(text[1]))
    assert (found["width"], found["drawn"]) == (PHONE, "yes")
    assert found["scrolls"] == PHONE, "the page scrolls sideways"
    assert len(found["sections"]) == 13
    assert len({tuple(box) for box in found["sections"]}) == 1, "the sections stand one below the other"
    assert len({left for left, _ in found["facts"]}) == 2, "the figures stand in two columns"
    (left, right) = found["sections"][0]
    assert 0 <= left < 20
    assert PHONE - 20 < right <= PHONE
    assert len(found["choices"]) == 6
    assert len(found["plots"]) >= 12
    for part in ("plots", "choices", "texts", "cells"):
        assert found[part], part
        for box in found[part]:
            assert left <= box[0] <= box[1] <= right, (part, box)
