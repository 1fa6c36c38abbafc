"""The run over time: load, latency and every tier's key metrics as small series on one time axis.

Series are brought down to at most a few hundred points before anything is drawn, each with the mean, the
smallest and the largest value of its bucket, so that a run of a day stays small and no spike gets lost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import altair as alt

from pinchpoint.report.charts import (
    LABELS,
    PALETTE,
    SHOW,
    Axis,
    Chart,
    Datasets,
    decades,
    digits,
    finished,
    svg_of,
)
from pinchpoint.report.clock import Clock, day_and_time
from pinchpoint.report.latency import bucket_percentiles, in_plan_order
from pinchpoint.report.places import disks_with_roles, farm_cores, machine_name, machines, tiers
from pinchpoint.report.recorded import Line, Point, Recorded, middle, over_operations
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun
from pinchpoint_collectors.common.times import utc

_NOT_DELIVERED = "Not measured: no collector delivered {}."
_NOT_IN_FILES = "Not measured: the imported files have no {}."
_OF_A_LOAD = frozenset({"throughput", "latency", "generator"})
_TOGETHER = ", both ways"

_PART_S = 0.25  # a second that is missing less than this counts as whole


@dataclass(frozen=True, slots=True)
class Series:
    """One line.

    Attributes:
        name: what the legend says.
        points: in time order; a bucket in which nothing was measured has no point.
        style: ``dashed`` for the second line of a pair.
    """

    name: str
    points: tuple[Point, ...]
    style: Literal["solid", "dashed"] = "solid"


@dataclass(frozen=True, slots=True)
class Panel:
    """Series of one quantity that share a vertical axis.

    Attributes:
        name: its key in report.json.
        title: what people read above it.
        axis: the quantity, which decides the scale and the unit.
        series: the lines; an empty panel says ``missing`` in words.
        missing: the sentence for a panel without lines.
        logarithmic: whether the axis is.
    """

    name: str
    title: str
    axis: Axis
    series: tuple[Series, ...]
    missing: str
    logarithmic: bool = False


def panels(run: StoredRun, clock: Clock) -> tuple[Panel, ...]:
    """All panels of the timeline, in reading order: what the farm did, then how each tier took it."""
    recorded = Recorded(run, clock)
    asked = {
        "cpu": list(_cpu(run)),
        "disk_write_latency": [
            *_disks(run, ("disk.write_latency_s",)),
            *_disks(run, ("disk.transfer_latency_s",), _TOGETHER),
        ],
        "disk_iops": [
            *_disks(run, ("disk.reads_per_s", "disk.writes_per_s")),
            *_disks(run, ("disk.transfers_per_s",)),
        ],
        "pressure": list(_pressure(run)),
        "generator": list(_generators(recorded)),
    }
    points = recorded.points(each.line for drafts in asked.values() for each in drafts)
    drawn = {name: _with_points(drafts, points) for name, drafts in asked.items()}
    found = _all(run, clock, drawn)
    # Of what only a load has, samples alone lack nothing.
    return tuple(each for each in found if each.series or not (clock.alone and each.name in _OF_A_LOAD))


def _all(run: StoredRun, clock: Clock, drawn: Mapping[str, tuple[Series, ...]]) -> tuple[Panel, ...]:
    unseen = _NOT_IN_FILES if clock.alone else _NOT_DELIVERED
    return (
        Panel(
            "throughput",
            "Throughput (operations done)",
            "rate",
            _throughput(run, clock),
            "No whole second with operations was recorded.",
        ),
        Panel(
            "latency",
            "Latency of operations that succeeded",
            "latency",
            _latency_series(run, clock),
            "No operation succeeded, so no latency was measured.",
            logarithmic=True,
        ),
        Panel("cpu", "CPU busy", "ratio", drawn["cpu"], unseen.format("cpu.busy_ratio")),
        Panel(
            "disk_write_latency",
            "Disk write latency",
            "latency",
            drawn["disk_write_latency"],
            unseen.format("disk.write_latency_s of a disk with a role"),
        ),
        Panel(
            "disk_iops",
            "Disk I/O operations (reads and writes, as the kernel counts them)",
            "rate",
            drawn["disk_iops"],
            unseen.format("disk.reads_per_s and disk.writes_per_s of a disk with a role"),
        ),
        Panel(
            "pressure",
            "Pressure (share of time in which something had to wait)",
            "ratio",
            drawn["pressure"],
            unseen.format("pressure.*"),
        ),
        Panel(
            "generator",
            "Load generators: CPU of one core",
            "ratio",
            drawn["generator"],
            unseen.format("generator.cpu_ratio"),
        ),
    )


def _throughput(run: StoredRun, clock: Clock) -> tuple[Series, ...]:
    """Operations per second by scenario. Where a generator recorded and none of it ended, it did none: 0.

    Seconds the run covers only in part, its first and last, are left out: their rate would look like a drop.
    """
    if not run.operations.num_rows:
        return ()
    connection = over_operations(run)
    samples.show(run.samples, connection)
    rows = connection.execute(
        """
        WITH seconds AS (
            SELECT scenario, time_s,
                   sum(count) FILTER (outcome = 'ok' AND NOT contains(operation, '/')) AS done,
                   max(interval_s) AS interval_s
            FROM operations
            WHERE time_s >= $first AND time_s + interval_s <= $last
            GROUP BY scenario, time_s),
        recorded AS (
            SELECT DISTINCT floor((time_ns / 1e9 - interval_s / 2) / $step) * $step AS time_s
            FROM samples WHERE metric = 'generator.recorder_ok' AND value >= 1),
        times AS (
            SELECT time_s, max(interval_s) AS interval_s FROM (
                SELECT time_s, interval_s FROM seconds UNION ALL
                SELECT time_s, $step FROM recorded
                WHERE time_s > (SELECT min(time_s) FROM seconds) AND time_s + $step <= $ended)
            GROUP BY time_s),
        grid AS (SELECT s.scenario, t.time_s, t.interval_s FROM times t,
                 (SELECT DISTINCT scenario FROM operations) s)
        SELECT g.scenario, floor((g.time_s - $start) / $bucket) AS bucket,
               sum(coalesce(done, 0)) / sum(g.interval_s), min(coalesce(done, 0) / g.interval_s),
               max(coalesce(done, 0) / g.interval_s)
        FROM grid g LEFT JOIN seconds USING (scenario, time_s)
        GROUP BY g.scenario, bucket HAVING bucket >= 0 ORDER BY g.scenario, bucket
        """,
        {
            "start": int(clock.start_s),
            "bucket": clock.bucket_s,
            "step": float(clock.step_s),
            "ended": clock.start_s + min([clock.length_s, *(phase.to_s for phase in clock.phases[-1:])]),
            "first": clock.start_s - _PART_S,
            "last": clock.start_s + clock.length_s + _PART_S,
        },
    ).fetchall()
    lines: dict[str, list[Point]] = {}
    for scenario, bucket, mean, low, high in rows:
        lines.setdefault(scenario, []).append(Point(middle(clock, int(bucket)), mean, low, high))
    return tuple(Series(name, tuple(lines[name])) for name in in_plan_order(run, lines))


def _latency_series(run: StoredRun, clock: Clock) -> tuple[Series, ...]:
    """p50 (solid) and p95 (dashed) of each scenario; response time where there is one, else service time."""
    found: list[Series] = []
    for scenario, kind, buckets in bucket_percentiles(run, clock, (50.0, 95.0)):
        for place, style in ((0, "solid"), (1, "dashed")):
            points = tuple(
                Point(middle(clock, bucket), values[place], values[place], values[place])
                for bucket, values in buckets
            )
            name = f"{scenario} p{(50, 95)[place]} ({kind})"
            found.append(Series(name, points, "dashed" if style == "dashed" else "solid"))
    return tuple(found)


class _Draft(NamedTuple):
    """A series before its points are known."""

    name: str
    line: Line
    style: Literal["solid", "dashed"] = "solid"


def _cpu(run: StoredRun) -> Iterator[_Draft]:
    metrics = ("cpu.busy_ratio",)
    for hosts in machines(run).values():
        name = machine_name(run, hosts)
        label = f"machine {name}" if len(hosts) > 1 else name
        yield _Draft(label, Line(tuple(hosts), ("",), metrics), "dashed")
        cores = farm_cores(run, hosts)
        if cores:
            words = f"core{'s'[: len(cores) > 1]} {', '.join(cores)} of {name}"
            yield _Draft(words, Line(tuple(hosts), tuple(cores), metrics), "dashed")
    hosts_of = Counter(tier for tier, _ in tiers(run))
    for tier, host in tiers(run):
        words = tier if tier in host and hosts_of[tier] == 1 else f"{tier} on {host}"
        yield _Draft(words, Line((host,), (f"tier:{tier}",), metrics))


def _disks(run: StoredRun, metrics: tuple[str, ...], words: str = "") -> Iterator[_Draft]:
    """``sql log + sql data (sdc)``; where a tier has several hosts, also whose it is."""
    found = disks_with_roles(run)
    names = {
        disk: " + ".join(dict.fromkeys(f"{tier} {role}" for tier, role, _ in users))
        for disk, users in found.items()
    }
    times = Counter(names.values())
    for disk, users in found.items():
        _, device = disk
        hosts = tuple(dict.fromkeys(host for *_, host in users))
        where = f" on {' + '.join(hosts)}" if times[names[disk]] > 1 else ""
        yield _Draft(f"{names[disk]} ({device}){where}{words}", Line(hosts, (device,), metrics))


def _pressure(run: StoredRun) -> Iterator[_Draft]:
    for hosts in machines(run).values():
        where = "" if len(machines(run)) == 1 else f" of {machine_name(run, hosts)}"
        for metric, words in (("cpu", "CPU"), ("io", "I/O"), ("memory", "memory")):
            yield _Draft(words + where, Line(tuple(hosts), ("",), (f"pressure.{metric}_ratio",)))


def _generators(recorded: Recorded) -> Iterator[_Draft]:
    for host in recorded.hosts("generator.cpu_ratio"):
        yield _Draft(host, Line((host,), ("",), ("generator.cpu_ratio",)))


def _with_points(drafts: Iterable[_Draft], points: Mapping[Line, tuple[Point, ...]]) -> tuple[Series, ...]:
    return tuple(Series(one.name, points[one.line], one.style) for one in drafts if points[one.line])


_AXIS_WIDTH = 62  # the same for every panel, so that their plots start at the same place
_WIDTH = 780
_NARROW, _LETTER = 390, 6  # a narrow window's chart, and a letter of a phase's name in it
_HEIGHT = 118
_LONG_S = 3 * 3600
_STEPS_S = (1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800)
_TICKS = 14
_LOG_HEIGHT = 150  # a decade needs room for its labels


def timeline_chart(panels: Sequence[Panel], clock: Clock) -> Chart | None:
    """All panels under each other on one time axis, phases shaded; ``None`` when there is nothing to draw."""
    drawn = [panel for panel in panels if panel.series]
    if not drawn:
        return None
    spec = _stack(drawn, clock)
    return Chart("timeline", "Timeline: load, latency and the tiers' key metrics", spec, svg_of(_still(spec)))


def _stack(panels: Sequence[Panel], clock: Clock) -> dict[str, Any]:
    data = Datasets()
    rows = [
        _panel(panel, clock, data, first=place == 0, last=place == len(panels) - 1)
        for place, panel in enumerate(panels)
    ]
    return finished(
        alt.vconcat(*rows, spacing=14).resolve_scale(color="independent", strokeDash="independent"), data
    )


def _still(stack: Mapping[str, Any]) -> dict[str, Any]:
    """The stack without what answers a pointer, each panel's last layer: building it anew takes seconds."""
    panels = [{**panel, "layer": panel["layer"][:-1]} for panel in stack["vconcat"]]
    return {**{key: value for key, value in stack.items() if key != "params"}, "vconcat": panels}


