"""Queries samples and operations with DuckDB, reduced to points of the time axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa

from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun

if TYPE_CHECKING:
    import duckdb


FEW = 5_000_000
"""The highest number of samples that one thread adds up. Several threads add in any order, so the last digits
would differ from one report to the next; for more samples one thread would take seconds."""


def over_operations(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection with a run's operations as the table ``operations``."""
    connection = _connection(run)
    connection.register("operations", run.operations)
    return connection


def over_samples(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection with a run's samples as the table ``samples``. Raises InputError."""
    connection = _connection(run)
    samples.show(run.samples, connection)
    return connection


def _connection(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection with views of its own, and one thread for few samples."""
    there = run.samples
    count = there.num_rows if isinstance(there, pa.Table) else there.count_rows()
    return _database(one_thread=count <= FEW).cursor()


@cache
def _database(*, one_thread: bool) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, kept because opening one takes forty times as long as a connection."""
    import duckdb  # noqa: PLC0415 -- a fifth of a second

    return duckdb.connect(config={"threads": 1} if one_thread else {})


_SERIES = 100
"""The number of series that one query groups by second; for eight hours that takes some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class SamplePoint:
    """One bucket of a series: middle (seconds since the load began), mean, smallest and largest value."""

    t_s: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SampleLine:
    """A requested line: the sum of ``metrics``, averaged over ``instances``.

    Attributes:
        hosts: all names of one machine, which have the same samples; the first host with samples is used.
    """

    hosts: tuple[str, ...]
    instances: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def parts(self) -> list[tuple[str, str]]:
        """(metric, instance) of each series of the line."""
        return list(product(self.metrics, self.instances))


_Asked = tuple[SampleLine, str]  # the line, and one of its hosts


class RecordedSamples:
    """The samples of a run, reduced to the buckets of the time axis."""

    def __init__(self, run: StoredRun, clock: TimeAxis) -> None:
        self._connection = over_samples(run)
        self._clock = clock

    def points(self, lines: Iterable[SampleLine]) -> dict[SampleLine, tuple[SamplePoint, ...]]:
        """The points of each line, possibly none.

        Values that are means of operations are weighted by their number of operations.

        A moment is the UTC second of the middle of a reading's interval, because the metrics of one reading
        differ by some milliseconds. A moment at which a summed metric is missing gives no point, because a
        partial sum is no measurement.

        All lines are requested together, because each query reads the file.
        """
        wanted = list(dict.fromkeys(lines))
        result: dict[_Asked, list[SamplePoint]] = {}
        for some in _together((line, host) for line in wanted for host in dict.fromkeys(line.hosts)):
            for number, bucket, *figures in self._rows(some):
                point = SamplePoint(middle(self._clock, int(bucket)), *figures)
                result.setdefault(some[number], []).append(point)
        return {
            line: tuple(next((result[line, host] for host in line.hosts if (line, host) in result), ()))
            for line in wanted
        }

    def _rows(self, asked: Sequence[_Asked]) -> list[tuple[int, float, float, float, float]]:
        """(index of the request, bucket, mean, smallest, largest), sorted by request and bucket."""
        wanted = [
            (number, part, host, metric, instance)
            for number, (line, host) in enumerate(asked)
            for part, (metric, instance) in enumerate(line.parts)
        ]
        names = ("line", "part", "host", "metric", "instance")
        columns = {name: list(each) for name, each in zip(names, zip(*wanted, strict=True), strict=True)}
        self._connection.register("wanted", pa.table(columns))
        sizes = {
            "line": list(range(len(asked))),
            "parts": [len(line.parts) for line, _ in asked],
            "instances": [len(line.instances) for line, _ in asked],
        }
        self._connection.register("sizes", pa.table(sizes))
        return self._connection.execute(
            """
            WITH each AS (
                SELECT line, floor(time_ns / 1e9 - interval_s / 2) AS moment, part,
                       avg(value) AS value, avg(interval_s) AS interval_s, sum(weight) AS weight
                FROM samples JOIN wanted USING (host, metric, instance)
                WHERE value IS NOT NULL AND list_contains($hosts, host)
                  AND list_contains($metrics, metric) AND list_contains($instances, instance)
                GROUP BY line, moment, part),
            moments AS (
                SELECT line, moment, sum(value) AS value, avg(interval_s) AS interval_s,
                       sum(weight) AS weight, count(*) AS parts
                FROM each GROUP BY line, moment)
            SELECT line, floor((moment + 0.5 - $start) / $bucket) AS bucket,
                   sum(value / instances * coalesce(weight, interval_s))
                       / sum(coalesce(weight, interval_s)),
                   min(value / instances), max(value / instances)
            FROM moments JOIN sizes USING (line, parts)
            WHERE coalesce(weight, interval_s) > 0
            GROUP BY line, bucket HAVING bucket >= 0 ORDER BY line, bucket
            """,
            {
                **{f"{name}s": sorted(set(columns[name])) for name in ("host", "metric", "instance")},
                "start": self._clock.start_s,
                "bucket": self._clock.bucket_s,
            },
        ).fetchall()

    def hosts(self, metric: str) -> list[str]:
        """Hosts with a value of ``metric``, sorted by name."""
        rows = self._connection.execute(
            "SELECT DISTINCT host FROM samples WHERE metric = $metric AND value IS NOT NULL ORDER BY host",
            {"metric": metric},
        ).fetchall()
        return [row[0] for row in rows]


def _together(asked: Iterable[_Asked]) -> Iterator[list[_Asked]]:
    """Groups of requests, each read by one query of about ``_SERIES`` series."""
    some: list[_Asked] = []
    series = 0
    for one in asked:
        some.append(one)
        series += len(one[0].parts)
        if series >= _SERIES:
            yield some
            some, series = [], 0
    if some:
        yield some


class WindowMeans:
    """Mean, smallest and largest value in a window, by host, metric and instance, of the given metrics."""

    def __init__(self, run: StoredRun, window: tuple[float, float] | None, metrics: Collection[str]) -> None:
        connection = over_samples(run)
        low, high = window or (0.0, 1e12)
        rows = connection.execute(
            """
            SELECT host, metric, instance, sum(value * interval_s) / sum(interval_s), min(value), max(value)
            FROM samples
            WHERE list_contains($metrics, metric) AND value IS NOT NULL AND interval_s > 0
              AND time_ns / 1e9 - interval_s / 2 >= $low AND time_ns / 1e9 - interval_s / 2 < $high
            GROUP BY host, metric, instance
            """,
            {"metrics": sorted(metrics), "low": low, "high": high},
        ).fetchall()
        self._rows = {(host, metric, instance): rest for host, metric, instance, *rest in rows}

    def of(self, host: str, metric: str, instance: str = "") -> tuple[float, float, float] | None:
        """(mean, smallest, largest) value; ``None`` if nothing was measured."""
        result = self._rows.get((host, metric, instance))
        return None if result is None else (result[0], result[1], result[2])

    def first(
        self, hosts: Sequence[str], metric: str, instance: str = ""
    ) -> tuple[float, float, float] | None:
        """(mean, smallest, largest) value from the first host of the machine that has the series."""
        answers = (self.of(host, metric, instance) for host in hosts)
        return next((found for found in answers if found is not None), None)

    def hosts(self, metric: str) -> list[str]:
        """Hosts with a value of ``metric``, sorted by name."""
        return sorted({host for host, name, _ in self._rows if name == metric})


def middle(clock: TimeAxis, bucket: int) -> float:
    """The middle of a bucket, seconds since the load began."""
    return (bucket + 0.5) * clock.bucket_s
