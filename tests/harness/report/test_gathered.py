"""From tables to the report's content: time axis, series, distributions, and resource states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness.analysis.build import START_S, Build, utc
from harness.report.example import saved_run, steady_run, suspect, verdict

from pinchpoint.base.wording import place
from pinchpoint.data.latency import distributions
from pinchpoint.data.timeaxis import clock_of
from pinchpoint.data.timeline import Panel, panels
from pinchpoint.report import run_tables
from pinchpoint.report.charts import decades
from pinchpoint.report.picture import Box, picture
from pinchpoint.report.report import gather
from pinchpoint.report.timeline_chart import marks_of, panel_chart
from pinchpoint.run.progress import Board
from pinchpoint.store.read import StoredRun


def _panels(run: StoredRun) -> dict[str, Panel]:
    return {panel.name: panel for panel in panels(run, clock_of(run))}


def test_the_clock_starts_with_the_run_and_knows_its_phases() -> None:
    """Times are seconds since the start, and the measure phase is in UTC."""
    clock = clock_of(saved_run())
    assert clock.start_s == START_S
    assert [(phase.name, phase.from_s, phase.to_s) for phase in clock.phases] == [
        ("warm_up", 0, 10),
        ("measure", 10, 70),
    ]
    assert clock.window == (START_S + 10, START_S + 70)
    assert clock.shown(61.5) == "00:01:01 UTC"


def test_a_run_that_never_ended_ends_with_its_data() -> None:
    """Without an end in the manifest, the last measurement ends the run."""
    run = saved_run()
    run.manifest["ended"] = None
    run.manifest["phases"][1]["to"] = None
    clock = clock_of(run)
    assert 70 <= clock.length_s < 71
    assert clock.phases[1].to_s == clock.length_s


def test_the_axis_begins_with_the_load_and_half_seconds_are_no_drop() -> None:
    """The axis begins with the load, and a partly covered second has no throughput."""
    run = saved_run()
    run.manifest["started"] = utc(START_S - 300)
    run.manifest["ended"] = utc(START_S + 69.4)
    assert clock_of(run).start_s == START_S
    assert clock_of(run).length_s == pytest.approx(69.4)
    assert max(point.t_s for point in _panels(run)["throughput"].series[0].points) == 68.5


def test_a_long_run_is_brought_down_and_keeps_its_spikes() -> None:
    """An hour has at most 300 points per line, and a spike of one second stays the largest value."""
    build = Build(measure_s=3590).host("sql1", "sql", cores=(0, 1))
    level = np.full(build.seconds, 0.2)
    level[1800] = 0.9
    build.metric("sql1", "cpu.busy_ratio", level, noise=0.0)
    build.closed("orders", "sql-mix", 1).operations("orders", "log_append", 2, 0.01, noise=0.0)
    run = build.run()
    clock = clock_of(run)
    line = _panels(run)["cpu"].series[0]
    throughput = _panels(run)["throughput"].series[0]
    assert [point.mean for point in throughput.points] == [2.0] * 240
    assert clock.bucket_s == 15
    assert len(line.points) == 240
    spiky = max(line.points, key=lambda point: point.high)
    assert spiky.high == pytest.approx(0.9)
    assert spiky.mean == pytest.approx((14 * 0.2 + 0.9) / 15, rel=0.01)
    assert sum(len(panel_chart(each, clock).svg) for each in panels(run, clock) if each.series) < 200_000


def test_lines_of_one_panel_are_told_apart_whatever_hosts_are_called() -> None:
    """Only p95 shares the colour of its p50; a host whose name begins with p does not."""
    build = Build(measure_s=20, warm_up_s=0).host("prod1", "sql", "a").host("prod2", "web", "b")
    for host in ("prod1", "prod2"):
        build.cpu(host, 0.5, 0.3).metric(host, "pressure.io_ratio", 0.2)
    build.open("orders", "sql-mix", 20).operations("orders", "log_append", 20, 0.01)
    run = build.run()
    drawn = _panels(run)
    pressure, latency = (panel_chart(drawn[name], clock_of(run)).legend for name in ("pressure", "latency"))
    assert len({entry.colour for entry in pressure}) == len(pressure) == 4
    assert [entry.style for entry in latency] == ["solid", "dashed"]
    assert len({entry.colour for entry in latency}) == 1


def test_twenty_lines_are_told_apart_as_far_as_colours_go() -> None:
    """Of twenty lines the highest have a colour each, and the others are one grey range."""
    build = Build(measure_s=20, warm_up_s=0)
    for number in range(20):
        build.host(f"web{number}", "web", f"m{number}").cpu(f"web{number}", number / 25, 0.0)
    run = build.run()
    chart = panel_chart(_panels(run)["cpu"], clock_of(run))
    assert len({entry.colour for entry in chart.legend}) == 8
    [rest] = [entry.name for entry in chart.legend if entry.name.endswith(" others: mean, lowest to highest")]
    rows = max(chart.spec["datasets"].values(), key=len)
    assert {row["name"] for row in rows} == {entry.name for entry in chart.legend}
    lows = {(row["low"], row["low"] < row["v"] < row["high"]) for row in rows if row["name"] == rest}
    assert lows == {(0.0, True)}


def test_limits_and_when_the_bottleneck_was_at_its_own_are_marked() -> None:
    """Limits are marked at 90 % CPU, a role's lowest limit and an objective's p95, with the period."""
    run = saved_run()
    content = verdict()
    marks = marks_of(run.manifest, content, clock_of(run))
    assert [limit.words for limit in marks["cpu"].limits] == ["limit 90 %"]
    assert [limit.words for limit in marks["latency"].limits] == ["orders p95 objective 5 ms"]
    assert marks["cpu"].spans == ((10.0, 70.0),)
    assert not marks["disk_iops"].spans
    assert "bottleneck at its limit" in [
        entry.name for entry in panel_chart(_panels(run)["cpu"], clock_of(run), marks["cpu"]).legend
    ]


def test_figures_of_a_steady_run_are_exactly_known() -> None:
    """A constant run gives its known figures: writes apart from reads, throughput of successes."""
    found = _panels(steady_run())
    writes, reads = found["disk_iops"].series
    assert {point.mean for point in writes.points} == {90.0}
    assert {point.mean for point in reads.points} == {10.0}
    assert writes.name == "sql log + data (vda) writes"
    assert {point.mean for point in found["throughput"].series[0].points} == {100.0}
    p50, p95 = found["latency"].series
    assert (p50.name, p95.name) == ("orders p50", "orders p95")
    assert p50.points[0].mean == pytest.approx(0.001, rel=0.01)
    assert p95.points[0].mean == pytest.approx(0.010, rel=0.01)


def test_a_mean_over_seconds_is_weighted_by_operations() -> None:
    """A mean over seconds is weighted: 1 ms of three and 3 ms of one operation are 1.5 ms."""
    run = steady_run()
    clock = replace(clock_of(run), bucket_s=2)
    line = next(panel for panel in panels(run, clock) if panel.name == "disk_write_latency").series[0]
    assert {round(point.mean, 6) for point in line.points} == {0.0015}
    assert {(point.low, point.high) for point in line.points} == {(0.001, 0.003)}


def test_nothing_measured_is_no_line_and_a_sentence() -> None:
    """A metric without values has no series, and its panel says so."""
    build = Build(measure_s=20).host("sql1", "sql").metric("sql1", "cpu.busy_ratio", None)
    panel = _panels(build.run())["cpu"]
    assert panel.series == ()
    assert panel.missing == "Not measured: no collector delivered cpu.busy_ratio."


@pytest.mark.parametrize(("recorded", "stalled"), [(True, [0.0] * 5), (False, [])])
def test_seconds_in_which_nothing_ended_at_all_are_zero_where_the_generator_recorded(
    recorded: bool, stalled: list[float]
) -> None:
    """Seconds without ended operations are 0 where the recorder worked, and else have no value."""
    build = Build(30).closed("crawl", "full-crawl", 8)
    build.operations("crawl", "document:files", 50, 0.05, seconds=range(30))
    build.operations("crawl", "document:files", 50, 0.05, seconds=range(35, build.seconds))
    if recorded:
        build.generator()
    points = _panels(build.run())["throughput"].series[0].points
    assert [point.mean for point in points if 30 < point.t_s < 35] == stalled


def test_a_second_without_operations_is_zero_in_the_progress() -> None:
    """A second without operations is 0 in the progress, not the previous figure."""
    board = Board()
    board.second("generator1", {"crawl": {"ok": 50, "failed": 0, "dropped": 0, "p95_s": 0.1}})
    board.second("generator1", {})
    assert board.scenarios() == {"crawl": {"ok": 0, "failed": 0, "dropped": 0, "p95_s": None}}


def test_a_stall_is_zero_throughput_and_a_gap_in_the_samples_is_no_value() -> None:
    """A stalled scenario has a throughput of 0; seconds without samples have no points."""
    build = Build(measure_s=20).host("sql1", "sql").metric("sql1", "cpu.busy_ratio", 0.5)
    build.closed("orders", "sql-mix", 4).closed("burst", "nosql-burst", 4)
    build.operations("orders", "log_append", 100, 0.01, seconds=range(10))
    build.operations("burst", "write", 50, 0.01)
    run = build.run()
    late = [row for row in run.samples.to_pylist() if row["time_ns"] < (START_S + 15) * 10**9]
    run = replace(run, samples=run.samples.slice(0, len(late)))
    found = _panels(run)
    orders = {line.name: line for line in found["throughput"].series}["orders"]
    assert [point.mean for point in orders.points[10:]] == [0.0] * 20
    assert max(point.t_s for point in found["cpu"].series[0].points) < 16


def test_two_roles_on_one_disk_are_one_line() -> None:
    """A device with two roles is one line that names both."""
    lines = _panels(saved_run())["disk_write_latency"].series
    assert [line.name for line in lines] == ["sql log + data (vda)"]


def test_hosts_of_one_tier_have_lines_of_their_own() -> None:
    """Two hosts of a tier with the same device name have separate lines."""
    build = Build(measure_s=20).host("sql1", "sql", machine="sql1", disks={"log": "sdb"})
    build.cpu("sql1", 0.4, 0.3).disk("sql1", "sdb", 100, 0.001)
    for host in ("search1", "search2"):
        build.host(host, "search", machine=host, disks={"index": "sdc"})
        build.cpu(host, 0.6, 0.5).disk(host, "sdc", 200, 0.002)
    found = _panels(build.run())
    tiers = [line.name for line in found["cpu"].series if line.style == "solid"]
    assert tiers == ["sql", "search on search1", "search on search2"]
    assert [line.name for line in found["disk_write_latency"].series] == [
        "sql log (sdb)",
        "search index (sdc) on search1",
        "search index (sdc) on search2",
    ]


def test_a_distribution_adds_up_and_knows_its_percentiles() -> None:
    """A distribution contains all operations; closed load has service time, open load both times."""
    found = distributions(saved_run(), clock_of(saved_run()).window)
    assert [(each.scenario, each.kind) for each in found] == [
        ("crawl", "service"),
        ("orders", "service"),
        ("orders", "response"),
        ("burst", "service"),
        ("burst", "response"),
    ]
    for each in found:
        assert sum(edge.ratio for edge in each.bins) == pytest.approx(1)
        assert each.p50_s < each.p95_s < each.p99_s <= each.max_s
    steady = distributions(steady_run(), None)[0]
    assert steady.count == 2000
    assert steady.p50_s == pytest.approx(0.001, rel=0.01)
    assert steady.max_s == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0012, 0.0019], [0.001, 0.002, 0.005, 0.01]),
        ([0.00005, 2.0], [1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0]),
        ([0.01], [0.01, 0.02, 0.05, 0.1]),
    ],
)
def test_ticks_enclose_the_values(values: list[float], ticks: list[float]) -> None:
    """Axis ticks are few round numbers that enclose the values."""
    assert decades(values) == ticks


def _box(run: StoredRun, content: dict[str, Any], tier: str) -> Box:
    found = picture(run, content, clock_of(run))
    return next(box for machine in found for box in machine.boxes if box.tier == tier)


def _states(box: Box) -> dict[str, tuple[str, str]]:
    return {each.name: (each.state, each.mark) for each in box.resources}


def test_the_picture_says_who_shares_a_machine_and_which_cores_are_full() -> None:
    """The state of a machine comes from the farm's core, not from a mean with the generator's core."""
    machine = picture(steady_run(), verdict(), clock_of(steady_run()))[0]
    assert machine.shared.startswith("web, search, sql and nosql share this one machine")
    assert machine.resources[0].state == "saturated"
    assert machine.resources[0].words == "the farm's core (0) 97 % busy, the whole machine 95 %"


def test_the_blamed_resource_is_marked_and_others_have_states_of_their_own() -> None:
    """The named resource is marked, and the others have their measured state."""
    assert _states(_box(saved_run(), verdict(), "search"))["CPU"] == ("saturated", "bottleneck")
    assert _states(_box(saved_run(), verdict(), "sql"))["log + data disk"] == ("fine", "next bottleneck")
    slow = [{**verdict()["disks"][0], "write_latency_mean_s": 0.03}]
    assert _states(_box(saved_run(), verdict(disks=slow), "sql"))["log + data disk"][0] == "busy"
    assert _states(_box(saved_run(), verdict(disks=[]), "sql"))["log + data disk"][0] == "not measured"


def test_a_disk_to_blame_is_saturated_in_the_picture() -> None:
    """A disk is shown as saturated only where the verdict names it, not for its busy ratio."""
    blame = suspect(kind="disk_cap", tier="sql", host="sql1", resource="disk", instance="vda", role="log")
    box = _box(saved_run(), verdict(bottleneck=blame, next=None), "sql")
    assert _states(box)["log + data disk"] == ("saturated", "bottleneck")


def test_a_disk_and_a_machine_are_counted_once() -> None:
    """A device with several roles is one row, and a tier's CPU is its own processes or a dash."""
    manifest = saved_run().manifest
    log, _ = verdict()["disks"]
    rows = [
        {**log, "role": role, "latency_limit_s": limit, "latency_limit_source": "SP"}
        for role, limit in (("log", 0.005), ("data", 0.02))
    ]
    [cells] = run_tables.disks(manifest, {"disks": rows}).cells()
    assert cells[2] == "sql log, sql data"
    assert "5 ms (log; SP), 20 ms (data; SP)" in cells
    whole = {
        "tier": "files",
        "host": "sql1",
        "of": "machine",
        "busy_mean_ratio": 0.9,
        "busy_max_ratio": 1.0,
        "machine_busy_mean_ratio": 0.9,
        "machine_busy_max_ratio": 1.0,
    }
    machine, tier = run_tables.cpus(manifest, {"cpus": [whole]}).cells()
    assert (machine[2:], tier[2:]) == (["90 %", "100 %"], ["-", "-"])