def _panel(
    panel: Panel, clock: Clock, data: Datasets, *, first: bool, last: bool
) -> alt.LayerChart | alt.FacetChart:
    x = alt.X(
        "t:Q",
        scale=alt.Scale(domain=[0, max(clock.length_s, 1.0)], nice=False),
        axis=_time_axis(clock, last=last),
    )
    layers = (*_phases(clock, data, named=first), *_lines(panel, clock, data, x), _hover(panel, clock, data))
    return alt.layer(*layers).properties(
        width=_WIDTH,
        height=_LOG_HEIGHT if panel.logarithmic else _HEIGHT,
        title=alt.TitleParams(panel.title, frame="group"),
    )


def _time_axis(clock: Clock, *, last: bool) -> alt.Axis:
    """Seconds; of what went on for hours these, or halves of one. Only the lowest panel's is labelled."""
    since = f"since the {'recording' if clock.alone else 'load'} began"
    if clock.length_s <= _LONG_S:
        return alt.Axis(title=f"seconds {since}" if last else None, labels=last, tickCount=12, grid=True)
    step_s = next((each for each in _STEPS_S if clock.length_s / each <= _TICKS), _STEPS_S[-1])
    ticks = [float(at) for at in range(0, math.floor(clock.length_s) + 1, step_s)]
    at = day_and_time(utc(round(clock.start_s * 1e9)))
    return alt.Axis(
        title=f"hours {since}, at {at}" if last else None,
        labels=last,
        labelExpr="datum.value / 3600",
        values=ticks,
        grid=True,
    )


