"""Queries samples and operations by DuckDB, reduced to points of the time axis."""

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
"""This many samples are added up by one thread: several come to an end in any order, so that sums of one run
would differ in their last digits from one report to the next. Of more that would take seconds."""


def over_operations(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection in which they are the table ``operations``."""
    connection = _connection(run)
    connection.register("operations", run.operations)
    return connection


def over_samples(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection in which they are the table ``samples``. Raises InputError."""
    connection = _connection(run)
    samples.show(run.samples, connection)
    return connection


def _connection(run: StoredRun) -> duckdb.DuckDBPyConnection:
    """A connection of its own, whose views no other sees."""
    there = run.samples
    count = there.num_rows if isinstance(there, pa.Table) else there.count_rows()
    return _database(one_thread=count <= FEW).cursor()


@cache
def _database(*, one_thread: bool) -> duckdb.DuckDBPyConnection:
    """An empty one in memory: to open it takes forty times as long as a connection to it."""
    import duckdb  # noqa: PLC0415 -- a fifth of a second

    return duckdb.connect(config={"threads": 1} if one_thread else {})


_SERIES = 100
"""This many are grouped by second in one query: of eight hours that takes some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class SamplePoint:
    """One bucket of a series: seconds since the load began (its middle), mean, smallest, largest."""

    t_s: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SampleLine:
    """A request for a line: the sum of ``metrics``, averaged over ``instances``.

    Attributes:
        hosts: all names of one machine, which have the same samples: the first with any sample is used.
    """

    hosts: tuple[str, ...]
    instances: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def parts(self) -> list[tuple[str, str]]:
        """(metric, instance) of all that is added."""
        return list(product(self.metrics, self.instances))


_Asked = tuple[SampleLine, str]  # of one of its hosts


class RecordedSamples:
    """The samples of a run, brought down to the clock's buckets."""

    def __init__(self, run: StoredRun, clock: TimeAxis) -> None:
        self._connection = over_samples(run)
        self._clock = clock

    def points(self, lines: Iterable[SampleLine]) -> dict[SampleLine, tuple[SamplePoint, ...]]:
        """The points of each line, which may be none; means behind a weight are weighted by it.

        A moment is the UTC second the middle of a reading's interval falls into: metrics of one reading are
        stamped some milliseconds apart. One at which a summed metric is missing gives no point: half a sum is
        no measurement.

        All lines are asked for at once: each query reads the file.
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
        """(number of what was requested, bucket, mean, smallest, largest), in order of both."""
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
        """Hosts that delivered a value of ``metric``, by name."""
        rows = self._connection.execute(
            "SELECT DISTINCT host FROM samples WHERE metric = $metric AND value IS NOT NULL ORDER BY host",
            {"metric": metric},
        ).fetchall()
        return [row[0] for row in rows]


def _together(asked: Iterable[_Asked]) -> Iterator[list[_Asked]]:
    """Series that one query reads."""
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
    """Mean and smallest value by host, metric and instance over a window, of the metrics that are named."""

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
        """Mean, smallest and largest value, or ``None`` when nothing was measured."""
        result = self._rows.get((host, metric, instance))
        return None if result is None else (result[0], result[1], result[2])

    def first(
        self, hosts: Sequence[str], metric: str, instance: str = ""
    ) -> tuple[float, float, float] | None:
        """The figures of the first of several hosts on one machine that has the series."""
        answers = (self.of(host, metric, instance) for host in hosts)
        return next((found for found in answers if found is not None), None)

    def hosts(self, metric: str) -> list[str]:
        """Hosts that delivered a value of ``metric``, by name."""
        return sorted({host for host, name, _ in self._rows if name == metric})


def middle(clock: TimeAxis, bucket: int) -> float:
    """Seconds since the start of the middle of a bucket."""
    return (bucket + 0.5) * clock.bucket_s
