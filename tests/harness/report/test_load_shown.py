"""Reports of varying loads: levels, soaks, guards and detected warm-ups."""

from __future__ import annotations

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.report.example import screen

from pinchpoint.analysis import analyse
from pinchpoint.report import markdown
from pinchpoint.report.drawn import step_charts
from pinchpoint.report.report import Report, gather
from pinchpoint.report.run_tables import load_words
from pinchpoint.report.tables import run_header

EACH_S = 20


def reported(build: Build) -> Report:
    run = build.run()
    return gather(run, analyse(run).to_json())


def climb() -> Build:
    levels = np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0])
    build = Build(measure_s=EACH_S * len(levels), warm_up_s=0).host("sql1", "sql").cpu("sql1", 0.3, 0.3)
    offered = np.repeat(levels, EACH_S)
    build.steps("orders", "sql-mix", levels, EACH_S).objective(scenario="orders", p95_s=0.1)
    build.operations("orders", "log_append", np.minimum(offered, 40), np.where(offered > 40, 0.5, 0.01))
    return build.generator()


def test_levels_are_a_table_with_what_they_came_to() -> None:
    """Levels are a table with their objectives, followed by the knee and the highest good load."""
    report = reported(climb())
    table = report.tables["levels"]
    cells = table.cells()
    assert [row[1] for row in cells] == ["10/s", "20/s", "30/s", "40/s", "50/s", "60/s", "70/s"]
    assert [row[-1] for row in cells] == ["met"] * 4 + ["missed"] * 3
    assert "Throughput stops following the load at 40/s" in table.note
    assert "The objectives of orders were met up to 40/s (" in table.note
    [objective] = report.tables["objectives"].cells()
    assert objective[-1] == "met up to 40/s"
    assert "The objectives of orders were met up to 40/s." in report.summary.lead
    assert [(chart.name, chart.title) for chart in step_charts(report)] == [
        ("levels-throughput", "Throughput by load"),
        ("levels-p95", "p95 by load"),
    ]
    text = markdown.write(report)
    assert "### Load levels" in text
    assert "What changed over the soak" not in text


def test_the_terminal_shows_the_levels() -> None:
    """The terminal shows the levels as a table of at most 88 columns."""
    run = climb().run()
    lines = screen(analyse(run).to_json()).splitlines()
    assert "Load levels:" in lines
    assert any("40/s" in line and "met" in line for line in lines)
    assert max(map(len, lines)) <= 88


def test_a_soak_is_shown_with_what_changed() -> None:
    """A soak's drift is a table with changes first and units."""
    build = Build(measure_s=300, warm_up_s=0).host("sql1", "sql").cpu("sql1", 0.3, 0.3)
    build.metric("sql1", "mem.available_bytes", np.linspace(8e9, 5e9, 300), noise=0.01)
    build.soak("orders", "sql-mix", 50).operations("orders", "log_append", 50, 0.002)
    table = reported(build.generator()).tables["drift"]
    assert table.cells()[0][:2] == ["sql1", "mem.available_bytes"]
    assert table.cells()[0][-1] == "falls"
    assert "GB" in table.cells()[0][2]
    assert {row[-1] for row in table.cells()[1:]} == {"steady"}


def test_a_guard_and_a_warm_up_are_said() -> None:
    """A guard is shown first, and the warm-up's end beside the load; other events are not listed."""
    build = climb().event("guard", 5, why="stop_when: error_ratio of all scenarios was above 0.05 for 30 s")
    build.event("step", 1, scenario="orders", number=1, level=10.0).event("warmed_up", 1, settled=True)
    build.event("prepare", 0, scenario="orders").event("load_begun", 1, scenario="orders")
    build.manifest["warm_up"] = {"lasted_s": 12.5, "settled": True, "unsettled": []}
    report = reported(build)
    assert any("A guard ended this run: stop_when: error_ratio" in alarm for alarm in report.alarms)
    assert "settled after 12.5 s" in report.tables["scenarios"].note
    assert [row[1] for row in report.tables["incidents"].cells()] == ["guard"]


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ({"model": "soak", "rate_per_s": 50.0}, "50/s"),
        (
            {"model": "ramp", "start": {"users": 4}, "to": {"users": 40}, "over_s": 300.0},
            "4 users to 40 users over 5 min",
        ),
        (
            {
                "model": "steps",
                "start": {"per_s": 50.0},
                "step": {"per_s": 25.0},
                "each_s": 60.0,
                "until": "objective",
            },
            "from 50/s in steps of 25/s, each 60 s, until objective",
        ),
        (
            {
                "model": "burst",
                "base_per_s": 5.0,
                "peak_per_s": 90.0,
                "every_s": 30.0,
                "for_s": 4.0,
                "ramp_s": 1.0,
                "back_to_back": 2,
                "gap_s": 3.0,
                "jitter_ratio": 0.2,
                "arrivals": "constant",
            },
            (
                "5/s, bursts of 90/s for 4 s every 30 s, 2 back to back, 3 s apart, rising in 1 s, "
                "20 % jitter, constant arrivals"
            ),
        ),
    ],
)
def test_a_load_is_said_in_words(load: dict[str, object], words: str) -> None:
    """A load is worded in the table of scenarios."""
    assert load_words(load) == words


def test_what_was_tested_is_one_line() -> None:
    """One line says plan, farm, start, measured time, and whether the evidence is valid."""
    build = climb()
    manifest, verdict = build.run().manifest, {"outcome": "not_reached"}
    lasted = run_header(manifest, verdict)[2:]
    assert lasted == ("measured for 2 min 20 s", "valid")
    assert run_header(manifest, {"outcome": "invalid"})[-1] == "not valid"
    assert run_header({**manifest, "state": "interrupted"}, verdict)[-1] == "interrupted"