def _phases(clock: Clock, data: Datasets, *, named: bool) -> list[alt.Chart]:
    """Everything that is not the measure phase is shaded; the first panel also names the phases."""
    letter_s = clock.length_s * _LETTER / _NARROW
    rows = [
        {
            "from": phase.from_s,
            "to": (to_s := min(phase.to_s, clock.length_s)),
            "name": phase.name,
            # One that its phase has no room for would lie over the next one's.
            "shown": phase.name.replace("_", "-")
            if to_s - phase.from_s >= len(phase.name) * letter_s
            else "",
        }
        for phase in clock.phases
        if phase.to_s > phase.from_s
    ]
    if not rows:
        return []
    base = alt.Chart(data.named(rows))
    shade = (
        base.transform_filter("datum.name != 'measure'")
        .mark_rect(color="#8a8a8a", opacity=0.16)
        .encode(x=alt.X("from:Q"), x2="to:Q")
    )
    if not named:
        return [shade]
    words = base.mark_text(align="left", dx=4, dy=8, color="#666", fontSize=10).encode(
        x="from:Q", y=alt.value(0), text="shown:N"
    )
    return [shade, words]


def _lines(panel: Panel, clock: Clock, data: Datasets, x: alt.X) -> list[alt.Chart]:
    rows = [row for place, series in enumerate(panel.series) for row in _rows(series, place, clock)]
    names = [series.name for series in panel.series]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=_colours(panel.series)),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3),
        sort=names,
    )
    base = alt.Chart(data.named(rows)).encode(x=x, color=colour)
    y = alt.Y("v:Q", scale=_scale(panel), axis=_y_axis(panel))
    found = []
    if clock.bucket_s > 1 and any(row["low"] != row["high"] for row in rows):
        found.append(base.mark_area(opacity=0.16, tooltip=False).encode(y=alt.Y("low:Q"), y2="high:Q"))
    dashes = [[5, 3] if series.style == "dashed" else [1, 0] for series in panel.series]
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=dashes), sort=names)
    found.append(base.mark_line(strokeWidth=1.7, clip=True).encode(y=y, strokeDash=dash, detail="run:N"))
    alone = [row for row in rows if row["alone"]]
    if alone:  # a line needs two points
        found.append(
            base.mark_point(filled=True, size=14, opacity=1).encode(y=y).properties(data=data.named(alone))
        )
    return found


