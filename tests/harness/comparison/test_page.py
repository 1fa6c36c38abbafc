"""The comparison's page in headless Chromium: wide, narrow, and with hostile names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.browser import in_view, log, show
from harness.comparison.example import TIMES, invalid, run, two_sides
from harness.comparison.test_judged_figures import repeated
from harness.report.example import HOSTILE
from selenium import webdriver
from selenium.webdriver.common.by import By

from pinchpoint.comparison import compare, sides_of
from pinchpoint.comparison.sides import Effort
from pinchpoint.report import registry
from pinchpoint.report.comparison import gather

pytestmark = pytest.mark.browser


def _content() -> dict[str, Any]:
    return compare(two_sides(), ["disks"]).to_json()


def _open(browser: webdriver.Chrome, folder: Path, content: dict[str, Any], width: int = 1280) -> None:
    show(browser, registry.write_reports(gather(content), ["html"], folder)[0], (width, 800))


def test_the_first_screen_answers_the_three_questions(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """The first screen shows what changed, whether the bottleneck moved, and the confidence."""
    _open(browser, tmp_path, _content())
    seen = in_view(browser)
    assert "The bottleneck moved: from the log disk of sql in dev to the CPU of search in prod." in seen
    assert f"crawl 3.4/s → 15.2/s (4.47 {TIMES})" in seen
    assert "The bottleneck moved" in seen
    assert "Changed together; the cause is not shown" in seen
    assert "the sides did not do the same work (share)" in seen
    assert "dev: 1 run, prod: 1 run" in seen


def test_the_cells_of_the_tables_are_the_data(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Every table of the comparison is on the page, cell for cell, with the changes first."""
    _open(browser, tmp_path, _content())
    for table in gather(_content()).tables.values():
        rows = browser.find_elements(By.CSS_SELECTOR, f"table[data-table={table.name}] tbody tr")
        cells = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]
        assert cells == table.cells()
    places = [
        browser.find_element(By.ID, name).location["y"]
        for name in ("ratios", "figures", "work", "differences", "evidence")
    ]
    assert places == sorted(places)
    assert log(browser, "browser") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows(browser: webdriver.Chrome, tmp_path: Path, width: int) -> None:
    """The page never scrolls sideways on a desktop or a phone."""
    _open(browser, tmp_path, _content(), width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_disks_of_repeats_fit_on_a_desktop(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Six disk figures with intervals fit into a width of 1280 pixels."""
    content = compare(repeated(3.0), ["disks"]).to_json()
    for row in content["changes"]:  # the widest values that occur
        if row["about"] == "disk":
            row |= {"base": row["base"] or 0.0123, "other": 0.0456, "ratio": 0.123, "ci95": [0.0812, 0.164]}
    _open(browser, tmp_path, content)
    for name in ("disks", "sources", "scenarios", "cpus", "efforts"):
        for table in browser.find_elements(By.CSS_SELECTOR, f".scroll:has(table[data-table={name}])"):
            over = "return arguments[0].scrollWidth - arguments[0].clientWidth"
            assert browser.execute_script(over, table) <= 0, name


def test_ratios_stand_out_and_nothing_else_does(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Only ratio rows are emphasised; CPU times per unit of work have one row each."""
    efforts = tuple(Effort("crawl", tier, "cpu_s", "document", 0.01) for tier in ("web", "sql", "search"))
    runs = [replace(run(farm), efforts=efforts) for farm in ("dev", "prod")]
    _open(browser, tmp_path, compare(sides_of(runs[:1], runs[1:]), ["disks"]).to_json())

    def weights(name: str) -> set[tuple[bool, str]]:
        rows = browser.find_elements(By.CSS_SELECTOR, f"table[data-table={name}] tbody tr")
        cells = [row.find_elements(By.TAG_NAME, "td") for row in rows]
        return {
            ("ratio" in [cell.text for cell in row], row[0].value_of_css_property("font-weight"))
            for row in cells
        }

    assert weights("efforts") == {(False, "400")}
    assert weights("disks") == {(False, "400"), (True, "600")}


def test_charts_are_legible_on_a_phone(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Charts keep their size on a phone and scroll in their own frames."""
    _open(browser, tmp_path, compare(repeated(3.0), ["disks"]).to_json(), 390)
    text = browser.find_element(By.CSS_SELECTOR, "#chart-ratios svg text")
    assert text.size["height"] >= 9


def test_an_invalid_run_is_said_before_anything_else(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """An invalid run has a banner below the verdict, no conclusion, and all tables."""
    _open(browser, tmp_path, compare(two_sides(**invalid())).to_json())
    assert "is not valid" in browser.find_element(By.CSS_SELECTOR, "[role=alert]").text
    assert "No conclusion" in in_view(browser)
    assert browser.find_elements(By.CSS_SELECTOR, "table[data-table=disks] tbody tr")


def test_text_from_a_farm_never_runs(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Script in a label, source, warning or setting is shown as text."""
    content = _content()
    content["base"]["label"] = HOSTILE
    content["warnings"] = [HOSTILE]
    content["changes"][0]["source"] = HOSTILE
    content["studied"][0]["base"] = HOSTILE
    _open(browser, tmp_path, content)
    assert browser.execute_script("return window.hacked") is None
    assert HOSTILE in browser.find_element(By.CSS_SELECTOR, ".warnings").text
