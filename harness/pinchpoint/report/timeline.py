"""The run over time: load, latency and every tier's key metrics as small series on one time axis.

Series are brought down to at most a few hundred points before anything is drawn, each with the mean, the
smallest and the largest value of its bucket, so that a run of a day stays small and no spike gets lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import duckdb

from pinchpoint.report import units
from pinchpoint.report.clock import Clock
from pinchpoint.report.latency import bucket_percentiles, in_plan_order
from pinchpoint.store.read import StoredRun

Axis = Literal["rate", "latency", "ratio"]

SHOW: Mapping[Axis, Callable[[float], str]] = {
    "rate": units.per_second,
    "latency": units.seconds,
    "ratio": units.percent,
}


@dataclass(frozen=True, slots=True)
class Point:
    """One bucket of a series: seconds since the start (its middle), mean, smallest, largest; base units."""

    t_s: float
    mean: float
    low: float
    high: float


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
    recorded = _Samples(run, clock)
    return (
        Panel(
            "throughput",
            "Throughput (operations done)",
            "rate",
            _throughput(run, clock),
            "No operation was recorded.",
        ),
        Panel(
            "latency",
            "Latency of operations that succeeded",
            "latency",
            _latency(run, clock),
            "No operation succeeded, so no latency was measured.",
            logarithmic=True,
        ),
        Panel("cpu", "CPU busy", "ratio", _cpu(run, recorded), _unseen("cpu.busy_ratio")),
        Panel(
            "disk_write_latency",
            "Disk write latency",
            "latency",
            _disks(run, recorded, ("disk.write_latency_s",)),
            _unseen("disk.write_latency_s of a disk with a role"),
        ),
        Panel(
            "disk_iops",
            "Disk I/O operations (reads and writes, as the kernel counts them)",
            "rate",
            _disks(run, recorded, ("disk.reads_per_s", "disk.writes_per_s")),
            _unseen("disk.reads_per_s and disk.writes_per_s of a disk with a role"),
        ),
        Panel(
            "pressure",
            "Pressure (share of time in which something had to wait)",
            "ratio",
            _pressure(run, recorded),
            _unseen("pressure.*"),
        ),
        Panel(
            "generator",
            "Load generators: CPU of one core",
            "ratio",
            _generators(recorded),
            _unseen("generator.cpu_ratio"),
        ),
    )


def machines(run: StoredRun) -> dict[str, list[str]]:
    """Machine id -> its farm hosts, in the order of the manifest. A host without an id is its own machine."""
    found: dict[str, list[str]] = {}
    for host, facts in run.manifest.get("hosts", {}).items():
        found.setdefault(str(facts.get("machine_id") or host), []).append(host)
    return found


def machine_name(run: StoredRun, hosts: Sequence[str]) -> str:
    """What a machine is called: its own host name, or the farm host's where it is the only one there."""
    facts = run.manifest["hosts"][hosts[0]]
    return hosts[0] if len(hosts) == 1 else str(facts.get("hostname") or "shared machine")


def _unseen(metric: str) -> str:
    return f"Not measured: no collector delivered {metric}."


class _Samples:
    """The samples of a run, asked for by metric and brought down to the clock's buckets."""

    def __init__(self, run: StoredRun, clock: Clock) -> None:
        self._connection = duckdb.connect()
        self._connection.register("samples", run.samples)
        self._clock = clock

    def points(
        self, hosts: Sequence[str], instances: Sequence[str], metrics: Sequence[str]
    ) -> tuple[Point, ...]:
        """The sum of ``metrics``, averaged over ``instances``; means behind a weight are weighted by it.

        Of several hosts on one machine the first that delivered anything answers: they all carry the same.

        A moment is the UTC second the middle of a reading's interval falls into: metrics of one reading are
        stamped some milliseconds apart. One at which a summed metric is missing gives no point: half a sum is
        no measurement.
        """
        answers = (self._of_host(host, instances, metrics) for host in hosts)
        return next((points for points in answers if points), ())

    def _of_host(self, host: str, instances: Sequence[str], metrics: Sequence[str]) -> tuple[Point, ...]:
        rows = self._connection.execute(
            """
            WITH each AS (
                SELECT floor(time_ns / 1e9 - interval_s / 2) AS moment, metric, instance,
                       avg(value) AS value, avg(interval_s) AS interval_s, sum(weight) AS weight
                FROM samples
                WHERE host = $host AND list_contains($instances, instance)
                  AND list_contains($metrics, metric) AND value IS NOT NULL
                GROUP BY ALL),
            moments AS (
                SELECT moment, sum(value) / len($instances) AS value, avg(interval_s) AS interval_s,
                       sum(weight) AS weight
                FROM each GROUP BY moment HAVING count(*) = len($metrics) * len($instances))
            SELECT floor((moment + 0.5 - $start) / $bucket) AS bucket,
                   sum(value * coalesce(weight, interval_s)) / sum(coalesce(weight, interval_s)),
                   min(value), max(value)
            FROM moments WHERE coalesce(weight, interval_s) > 0
            GROUP BY bucket HAVING bucket >= 0 ORDER BY bucket
            """,
            {
                "host": host,
                "instances": list(instances),
                "metrics": list(metrics),
                "start": self._clock.start_s,
                "bucket": self._clock.bucket_s,
            },
        ).fetchall()
        return tuple(Point(middle(self._clock, int(b)), mean, low, high) for b, mean, low, high in rows)

    def hosts(self, metric: str) -> list[str]:
        """Hosts that delivered a value of ``metric``, by name."""
        rows = self._connection.execute(
            "SELECT DISTINCT host FROM samples WHERE metric = $metric AND value IS NOT NULL ORDER BY host",
            {"metric": metric},
        ).fetchall()
        return [row[0] for row in rows]


