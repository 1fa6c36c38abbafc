"""The page in headless Chromium: wide, narrow, with hostile names, and without scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from harness.analysis.build import Build
from harness.browser import in_view, log, show, start, wait_for
from harness.report.example import HOSTILE, saved_run, suspect, verdict
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pinchpoint.base.glossary import TERMS
from pinchpoint.report import html, registry, run_tables, verdict_tables
from pinchpoint.report.report import gather
from pinchpoint.store.read import StoredRun

pytestmark = pytest.mark.browser


def _open(
    browser: webdriver.Chrome,
    folder: Path,
    run: StoredRun,
    content: dict[str, Any],
) -> None:
    """Write a page and open it."""
    show(browser, registry.write_reports(gather(run, content), ["html"], folder)[0])


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the example's page, written once."""
    folder = tmp_path_factory.mktemp("page")
    return registry.write_reports(gather(saved_run(), verdict()), ["html"], folder)[0]


@pytest.fixture(scope="module")
def page(browser: webdriver.Chrome, example: Path) -> webdriver.Chrome:
    """Return the example's page, opened once at 1280 x 800."""
    show(browser, example)
    return browser


def test_the_first_screen_answers(page: webdriver.Chrome) -> None:
    """The first screen has verdict, confidence, next bottleneck and scenarios without scrolling."""
    seen = in_view(page)
    assert "It was 97 % busy; search used 68 % of it." in seen
    assert "confidence:\nmedium" in seen
    assert "NEXT BOTTLENECK\nThe log disk of sql" in seen.replace("Next bottleneck", "NEXT BOTTLENECK")
    assert all(scenario in seen.splitlines() for scenario in ("crawl", "orders", "burst"))
    assert "p95 at most 5 ms: missed" in seen
    assert "Throughput" in seen


def test_each_tier_is_a_box_with_the_state_of_its_resources(page: webdriver.Chrome) -> None:
    """Each tier is a box with its resources' states as words, colours and signs."""
    boxes = {box.get_dom_attribute("data-tier"): box for box in page.find_elements(By.CLASS_NAME, "box")}
    assert list(boxes) == ["web", "search", "sql", "nosql", "files", "load generator"]
    assert [line for line in boxes["search"].text.splitlines() if line][1:] == [
        "CPU",
        "■ saturated",
        "bottleneck",
        "65 % of its cores used",
    ]
    sql = boxes["sql"].text
    assert "log + data disk\n● fine\nnext bottleneck\n1.1 ms a write, 90/s I/O" in sql
    assert boxes["files"].text.count("○ not measured") == 3
    colours = {
        state: page.find_element(By.CSS_SELECTOR, f".resource.{state}").value_of_css_property(
            "background-color"
        )
        for state in ("saturated", "fine", "unknown")
    }
    assert len(set(colours.values())) == 3


_PLOT = ".chart.small .live .role-frame.root > g > path.background"
"""CSS selector of each panel's plot background."""


def _panel_lines(page: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return each drawn timeline line's size on the screen and its number of points."""
    found = page.execute_script(
        """
        return [...document.querySelectorAll('.chart.small .live .mark-line path')].map(path => {
          const box = path.getBoundingClientRect();
          return {width: box.width, points: (path.getAttribute('d').match(/[ML]/g) || []).length};
        });
        """
    )
    return list(found)


def _charts() -> int:
    """Return the number of charts: one per panel and per scenario's latency, one of the bursts."""
    return sum(bool(panel.series) for panel in gather(saved_run(), verdict()).panels) + 4


def test_every_series_is_drawn_with_all_its_points(page: webdriver.Chrome) -> None:
    """Every series is drawn as a line with all its points and a size."""
    report = gather(saved_run(), verdict())
    expected = sorted(len(series.points) for panel in report.panels for series in panel.series)
    drawn = _panel_lines(page)
    assert sorted(line["points"] for line in drawn) == expected
    assert min(line["width"] for line in drawn) > 200
    titles = [title.text for title in page.find_elements(By.CSS_SELECTOR, ".chart.small figcaption")]
    assert sorted(titles) == sorted(panel.title for panel in report.panels if panel.series)


def test_all_panels_have_the_same_time_axis(page: webdriver.Chrome) -> None:
    """All panels have plots of the same width and the time of day below."""
    edges = page.execute_script(
        f"return [...document.querySelectorAll('{_PLOT}')].map(path => path.getBoundingClientRect())"
        ".map(box => box.width)"
    )
    panels = [panel for panel in gather(saved_run(), verdict()).panels if panel.series]
    assert len(edges) == len(panels)
    assert max(edges) - min(edges) <= 1
    labels = page.execute_script(
        "return [...document.querySelectorAll('.chart.small .live')].map(one => one.textContent)"
    )
    assert all("00:00:30" in label for label in labels)


def test_pointing_at_the_timeline_tells_every_value_and_the_utc_time(page: webdriver.Chrome) -> None:
    """The timeline's tooltip has the UTC time and one row per series with its unit."""
    page.execute_script("document.getElementById('first').scrollIntoView()")
    x, y = page.execute_script(
        f"const box = [...document.querySelectorAll('{_PLOT}')][0].getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2]"
    )
    for step in (0, 12):
        page.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x + step, "y": y})
    wait_for(page, "document.querySelector('#vg-tooltip-element.visible') !== null")
    told = page.find_element(By.ID, "vg-tooltip-element").text
    assert re.search(r"time\s*00:00:\d\d UTC", told)
    assert re.search(r"crawl\s*\d+/s", told)
    assert "undefined" not in told
    page.execute_script("window.scrollTo(0, 0)")


