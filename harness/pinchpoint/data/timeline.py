"""Computes the panels of the timeline: load, latency and the key metrics of every tier over time.

A series has at most a few hundred points, each with the mean, the smallest and the largest value of its
bucket; so a run of a day stays small and no peak is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pinchpoint.data.latency import bucket_percentiles, in_plan_order
from pinchpoint.data.machines import disks_with_roles, farm_cores, machine_name, machines, tiers
from pinchpoint.data.queries import RecordedSamples, SampleLine, SamplePoint, middle, over_operations
from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun

Axis = Literal["rate", "latency", "ratio"]
_NOT_DELIVERED = "Not measured: no collector delivered {}."
_NOT_IN_FILES = "Not measured: the imported files have no {}."
_OF_A_LOAD = frozenset({"throughput", "latency", "errors", "generator"})
_TOGETHER = " reads and writes"

Style = Literal["solid", "dashed"]
_PAIR: tuple[Style, Style] = ("solid", "dashed")

_PART_S = 0.25  # a second with less than this missing counts as whole


@dataclass(frozen=True, slots=True)
class TimelineSeries:
    """One line of a panel.

    Attributes:
        name: label in the legend.
        points: points in order of time; a bucket without measurements has no point.
        style: style of the line; ``dashed`` for the second line of a pair.
    """

    name: str
    points: tuple[SamplePoint, ...]
    style: Style = "solid"


@dataclass(frozen=True, slots=True)
class Panel:
    """Series of one quantity that share a vertical axis.

    Attributes:
        name: key of the panel in report.json.
        title: title of the panel.
        axis: the quantity, which determines scale and unit.
        series: the lines; an empty panel shows ``missing``.
        missing: sentence shown in a panel without lines.
        logarithmic: whether the vertical axis is logarithmic.
    """

    name: str
    title: str
    axis: Axis
    series: tuple[TimelineSeries, ...]
    missing: str
    logarithmic: bool = False


def panels(run: StoredRun, clock: TimeAxis) -> tuple[Panel, ...]:
    """All panels of the timeline in reading order: first throughput and latency, then each tier's metrics."""
    recorded = RecordedSamples(run, clock)
    asked = {
        "cpu": list(_cpu(run)),
        "disk_write_latency": [
            *_disks(run, ("disk.write_latency_s",)),
            *_disks(run, ("disk.transfer_latency_s",), _TOGETHER),
        ],
        "disk_iops": [
            *_writes_and_reads(run),
            *_disks(run, ("disk.transfers_per_s",), _TOGETHER),
        ],
        "disk_read_latency": list(_disks(run, ("disk.read_latency_s",))),
        "pressure": list(_pressure(run)),
        "generator": list(_generators(recorded)),
    }
    points = recorded.points(each.line for drafts in asked.values() for each in drafts)
    drawn = {
        name: tuple(
            TimelineSeries(one.name, points[one.line], one.style) for one in drafts if points[one.line]
        )
        for name, drafts in asked.items()
    }
    # no collector measured a tier's own processes
    if all(series.style == "dashed" for series in drawn["cpu"]):
        drawn["cpu"] = tuple(replace(series, style="solid") for series in drawn["cpu"])
    result = _all(run, clock, drawn)
    # Panels that only a load fills are left out for runs with imported samples only.
    return tuple(
        each for each in result if each.series or not (clock.samples_only and each.name in _OF_A_LOAD)
    )


def _all(
    run: StoredRun, clock: TimeAxis, drawn: Mapping[str, tuple[TimelineSeries, ...]]
) -> tuple[Panel, ...]:
    unseen = _NOT_IN_FILES if clock.samples_only else _NOT_DELIVERED
    return (
        Panel(
            "throughput",
            "Throughput",
            "rate",
            _throughput(run, clock),
            "No whole second with operations was recorded.",
        ),
        Panel(
            "latency",
            "Latency, p50 and p95",
            "latency",
            _latency_series(run, clock),
            "No operation succeeded, so no latency was measured.",
            logarithmic=True,
        ),
        Panel("errors", "Errors and dropped operations", "rate", _errors(run, clock), "No operation failed."),
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
            "Disk IOPS, writes and reads",
            "rate",
            drawn["disk_iops"],
            unseen.format("disk.reads_per_s and disk.writes_per_s of a disk with a role"),
        ),
        Panel(
            "disk_read_latency",
            "Disk read latency",
            "latency",
            drawn["disk_read_latency"],
            unseen.format("disk.read_latency_s of a disk with a role"),
        ),
        Panel(
            "pressure",
            "Time in which a process waited (pressure)",
            "ratio",
            drawn["pressure"],
            unseen.format("pressure.*"),
        ),
        Panel(
            "generator",
            "Load generators, CPU of one core",
            "ratio",
            drawn["generator"],
            unseen.format("generator.cpu_ratio"),
        ),
    )


