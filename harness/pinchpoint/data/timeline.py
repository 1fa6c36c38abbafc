"""The run over time: load, latency and every tier's key metrics as small series on one time axis.

Series are brought down to at most a few hundred points, each with the mean, the smallest and the largest
value of its bucket, so that a run of a day stays small and no spike gets lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pinchpoint.data.latency import bucket_percentiles, in_plan_order
from pinchpoint.data.places import disks_with_roles, farm_cores, machine_name, machines, tiers
from pinchpoint.data.recorded import Recorded, SampleLine, SamplePoint, middle, over_operations
from pinchpoint.data.timeaxis import Clock
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun

Axis = Literal["rate", "latency", "ratio"]
_NOT_DELIVERED = "Not measured: no collector delivered {}."
_NOT_IN_FILES = "Not measured: the imported files have no {}."
_OF_A_LOAD = frozenset({"throughput", "latency", "generator"})
_TOGETHER = ", both ways"

_PART_S = 0.25  # a second that is missing less than this counts as whole


@dataclass(frozen=True, slots=True)
class TimelineSeries:
    """One line.

    Attributes:
        name: what the legend says.
        points: in time order; a bucket in which nothing was measured has no point.
        style: ``dashed`` for the second line of a pair.
    """

    name: str
    points: tuple[SamplePoint, ...]
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
    series: tuple[TimelineSeries, ...]
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


def _all(run: StoredRun, clock: Clock, drawn: Mapping[str, tuple[TimelineSeries, ...]]) -> tuple[Panel, ...]:
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


def _throughput(run: StoredRun, clock: Clock) -> tuple[TimelineSeries, ...]:
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
    lines: dict[str, list[SamplePoint]] = {}
    for scenario, bucket, mean, low, high in rows:
        lines.setdefault(scenario, []).append(SamplePoint(middle(clock, int(bucket)), mean, low, high))
    return tuple(TimelineSeries(name, tuple(lines[name])) for name in in_plan_order(run, lines))


def _latency_series(run: StoredRun, clock: Clock) -> tuple[TimelineSeries, ...]:
    """p50 (solid) and p95 (dashed) of each scenario; response time where there is one, else service time."""
    found: list[TimelineSeries] = []
    for scenario, kind, buckets in bucket_percentiles(run, clock, (50.0, 95.0)):
        for place, style in ((0, "solid"), (1, "dashed")):
            points = tuple(
                SamplePoint(middle(clock, bucket), values[place], values[place], values[place])
                for bucket, values in buckets
            )
            name = f"{scenario} p{(50, 95)[place]} ({kind})"
            found.append(TimelineSeries(name, points, "dashed" if style == "dashed" else "solid"))
    return tuple(found)


class _Draft(NamedTuple):
    """A series before its points are known."""

    name: str
    line: SampleLine
    style: Literal["solid", "dashed"] = "solid"


def _cpu(run: StoredRun) -> Iterator[_Draft]:
    metrics = ("cpu.busy_ratio",)
    for hosts in machines(run).values():
        name = machine_name(run, hosts)
        label = f"machine {name}" if len(hosts) > 1 else name
        yield _Draft(label, SampleLine(tuple(hosts), ("",), metrics), "dashed")
        cores = farm_cores(run, hosts)
        if cores:
            words = f"core{'s'[: len(cores) > 1]} {', '.join(cores)} of {name}"
            yield _Draft(words, SampleLine(tuple(hosts), tuple(cores), metrics), "dashed")
    hosts_of = Counter(tier for tier, _ in tiers(run))
    for tier, host in tiers(run):
        words = tier if tier in host and hosts_of[tier] == 1 else f"{tier} on {host}"
        yield _Draft(words, SampleLine((host,), (f"tier:{tier}",), metrics))


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
        yield _Draft(f"{names[disk]} ({device}){where}{words}", SampleLine(hosts, (device,), metrics))


def _pressure(run: StoredRun) -> Iterator[_Draft]:
    for hosts in machines(run).values():
        where = "" if len(machines(run)) == 1 else f" of {machine_name(run, hosts)}"
        for metric, words in (("cpu", "CPU"), ("io", "I/O"), ("memory", "memory")):
            yield _Draft(words + where, SampleLine(tuple(hosts), ("",), (f"pressure.{metric}_ratio",)))


def _generators(recorded: Recorded) -> Iterator[_Draft]:
    for host in recorded.hosts("generator.cpu_ratio"):
        yield _Draft(host, SampleLine((host,), ("",), ("generator.cpu_ratio",)))


def _with_points(
    drafts: Iterable[_Draft], points: Mapping[SampleLine, tuple[SamplePoint, ...]]
) -> tuple[TimelineSeries, ...]:
    return tuple(TimelineSeries(one.name, points[one.line], one.style) for one in drafts if points[one.line])