def test_a_time_has_the_reader_s_own_in_its_tooltip(page: webdriver.Chrome) -> None:
    """A tooltip adds the browser's time zone, while the page keeps the run's."""
    page.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        page.refresh()
        wait_for(page, "document.querySelector('header.top time') !== null")
        stamp = page.find_element(By.CSS_SELECTOR, "header.top time")
        shown, at = stamp.text, stamp.get_attribute("datetime")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", shown)
        assert at == f"{shown[:10]}T{shown[11:19]}.000Z"
        assert re.search(r"Your time: .*:\d\d.*GMT\+5:30", str(stamp.get_attribute("title")))
    finally:
        page.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_the_glossary_is_folded_at_the_end(page: webdriver.Chrome) -> None:
    """The glossary is folded at the end and has the documentation's terms."""
    glossary = page.find_elements(By.CSS_SELECTOR, "main > section")[-1]
    terms = [each.get_attribute("textContent") for each in glossary.find_elements(By.TAG_NAME, "dt")]
    assert terms == list(TERMS) == sorted(TERMS, key=str.casefold)
    assert not glossary.find_element(By.TAG_NAME, "dl").is_displayed()


def test_distributions_are_drawn_for_every_scenario(page: webdriver.Chrome) -> None:
    """Each scenario's chart has one bar per bin of each kind of latency."""
    report = gather(saved_run(), verdict())
    for scenario in ("crawl", "orders", "burst"):
        bins = sum(len(each.bins) for each in report.distributions if each.scenario == scenario)
        bars = page.find_elements(By.CSS_SELECTOR, f"#chart-latency-{scenario} .live .mark-rect path")
        assert len(bars) == bins
        assert max(bar.size["height"] for bar in bars) > 50


def test_the_cells_of_the_tables_are_the_data(page: webdriver.Chrome) -> None:
    """The cells of the page's tables have the verdict's values with units."""
    for table in (
        verdict_tables.crawl(verdict()),
        verdict_tables.objectives(verdict()),
        verdict_tables.bursts(verdict()),
        run_tables.disks(saved_run().manifest, verdict()),
        run_tables.cpus(saved_run().manifest, verdict()),
    ):
        rows = page.find_elements(By.CSS_SELECTOR, f"table[data-table={table.name}] tbody tr")
        cells = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]
        assert cells == table.cells()
    crawl = page.find_element(By.CSS_SELECTOR, "table[data-table=crawl] tbody").text
    assert crawl.startswith("sharepoint 5,600 70 3 70 s 80/s 80.4/s 20.1 ms")
    missed = page.find_element(By.CSS_SELECTOR, "td.missed").text
    assert missed == "missed"