def _throughput(run: StoredRun, clock: TimeAxis) -> tuple[TimelineSeries, ...]:
    """Operations per second of each scenario; a second without operations is 0 if a generator recorded in it.

    In an imported log every second between the first and the last counts as recorded. The first and the last
    second are left out if the run covers them only in part, because their rate would look like a drop.
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
            FROM samples WHERE metric = 'generator.recorder_ok' AND value >= 1
            UNION SELECT unnest(range(
                (SELECT min(time_s)::BIGINT FROM seconds), (SELECT max(time_s)::BIGINT FROM seconds),
                $step::BIGINT))::DOUBLE
            WHERE $imported),
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
            "imported": bool(run.manifest.get("imports")) and not run.manifest.get("plan"),
            "ended": clock.start_s + min([clock.length_s, *(phase.to_s for phase in clock.phases[-1:])]),
            "first": clock.start_s - _PART_S,
            "last": clock.start_s + clock.length_s + _PART_S,
        },
    ).fetchall()
    lines: dict[str, list[SamplePoint]] = {}
    for scenario, bucket, mean, low, high in rows:
        lines.setdefault(scenario, []).append(SamplePoint(middle(clock, int(bucket)), mean, low, high))
    return tuple(TimelineSeries(name, tuple(lines[name])) for name in in_plan_order(run, lines))


def _latency_series(run: StoredRun, clock: TimeAxis) -> tuple[TimelineSeries, ...]:
    """p50 (solid) and p95 (dashed) of each scenario: response time if available, else service time."""
    series: list[TimelineSeries] = []
    for scenario, _, buckets in bucket_percentiles(run, clock, (50.0, 95.0)):
        for place, style in enumerate(_PAIR):
            points = tuple(
                SamplePoint(middle(clock, bucket), values[place], values[place], values[place])
                for bucket, values in buckets
            )
            name = f"{scenario} p{(50, 95)[place]}"
            series.append(TimelineSeries(name, points, style))
    return tuple(series)


def _errors(run: StoredRun, clock: TimeAxis) -> tuple[TimelineSeries, ...]:
    """Failed (solid) and dropped (dashed) operations per second of each scenario that has any."""
    if not run.operations.num_rows:
        return ()
    rows = (
        over_operations(run)
        .execute(
            """
        SELECT scenario, floor((time_s - $start) / $bucket) AS bucket,
               coalesce(sum(count) FILTER (outcome NOT IN ('ok', 'sent')), 0) / $bucket,
               coalesce(sum(dropped), 0) / $bucket
        FROM operations WHERE NOT contains(operation, '/')
        GROUP BY scenario, bucket HAVING bucket >= 0 ORDER BY scenario, bucket
        """,
            {"start": int(clock.start_s), "bucket": float(clock.bucket_s)},
        )
        .fetchall()
    )
    lines: dict[str, list[list[SamplePoint]]] = {}
    for scenario, bucket, *counts in rows:
        for line, value in zip(lines.setdefault(scenario, [[], []]), counts, strict=True):
            line.append(SamplePoint(middle(clock, int(bucket)), value, value, value))
    return tuple(
        TimelineSeries(f"{name} {words}", tuple(line), style)
        for name in in_plan_order(run, lines)
        for line, words, style in zip(lines[name], ("errors", "dropped"), _PAIR, strict=True)
        if any(point.mean for point in line)
    )


class _Draft(NamedTuple):
    """A line whose points are not yet read."""

    name: str
    line: SampleLine
    style: Style = "solid"


def _cpu(run: StoredRun) -> Iterator[_Draft]:
    metrics, inventory = ("cpu.busy_ratio",), run.manifest.get("hosts", {})
    for hosts in machines(inventory).values():
        name = machine_name(inventory, hosts)
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


def _disks(
    run: StoredRun,
    metrics: tuple[str, ...],
    words: str = "",
    style: Style = "solid",
) -> Iterator[_Draft]:
    """A line for each disk with a role, such as ``sql log + sql data (sdc)``, with hosts if names repeat."""
    result = disks_with_roles(run)
    names = {disk: _roles([(tier, role) for tier, role, _ in users]) for disk, users in result.items()}
    times = Counter(names.values())
    for disk, users in result.items():
        _, device = disk
        hosts = tuple(dict.fromkeys(host for *_, host in users))
        where = f" on {' + '.join(hosts)}" if times[names[disk]] > 1 else ""
        line = SampleLine(hosts, (device,), metrics)
        # A disk without a known role has the name of its device.
        shown = "" if names[disk].endswith(device) else f" ({device})"
        yield _Draft(f"{names[disk]}{shown}{where}{words}", line, style)


def _roles(users: Iterable[tuple[str, str]]) -> str:
    """Tiers and roles as text, such as ``sql log + data, search index``."""
    roles: dict[str, list[str]] = {}
    for tier, role in dict.fromkeys(users):
        roles.setdefault(tier, []).append(role)
    return ", ".join(f"{tier} {' + '.join(of_tier)}" for tier, of_tier in roles.items())


def _writes_and_reads(run: StoredRun) -> Iterator[_Draft]:
    """The lines of writes and reads, alternating, for each disk."""
    writes = _disks(run, ("disk.writes_per_s",), " writes")
    reads = _disks(run, ("disk.reads_per_s",), " reads", "dashed")
    for pair in zip(writes, reads, strict=True):
        yield from pair


def _pressure(run: StoredRun) -> Iterator[_Draft]:
    inventory = run.manifest.get("hosts", {})
    result = machines(inventory)
    for hosts in result.values():
        where = "" if len(result) == 1 else f" of {machine_name(inventory, hosts)}"
        for metric, words in (("cpu", "CPU"), ("io", "I/O"), ("memory", "memory")):
            yield _Draft(words + where, SampleLine(tuple(hosts), ("",), (f"pressure.{metric}_ratio",)))


def _generators(recorded: RecordedSamples) -> Iterator[_Draft]:
    for host in recorded.hosts("generator.cpu_ratio"):
        yield _Draft(host, SampleLine((host,), ("",), ("generator.cpu_ratio",)))
