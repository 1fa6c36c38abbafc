"""Timelines and charts of a comparison: aligned on the measure phase, drawn from its file alone."""

from __future__ import annotations

from typing import Any

import pytest
from harness.analysis.build import Build, crawl_bound_by_search
from harness.comparison.example import two_sides

from pinchpoint.analysis import analyse
from pinchpoint.comparison import ComparedRun, compare, sides_of
from pinchpoint.comparison.timelines import MOST_POINTS, timeline_of
from pinchpoint.report.ratio_chart import ratio_chart
from pinchpoint.report.timeline_chart import both_timelines


def compared(*, warm_up_s: int = 10) -> dict[str, Any]:
    """Return the comparison of two runs with different warm-ups, as stored in comparison.json."""
    runs = []
    for name, warm_up in (("dev", 10), ("prod", warm_up_s)):
        build = Build(measure_s=60, warm_up_s=warm_up).host("sql1", "sql", disks={"log": f"{name}c"})
        build.cpu("sql1", 0.3, 0.2).disk("sql1", f"{name}c", 200, 0.002)
        build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 100, 0.08).generator()
        build.manifest["farm"]["name"] = name
        stored = build.run()
        runs.append(
            ComparedRun(name, stored.manifest, analyse(stored).to_json(), timeline=timeline_of(stored))
        )
    return compare(sides_of(runs[:1], runs[1:]), ["disks"]).to_json()


def test_zero_is_where_measuring_begins() -> None:
    """Second 0 is the start of the measure phase, and a longer warm-up has negative seconds."""
    timelines = compared(warm_up_s=30)["timelines"]
    base, other = timelines["base"], timelines["other"]
    assert [phase[0] for phase in base["phases"]] == ["warm_up", "measure"]
    assert base["phases"][1][1:] == other["phases"][1][1:] == [0.0, 60.0]
    assert (base["phases"][0][1], other["phases"][0][1]) == (-10.0, -30.0)
    for side in (base, other):
        assert side["first_s"] - side["step_s"] / 2 == side["phases"][0][1]


def test_lines_of_one_thing_have_one_name_on_both_sides() -> None:
    """A line has the same name on both sides, by role and not by device."""
    timelines = compared()["timelines"]
    names = [
        {line["name"] for panel in timelines[side]["panels"] for line in panel["lines"]}
        for side in ("base", "other")
    ]
    assert names[0] == names[1]
    assert {"sql log", "sql log writes", "orders", "orders p95"} <= names[0]


def test_only_the_device_is_left_out_of_a_line_s_name() -> None:
    """A line's name omits the device only, and keeps host and "reads"."""
    build = Build(measure_s=20)
    for number, device in ((1, "sdc"), (2, "sdd")):
        host = f"search{number}"
        build.host(host, "search", machine=host, disks={"index": device})
        build.disk(host, device, 200, 0.002).metric(host, "disk.transfer_latency_s", 0.002, device)
    panels = {panel.name: panel for panel in timeline_of(build.run()).panels}
    assert [line.name for line in panels["disk_write_latency"].lines] == [
        "search index on search1",
        "search index on search2",
        "search index on search1 reads and writes",
        "search index on search2 reads and writes",
    ]


def test_a_long_run_is_thinned_out() -> None:
    """The lines of an hour-long run are reduced to the points that can be distinguished."""
    timeline = timeline_of(crawl_bound_by_search(measure_s=600).run())
    assert timeline.points <= MOST_POINTS + 1
    assert {len(line.values) for panel in timeline.panels for line in panel.lines} == {timeline.points}


def test_both_sides_are_drawn_from_the_file() -> None:
    """Both labels and every line are drawn, and no chart library is loaded."""
    charts = [chart for pair in both_timelines(compared()) for chart in pair]
    titles, names = {chart.title for chart in charts}, {one.name for chart in charts for one in chart.legend}
    assert {"Throughput: dev", "Throughput: prod"} <= titles
    assert {"orders p95", "sql log"} <= names
    assert not any("http" in chart.svg.replace("http://www.w3.org", "") for chart in charts)


def test_the_ratio_chart_holds_every_figure_with_an_interval() -> None:
    """The ratio chart has every figure with an interval, judged ones first; without any it is absent."""
    content = compared()
    rows = [row for row in content["changes"] if row["declared"]]
    assert rows
    rows[0] |= {"ci95": [1.9, 2.1], "ratio": 2.0, "call": "better"}
    chart = ratio_chart("dev", "prod", content["changes"])
    assert chart is not None
    assert rows[0]["name"] in chart.svg
    assert "better" in chart.svg
    bare = compare(two_sides(), ["disks"]).to_json()
    assert ratio_chart("dev", "prod", bare["changes"]) is None
    assert both_timelines(bare) == ()


@pytest.mark.parametrize("missing", ["base", "other"])
def test_a_panel_of_one_side_says_that_the_other_was_not_measured(missing: str) -> None:
    """A panel with one side's data says that the other side was not measured."""
    content = compared()
    panels = content["timelines"][missing]["panels"]
    panels[:] = [panel for panel in panels if panel["name"] != "disk_write_latency"]
    titles = {chart.title for pair in both_timelines(content) for chart in pair}
    label = content[missing]["label"]
    assert f"Disk write latency: {label} (not measured)" in titles