def middle(clock: Clock, bucket: int) -> float:
    """Seconds since the start of the middle of a bucket."""
    return (bucket + 0.5) * clock.bucket_s


def _throughput(run: StoredRun, clock: Clock) -> tuple[Series, ...]:
    """Operations per second by scenario. Where others were recorded and this one was not, it did none: 0."""
    if not run.operations.num_rows:
        return ()
    connection = duckdb.connect()
    connection.register("operations", run.operations)
    rows = connection.execute(
        """
        WITH seconds AS (
            SELECT scenario, time_s,
                   sum(count) FILTER (outcome = 'ok' AND NOT contains(operation, '/')) AS done,
                   max(interval_s) AS interval_s
            FROM operations GROUP BY scenario, time_s),
        times AS (SELECT time_s, max(interval_s) AS interval_s FROM seconds GROUP BY time_s),
        grid AS (SELECT s.scenario, t.time_s, t.interval_s FROM times t,
                 (SELECT DISTINCT scenario FROM operations) s)
        SELECT g.scenario, floor((g.time_s - $start) / $bucket) AS bucket,
               sum(coalesce(done, 0)) / sum(g.interval_s), min(coalesce(done, 0) / g.interval_s),
               max(coalesce(done, 0) / g.interval_s)
        FROM grid g LEFT JOIN seconds USING (scenario, time_s)
        GROUP BY ALL HAVING bucket >= 0 ORDER BY g.scenario, bucket
        """,
        {"start": int(clock.start_s), "bucket": clock.bucket_s},
    ).fetchall()
    lines: dict[str, list[Point]] = {}
    for scenario, bucket, mean, low, high in rows:
        lines.setdefault(scenario, []).append(Point(middle(clock, int(bucket)), mean, low, high))
    return tuple(Series(name, tuple(lines[name])) for name in in_plan_order(run, lines))


def _latency(run: StoredRun, clock: Clock) -> tuple[Series, ...]:
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


def _cpu(run: StoredRun, recorded: _Samples) -> tuple[Series, ...]:
    found = []
    for hosts in machines(run).values():
        name = machine_name(run, hosts)
        label = f"machine {name}" if len(hosts) > 1 else name
        found.append(Series(label, recorded.points(hosts, ("",), ("cpu.busy_ratio",)), "dashed"))
        cores = farm_cores(run, hosts)
        if cores:
            points = recorded.points(hosts, cores, ("cpu.busy_ratio",))
            found.append(
                Series(f"core{'s'[: len(cores) > 1]} {', '.join(cores)} of {name}", points, "dashed")
            )
    for tier, host in tiers(run):
        points = recorded.points((host,), (f"tier:{tier}",), ("cpu.busy_ratio",))
        found.append(Series(tier if tier in host else f"{tier} on {host}", points))
    return _with_points(found)


def farm_cores(run: StoredRun, hosts: Sequence[str]) -> list[str]:
    """The cores the farm's tiers may use, where these are only some of the machine's; else none.

    The rest belongs to others (the load generators): the whole machine's mean then hides a full core.
    """
    facts = [run.manifest["hosts"][host] for host in hosts]
    used = {core for each in facts for core in each.get("tier_cores") or ()}
    usable = {core for each in facts for core in each.get("usable_cores") or ()}
    return [str(core) for core in sorted(used)] if used and used < usable else []


def tiers(run: StoredRun) -> list[tuple[str, str]]:
    """(tier, host) in the farm's order."""
    tiers: Mapping[str, Any] = run.manifest.get("farm", {}).get("tiers", {})
    listed = [(tier, host) for tier, facts in tiers.items() for host in facts.get("hosts", {})]
    inventory = run.manifest.get("hosts", {}).items()
    return listed + [
        (str(facts["tier"]), host)
        for host, facts in inventory
        if facts.get("tier") and (facts["tier"], host) not in listed
    ]


def disks_with_roles(run: StoredRun) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """(machine, device) -> every (tier, role, host) that lies on it: a device is one however many use it."""
    places: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    inventory = run.manifest.get("hosts", {})
    for tier, host in tiers(run):
        facts = inventory.get(host, {})
        for role, disk in facts.get("roles", {}).items():
            if disk.get("device"):
                machine = str(facts.get("machine_id") or host)
                places.setdefault((machine, disk["device"]), []).append((tier, role, host))
    return places


def _disks(run: StoredRun, recorded: _Samples, metrics: Sequence[str]) -> tuple[Series, ...]:
    found = []
    for (_, device), users in disks_with_roles(run).items():
        names = " + ".join(dict.fromkeys(f"{tier} {role}" for tier, role, _ in users))
        points = recorded.points([host for *_, host in users], (device,), metrics)
        found.append(Series(f"{names} ({device})", points))
    return _with_points(found)


def _pressure(run: StoredRun, recorded: _Samples) -> tuple[Series, ...]:
    found = []
    for hosts in machines(run).values():
        where = "" if len(machines(run)) == 1 else f" of {machine_name(run, hosts)}"
        for metric, words in (("cpu", "CPU"), ("io", "I/O"), ("memory", "memory")):
            points = recorded.points(hosts, ("",), (f"pressure.{metric}_ratio",))
            found.append(Series(words + where, points))
    return _with_points(found)


def _generators(recorded: _Samples) -> tuple[Series, ...]:
    hosts = recorded.hosts("generator.cpu_ratio")
    lines = (Series(host, recorded.points((host,), ("",), ("generator.cpu_ratio",))) for host in hosts)
    return _with_points(lines)


def _with_points(lines: Iterable[Series]) -> tuple[Series, ...]:
    return tuple(line for line in lines if line.points)