def test_a_tier_alone_on_its_machine_shows_the_machines_figures() -> None:
    """A tier alone on its machine shows the machine's CPU and memory as its own."""
    build = (
        Build(measure_s=20).host("sql1", "sql", machine="a", cores=(0, 1)).host("web1", "web", machine="b")
    )
    build.metric("sql1", "cpu.busy_ratio", 0.6).metric("sql1", "mem.available_ratio", 0.04)
    box = _box(build.run(), verdict(bottleneck=None, next=None, disks=[]), "sql")
    assert _states(box) == {"CPU": ("busy", ""), "memory": ("saturated", "")}
    assert _states(_box(build.run(), verdict(disks=[]), "web"))["memory"][0] == "not measured"


@pytest.mark.parametrize("measure_s", [0, 3])
def test_very_short_runs_are_reported(measure_s: int) -> None:
    """A very short run has a report with every part."""
    build = Build(measure_s=measure_s, warm_up_s=0).host("sql1", "sql", disks={"log": "vda"})
    if measure_s:
        build.cpu("sql1", 0.5, 0.2).closed("orders", "sql-mix", 1).operations("orders", "log_append", 5, 0.01)
    report = gather(build.run(), verdict(bottleneck=None, next=None, scenarios={}, disks=[], crawl=[]))
    assert [panel.name for panel in report.panels][:2] == ["throughput", "latency"]
    assert bool(report.distributions) == bool(measure_s)