def _rows(series: Series, place: int, clock: Clock) -> list[dict[str, Any]]:
    """A series as rows; ``run`` counts up where buckets are missing, so that no line crosses a gap."""
    rows: list[dict[str, Any]] = []
    run = 0
    points = series.points
    for index, point in enumerate(points):
        after_gap = index > 0 and _gap(points[index - 1], point, clock)
        before_gap = index + 1 < len(points) and _gap(point, points[index + 1], clock)
        run += after_gap
        alone = (index == 0 or after_gap) and (index + 1 == len(points) or before_gap)
        rows.append(
            {
                "t": point.t_s,
                "name": series.name,
                "v": digits(point.mean),
                "low": digits(point.low),
                "high": digits(point.high),
                "run": f"{place}.{run}",
                "alone": alone,
            }
        )
    return rows


def _gap(before: Point, after: Point, clock: Clock) -> bool:
    return after.t_s - before.t_s > clock.bucket_s * 1.5


def _colours(series: Sequence[Series]) -> list[str]:
    """One colour a line; a dashed line directly after a solid one is its partner and shares its colour."""
    colours: list[str] = []
    taken = 0
    for place, line in enumerate(series):
        taken += not (line.style == "dashed" and place > 0 and series[place - 1].style == "solid")
        colours.append(PALETTE[(taken - 1) % len(PALETTE)])
    return colours


