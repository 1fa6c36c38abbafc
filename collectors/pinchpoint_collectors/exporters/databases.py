"""Series of server exporters: mysqld_exporter, postgres_exporter, redis_exporter, cAdvisor. Pure.

One figure may be the sum of several series: of each database, of each state of a session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pinchpoint_collectors.exporters.means import NAME, Points, Series, increases
from pinchpoint_collectors.record import Sample


@dataclass(frozen=True, slots=True)
class ServerSeries:
    """The metric for a series of a database server.

    Attributes:
        metric: name of the metric.
        instance: instance of the metric.
        scale: factor from the rate of a counter to base units; 0: the series is not a counter.
        of: series of its limit; the metric is then series ÷ limit (a counter only if the limit is one). "":
            no limit.
        label: label and value of the series that count.
    """

    metric: str
    instance: str = ""
    scale: float = 0.0
    of: str = ""
    label: tuple[str, str] | None = field(default=None)


_MS = 0.001
_STATUS, _POSTGRES = "mysql_global_status", "pg_stat_database"
SERVERS: Mapping[str, Sequence[ServerSeries]] = {
    f"{_STATUS}_threads_running": [ServerSeries("db.sessions_active")],
    f"{_STATUS}_threads_connected": [
        ServerSeries("db.connections_ratio", of="mysql_global_variables_max_connections")
    ],
    f"{_STATUS}_connection_errors_total": [
        ServerSeries("db.connections_rejected_per_s", scale=1.0, label=("error", "max_connections"))
    ],
    f"{_STATUS}_connection_errors_max_connections": [
        ServerSeries("db.connections_rejected_per_s", scale=1.0)
    ],
    f"{_STATUS}_innodb_buffer_pool_wait_free": [ServerSeries("db.buffer_waits_per_s", scale=1.0)],
    f"{_STATUS}_questions": [ServerSeries("db.statements_per_s", scale=1.0)],
    f"{_STATUS}_innodb_row_lock_current_waits": [ServerSeries("db.lock_waiters")],
    # Milliseconds of waiting per second are waiting sessions, by Little's law.
    f"{_STATUS}_innodb_row_lock_time": [ServerSeries("db.sessions_waiting", "Lock:row", _MS)],
    f"{_STATUS}_innodb_row_lock_waits": [ServerSeries("db.lock_waits_per_s", scale=1.0)],
    f"{_STATUS}_innodb_data_pending_reads": [ServerSeries("db.sessions_waiting", "Data:pending reads")],
    f"{_STATUS}_innodb_data_pending_fsyncs": [ServerSeries("db.sessions_waiting", "Data:pending fsyncs")],
    f"{_POSTGRES}_numbackends": [ServerSeries("db.connections_ratio", of="pg_settings_max_connections")],
    f"{_POSTGRES}_xact_commit": [ServerSeries("db.commits_per_s", scale=1.0)],
    f"{_POSTGRES}_blk_read_time": [ServerSeries("db.sessions_waiting", "Data:read", _MS)],
    f"{_POSTGRES}_deadlocks": [ServerSeries("db.deadlocks_per_s", scale=1.0)],
    "pg_stat_activity_count": [
        ServerSeries("db.sessions_active", label=("state", "active")),
        ServerSeries("db.lock_waiters", label=("wait_event_type", "Lock")),
    ],
    "container_cpu_cfs_throttled_periods_total": [
        ServerSeries("cpu.throttled_ratio", scale=1.0, of="container_cpu_cfs_periods_total")
    ],
    "redis_cpu_user_main_thread_seconds_total": [ServerSeries("cpu.busy_ratio", "thread:redis main", 1.0)],
    "redis_cpu_sys_main_thread_seconds_total": [ServerSeries("cpu.busy_ratio", "thread:redis main", 1.0)],
    "redis_cpu_user_seconds_total": [ServerSeries("cpu.busy_ratio", "thread:redis", 1.0)],
    "redis_cpu_sys_seconds_total": [ServerSeries("cpu.busy_ratio", "thread:redis", 1.0)],
    "redis_commands_processed_total": [ServerSeries("db.commands_per_s", scale=1.0)],
    "redis_evicted_keys_total": [ServerSeries("db.evicted_keys_per_s", scale=1.0)],
    "redis_connected_clients": [ServerSeries("db.connections_ratio", of="redis_config_maxclients")],
    "redis_rejected_connections_total": [ServerSeries("db.connections_rejected_per_s", scale=1.0)],
}
"""Series -> its metric. Several series of one metric are added up."""
NAMES = frozenset({*SERVERS, *(each.of for its in SERVERS.values() for each in its if each.of)})


def samples(host: str, series: Sequence[Series]) -> Iterator[Sample]:
    """Yield one sample per value and scrape. The first scrape is left out, because it begins the counters.

    Args:
        host: host of the samples.
        series: series of one host. Names that are not in ``NAMES`` are left out.
    """
    figures: dict[tuple[str, str], list[tuple[ServerSeries, Points]]] = defaultdict(list)
    for labels, points in series:
        for means in SERVERS.get(labels.get(NAME, ""), ()):
            if means.label is None or labels.get(means.label[0]) == means.label[1]:
                figures[means.metric, means.instance].append((means, points))
    for (metric, instance), added in figures.items():
        total: dict[float, tuple[float, float | None]] = {}
        for means, points in added:
            limits = [points_ for labels, points_ in series if labels.get(NAME) == means.of]
            limit = _rates(limits) if means.scale else _sum(limits)
            for at, step_s, more in increases([points]):
                value = (
                    points[at] if not means.scale else None if more is None else more * means.scale / step_s
                )
                if means.of:
                    value = value / limit[at] if value is not None and limit.get(at) else None
                before = total.get(at, (step_s, 0.0))[1]
                total[at] = step_s, None if None in (value, before) else (value or 0.0) + (before or 0.0)
        for at, (step_s, value) in total.items():
            yield Sample(round(at * 1e9), step_s, host, metric, instance, value, None)


def figures(
    old: Mapping[str, float], new: Mapping[str, float], interval_s: float
) -> Iterator[tuple[str, str, float]]:
    """Yield metric, instance and value from two readings of unique series.

    Args:
        old: series -> value at the first reading.
        new: series -> value at the second reading.
        interval_s: seconds between the readings.
    """
    for name, value in new.items():
        for means in SERVERS.get(name, ()):
            more = value - old.get(name, value)
            if means.scale and more >= 0 and means.label is None:
                yield means.metric, means.instance, more * means.scale / interval_s
            elif not means.scale and not means.of:
                yield means.metric, means.instance, value


def _rates(series: Iterable[Points]) -> Points:
    return _sum(
        {at: more / step_s for at, step_s, more in increases([points]) if more is not None}
        for points in series
    )


def _sum(series: Iterable[Points]) -> Points:
    total: dict[float, float] = defaultdict(float)
    for points in series:
        for at, value in points.items():
            total[at] += value
    return total