def test_nothing_is_fetched_and_nothing_goes_wrong(browser: webdriver.Chrome, example: Path) -> None:
    """The page makes no request besides itself and data: URLs, and logs nothing to the console."""
    show(browser, example)
    messages = [json.loads(entry["message"])["message"] for entry in log(browser, "performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [example.as_uri()]
    assert log(browser, "browser") == []
    assert example.stat().st_size < 4_000_000


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows(browser: webdriver.Chrome, example: Path, width: int) -> None:
    """The page never scrolls sideways on a desktop or a phone, and its charts are drawn."""
    show(browser, example, (width, 800))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert len(browser.find_elements(By.CSS_SELECTOR, ".live svg")) == _charts()
    widest = browser.execute_script(
        "return Math.max(...[...document.querySelectorAll('.live svg')]"
        ".map(svg => svg.getBoundingClientRect().right))"
    )
    assert widest <= width


def test_text_from_a_farm_never_runs(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Script in a host, role, outcome, log, fact or warning is shown as text."""
    run = _hostile_run()
    fact = {"fact": HOSTILE, "metric": HOSTILE, "value": 1.0}
    blame = suspect(host=HOSTILE, tier=HOSTILE, evidence=[fact])
    content = verdict(bottleneck=blame, summary=f"{HOSTILE} gives way first.", warnings=[HOSTILE])
    content["crawl"][0]["source"] = f"http://farm/?q={HOSTILE}"
    _open(browser, tmp_path, run, content)
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_element(By.TAG_NAME, "h1").text == f"{HOSTILE} gives way first."
    assert HOSTILE in browser.find_element(By.CSS_SELECTOR, "#quality pre").text
    assert HOSTILE[:20] in browser.find_element(By.CSS_SELECTOR, "#chart-throughput").text
    assert log(browser, "browser") == []


def _hostile_run() -> StoredRun:
    build = Build(measure_s=20).host(HOSTILE, HOSTILE, disks={HOSTILE: "vda"}).cpu(HOSTILE, 0.9, 0.5)
    build.disk(HOSTILE, "vda", 50, 0.002).closed(HOSTILE, "sql-mix", 4)
    build.operations(HOSTILE, "log_append", 50, 0.01).operations(HOSTILE, "log_append", 1, 0.01, HOSTILE)
    build.event("tier_crashed", 5, tier=HOSTILE, host=HOSTILE, log_tail=f"FATAL: {HOSTILE}")
    build.manifest["warnings"] = [HOSTILE]
    return build.run()


@pytest.mark.parametrize(
    ("outcome", "kind", "expected"),
    [
        ("invalid", "generator", "THIS RUN IS NOT VALID"),
        ("inconclusive", None, "INCONCLUSIVE: THE MEASUREMENTS DO NOT SINGLE OUT ONE CAUSE"),
    ],
)
def test_a_run_that_proves_nothing_says_so_first(
    browser: webdriver.Chrome, tmp_path: Path, outcome: str, kind: str | None, expected: str
) -> None:
    """An inconclusive run shows outcome and experiment first, and the candidates in the picture."""
    blame = suspect(kind=kind, tier=None, host="generator1", resource="generator") if kind else None
    candidates = [] if kind else [suspect(confidence=None)]
    experiment = "Run again with the load generators on a machine of their own."
    content = verdict(
        outcome=outcome, bottleneck=blame, candidates=candidates, next=None, experiment=experiment
    )
    _open(browser, tmp_path, saved_run(), content)
    seen = in_view(browser)
    assert expected in seen.upper()
    assert experiment in seen
    if candidates:
        assert "suspected" in browser.find_element(By.CSS_SELECTOR, ".box[data-tier=search]").text
    else:
        assert "● fine\nlimits this run" in browser.find_element(By.CSS_SELECTOR, ".machine.outside").text


def test_an_interrupted_run_says_so_in_a_banner(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """An interrupted run has a banner below the verdict, inside the first viewport."""
    run = saved_run()
    run.manifest["state"] = "interrupted"
    _open(browser, tmp_path, run, verdict())
    assert "This run was interrupted." in in_view(browser)
    banner, first = (browser.find_element(By.CSS_SELECTOR, css) for css in ("[role=alert]", "#verdict"))
    assert banner.location["y"] > first.location["y"]


def test_an_empty_run_still_has_a_page(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """A run without samples has a page that says what is missing and draws no chart."""
    build = Build(measure_s=0, warm_up_s=0, state="running")
    build.manifest |= {"phases": [], "ended": None}
    content = verdict(
        outcome="inconclusive",
        bottleneck=None,
        next=None,
        scenarios={},
        crawl=[],
        disks=[],
        cpus=[],
        objectives=[],
    )
    _open(browser, tmp_path, build.run(), content)
    text = browser.find_element(By.TAG_NAME, "body").text
    assert "This run is incomplete" in text
    assert "No whole second with operations was recorded." in text
    assert browser.find_elements(By.TAG_NAME, "svg") == []
    assert log(browser, "browser") == []


def test_the_page_reads_without_scripts(example: Path, tmp_path: Path) -> None:
    """Without JavaScript the page has verdict, picture, tables, and each chart as a drawing."""
    browser = start(tmp_path / "chromium", scripts=False)
    try:
        browser.get(example.as_uri())
        assert "Bottleneck" in browser.find_element(By.TAG_NAME, "h1").text
        assert len(browser.find_elements(By.CLASS_NAME, "box")) == 6
        stills = browser.find_elements(By.CSS_SELECTOR, ".still svg")
        assert len(stills) == _charts()
        assert all(still.size["width"] > 200 and still.size["height"] > 100 for still in stills)
        lines = browser.find_elements(By.CSS_SELECTOR, ".chart.small .still .mark-line path")
        assert len(lines) == sum(len(panel.series) for panel in gather(saved_run(), verdict()).panels)
        assert browser.find_elements(By.CSS_SELECTOR, ".live") == []
    finally:
        browser.quit()


def test_a_keyboard_and_a_screen_reader_find_their_way(browser: webdriver.Chrome, example: Path) -> None:
    """A keyboard can skip the header and focus scrollable parts; tables and charts have names."""
    show(browser, example)
    browser.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the answer"
    unnamed = browser.execute_script(
        """
        const marks = ['header', 'nav[aria-label]', 'main', 'footer', 'h1'];
        const without = (what, has) => [...document.querySelectorAll(what)].filter((one) => !has(one)).length;
        return {
          landmarks: marks.filter((one) => !document.querySelector(one)),
          figures: without('figure', (one) => one.getAttribute('aria-label')),
          scrolling: without('.scroll[role=region]', (one) => one.tabIndex === 0),
          heads: without('thead th', (one) => one.scope === 'col'),
          pictures: without('img', (one) => one.alt),
        };
        """
    )
    assert unnamed == {"landmarks": [], "figures": 0, "scrolling": 0, "heads": 0, "pictures": 0}


def test_the_figures_behind_each_chart_are_a_table(browser: webdriver.Chrome, example: Path) -> None:
    """The table behind a chart has a row per time and a column per line."""
    show(browser, example)
    browser.execute_script(
        "document.querySelectorAll('figure details.data').forEach((one) => { one.open = true; })"
    )
    charts = len(browser.find_elements(By.CSS_SELECTOR, "figure.chart script[type='application/gzip']"))
    assert charts > 6
    wait_for(browser, f"document.querySelectorAll('figure details.data tbody tr').length > {charts}")
    assert len(browser.find_elements(By.CSS_SELECTOR, "figure details.data table")) == charts
    table = browser.find_element(By.CSS_SELECTOR, "#chart-throughput details.data table")
    heads = [cell.text for cell in table.find_elements(By.TAG_NAME, "th")]
    assert heads == ["time", "crawl", "orders", "burst"]
    [panel] = [panel for panel in gather(saved_run(), verdict()).panels if panel.name == "throughput"]
    rows = table.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(rows) == len({point.t_s for series in panel.series for point in series.points})
    browser.execute_script(
        "document.querySelectorAll('figure details.data').forEach((one) => { one.open = false; })"
    )


@pytest.mark.slow
@pytest.mark.alone
def test_eight_hours_are_a_small_page_that_opens_at_once(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """A page of eight hours has at most 3 MB and opens within a second."""
    run = saved_run(measure_s=8 * 3600)
    path = registry.write_reports(gather(run, verdict()), ["html"], tmp_path)[0]
    assert path.stat().st_size <= 3_000_000

    def opened() -> float:
        show(browser, path)
        return float(
            browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")
        )

    assert min(opened() for _ in range(3)) < 1.0


def test_commands_in_sentences_are_code() -> None:
    """Text in backticks is code, the rest of a sentence is escaped, and a single backtick stays."""
    shown = (
        html.environment().from_string("{{ it | coded }}").render(it="Run `pinchpoint run <plan>` & a ` b")
    )
    assert shown == "Run <code>pinchpoint run &lt;plan&gt;</code> &amp; a ` b"
