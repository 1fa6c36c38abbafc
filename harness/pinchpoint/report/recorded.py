"""The samples of a run, asked for by host, metric and instance: over time, or as one figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from pinchpoint.report.clock import Clock
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun


@dataclass(frozen=True, slots=True)
class Point:
    """One bucket of a series: seconds since the load began (its middle), mean, smallest, largest."""

    t_s: float
    mean: float
    low: float
    high: float


class Recorded:
    """The samples of a run, asked for by metric and brought down to the clock's buckets."""

    def __init__(self, run: StoredRun, clock: Clock) -> None:
        self._connection = duckdb.connect()
        samples.show(run.samples, self._connection)
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
                GROUP BY moment, metric, instance),
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


class Means:
    """Mean and smallest value by host, metric and instance over a window."""

    def __init__(self, run: StoredRun, window: tuple[float, float] | None) -> None:
        connection = duckdb.connect()
        samples.show(run.samples, connection)
        low, high = window or (0.0, 1e12)
        rows = connection.execute(
            """
            SELECT host, metric, instance, sum(value * interval_s) / sum(interval_s), min(value), max(value)
            FROM samples
            WHERE value IS NOT NULL AND interval_s > 0
              AND time_ns / 1e9 - interval_s / 2 >= $low AND time_ns / 1e9 - interval_s / 2 < $high
            GROUP BY host, metric, instance
            """,
            {"low": low, "high": high},
        ).fetchall()
        self._rows = {(host, metric, instance): rest for host, metric, instance, *rest in rows}

    def of(self, host: str, metric: str, instance: str = "") -> tuple[float, float, float] | None:
        """Mean, smallest and largest value, or ``None`` when nothing was measured."""
        found = self._rows.get((host, metric, instance))
        return None if found is None else (found[0], found[1], found[2])

    def first(
        self, hosts: Sequence[str], metric: str, instance: str = ""
    ) -> tuple[float, float, float] | None:
        """Of the first of several hosts on one machine that delivered it."""
        answers = (self.of(host, metric, instance) for host in hosts)
        return next((found for found in answers if found is not None), None)

    def hosts(self, metric: str) -> list[str]:
        """Hosts that delivered a value of ``metric``, by name."""
        return sorted({host for host, name, _ in self._rows if name == metric})


def middle(clock: Clock, bucket: int) -> float:
    """Seconds since the start of the middle of a bucket."""
    return (bucket + 0.5) * clock.bucket_s