def _scale(panel: Panel) -> alt.Scale:
    if panel.logarithmic:
        low, *_, high = _decades(panel)
        return alt.Scale(type="log", domain=[low, high])
    if panel.axis == "ratio":
        highest = max((point.high for series in panel.series for point in series.points), default=1.0)
        return alt.Scale(domain=[0, max(1.0, digits(highest))] if highest > 0.5 else [0, 0.5], nice=True)
    return alt.Scale(zero=True, nice=True)


def _y_axis(panel: Panel) -> alt.Axis:
    ticks = {"values": _decades(panel)} if panel.logarithmic else {"tickCount": 4}
    return alt.Axis(
        title=None,
        labelExpr=LABELS[panel.axis],
        minExtent=_AXIS_WIDTH,
        maxExtent=_AXIS_WIDTH,
        labelOverlap=True,
        **ticks,
    )


def _decades(panel: Panel) -> list[float]:
    return decades([point.mean for series in panel.series for point in series.points])


def _hover(panel: Panel, clock: Clock, data: Datasets) -> alt.Chart:
    """A column per bucket that lights up under the pointer and tells every line's value and the UTC time.

    Columns, not Vega-Lite's nearest point: its tooltips lose every field that is no number.
    """
    show = SHOW[panel.axis]
    half = clock.bucket_s / 2
    moments: dict[float, dict[str, Any]] = {}
    for place, series in enumerate(panel.series):
        for point in series.points:
            t = point.t_s
            row = moments.setdefault(t, {"t": t, "from": t - half, "to": t + half, "utc": clock.utc(t)})
            row[f"s{place}"] = _told(point, show)
    for row in moments.values():
        for place in range(len(panel.series)):
            row.setdefault(f"s{place}", "not measured")
    since = f"seconds since the {'recording' if clock.alone else 'load'} began"
    tips = [alt.Tooltip("t:Q", title=since), alt.Tooltip("utc:N", title="UTC")]
    tips += [alt.Tooltip(f"s{place}:N", title=series.name) for place, series in enumerate(panel.series)]
    pointed = alt.selection_point(
        name=f"pointed_{panel.name}", fields=["t"], on="pointerover", clear="pointerout", empty=False
    )
    columns: alt.Chart = (
        alt.Chart(data.named([moments[t] for t in sorted(moments)]))
        .mark_rect(color="#333")
        .encode(
            x=alt.X("from:Q"),
            x2="to:Q",
            opacity=alt.condition(pointed, alt.value(0.18), alt.value(0)),
            tooltip=tips,
        )
        .add_params(pointed)
    )
    return columns


def _told(point: Point, show: Any) -> str:
    if math.isclose(point.low, point.high):
        return str(show(point.mean))
    return f"{show(point.mean)} ({show(point.low)} to {show(point.high)})"