@pytest.mark.parametrize(("instance", "marked"), [("", ("saturated", "bottleneck")), ("tier:web", None)])
def test_memory_that_tiers_share_bears_the_verdict_s_mark(
    instance: str, marked: tuple[str, str] | None
) -> None:
    """Shared memory is marked at the machine, whichever tier the verdict lists first."""
    run = saved_run()
    blame = suspect(kind="memory", tier="web", host="web1", resource="memory", instance=instance)
    machine, *_ = picture(run, verdict(bottleneck=blame), clock_of(run))
    [memory] = [each for each in machine.resources if each.name == "memory"]
    assert (memory.state, memory.mark) == (marked or ("fine", ""))


def test_shared_cores_that_are_no_tier_s_bear_the_verdict_s_mark() -> None:
    """Shared CPU of unknown use is marked at the machine and at no tier."""
    run, others = saved_run(), ["web", "search", "sql", "nosql"]
    content = verdict(bottleneck=suspect(kind="cpu", tier=None, host="web1", shared_with=others))
    machine, *_ = picture(run, content, clock_of(run))
    assert {each.name: each.mark for each in machine.resources}["CPU"] == "bottleneck"
    assert all(_states(box)["CPU"][1] != "bottleneck" for box in machine.boxes)
    assert place(content["bottleneck"]).startswith("the CPU that web, search, sql and nosql share (host web1")
