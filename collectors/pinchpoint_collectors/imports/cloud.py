"""Reads metrics of Azure Monitor and CloudWatch, as printed by their command line tools (JSON).

Both tools stamp a value with the start of its interval, and the interval is the usual distance of two values.
For a disk, Azure reports the share of its limits. CloudWatch's answers contain neither the machine nor the
statistic, so counts (``VolumeReadOps``) must be queried as sums.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median_low
from typing import Any, NamedTuple

from pinchpoint_collectors.common import legible
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.record import Sample

_AZURE_BEGINS = re.compile(r"[\ufeff\s]*\{.*\"(?:timespan|value)\"\s*:.*", re.DOTALL)
_AWS_BEGINS = re.compile(r"[\ufeff\s]*\{\s*\"(?:MetricDataResults|Label|Datapoints|Messages)\"\s*:")
_RESOURCE = re.compile(r"/([^/]+)/providers/microsoft\.insights/", re.IGNORECASE)


class CloudMetric(NamedTuple):
    """The metric for a metric of a cloud.

    Attributes:
        metric: name of the metric.
        unit: factor from the cloud's unit to the base unit; ``offset`` is added.
        instance: instance, if the cloud's metric has none.
        is_count: whether the value is a count: its rate is the interval's sum ÷ its length.
    """

    metric: str
    unit: float = 1.0
    instance: str = ""
    is_count: bool = False
    offset: float = 0.0


class CloudSeries(NamedTuple):
    """One metric of one instance.

    Attributes:
        name: name of the metric in the cloud.
        instance: name of the disk in the cloud; "" if missing.
        host: name of the machine in the cloud; "" if missing.
        readings: begin of each interval -> values by statistic.
    """

    name: str
    instance: str
    host: str
    readings: Sequence[tuple[str, Mapping[str, Any]]]


_OF_DISKS = {
    "Disk IOPS Consumed Percentage": ("disk.used_iops_ratio", 0.01),
    "Disk Bandwidth Consumed Percentage": ("disk.used_bytes_ratio", 0.01),
    "Disk Used Burst IO Credits Percentage": ("disk.used_burst_ratio", 0.01),
    "Disk Used Burst BPS Credits Percentage": ("disk.used_burst_ratio", 0.01),
    "Disk Latency": ("disk.transfer_latency_s", 0.001),
    "Disk Queue Depth": ("disk.outstanding", 1.0),
    "Disk Read Operations/Sec": ("disk.reads_per_s", 1.0),
    "Disk Write Operations/Sec": ("disk.writes_per_s", 1.0),
    "Disk Read Bytes/sec": ("disk.read_bytes_per_s", 1.0),
    "Disk Write Bytes/sec": ("disk.write_bytes_per_s", 1.0),
}
AZURE: Mapping[str, CloudMetric] = {
    "Percentage CPU": CloudMetric("cpu.busy_ratio", 0.01),
    "Available Memory Bytes": CloudMetric("mem.available_bytes"),
    "Available Memory Percentage": CloudMetric("mem.available_ratio", 0.01),
    "Network In Total": CloudMetric("net.received_bytes_per_s", 1.0, "all", is_count=True),
    "Network Out Total": CloudMetric("net.sent_bytes_per_s", 1.0, "all", is_count=True),
    **{
        f"{of} {name}": CloudMetric(metric, unit, f"{of} disk")
        for of in ("OS", "Data", "Temp")
        for name, (metric, unit) in _OF_DISKS.items()
    },
    **{
        f"VM {of} {what} Consumed Percentage": CloudMetric(metric, 0.01, f"all disks, {of.lower()}")
        for of in ("Uncached", "Cached")
        for what, metric in (("IOPS", "disk.used_iops_ratio"), ("Bandwidth", "disk.used_bytes_ratio"))
    },
    "cpu_percent": CloudMetric("cpu.busy_ratio", 0.01),
    "log_write_percent": CloudMetric("disk.used_bytes_ratio", 0.01, "log"),
    "physical_data_read_percent": CloudMetric("disk.used_iops_ratio", 0.01, "data"),
    "memory_percent": CloudMetric("mem.available_ratio", -0.01, offset=1.0),
    "disk_iops_consumed_percentage": CloudMetric("disk.used_iops_ratio", 0.01, "storage"),
    "disk_bandwidth_consumed_percentage": CloudMetric("disk.used_bytes_ratio", 0.01, "storage"),
    "io_consumption_percent": CloudMetric("disk.used_iops_ratio", 0.01, "storage"),
    "disk_queue_depth": CloudMetric("disk.outstanding", 1.0, "storage"),
    "CpuPercentage": CloudMetric("cpu.busy_ratio", 0.01),
    "MemoryPercentage": CloudMetric("mem.available_ratio", -0.01, offset=1.0),
    "HttpQueueLength": CloudMetric("web.requests_queued"),
    "DiskQueueLength": CloudMetric("disk.outstanding", 1.0, "storage"),
    "dtu_consumption_percent": CloudMetric("db.units_ratio", 0.01, "DTU"),
    "NormalizedRUConsumption": CloudMetric("db.units_ratio", 0.01, "RU"),
    "workers_percent": CloudMetric("db.workers_ratio", 0.01),
    "sessions_percent": CloudMetric("db.connections_ratio", 0.01),
}
"""Metrics of Azure virtual machines, databases (SQL, MySQL, PostgreSQL, Cosmos DB), and plans of web apps."""
AWS: Mapping[str, CloudMetric] = {
    "CPUUtilization": CloudMetric("cpu.busy_ratio", 0.01),
    "EngineCPUUtilization": CloudMetric("cpu.busy_ratio", 0.01, "thread:engine"),
    "CPUCreditBalance": CloudMetric("cpu.used_burst_ratio", -1.0, offset=1.0),
    "FreeableMemory": CloudMetric("mem.available_bytes"),
    "DatabaseConnections": CloudMetric("db.connections"),
    "DBLoad": CloudMetric("db.sessions_active"),
    "DBLoadNonCPU": CloudMetric("db.sessions_waiting", 1.0, "Any:other than the CPU"),
    "Evictions": CloudMetric("db.evicted_keys_per_s", is_count=True),
    "DatabaseMemoryUsagePercentage": CloudMetric("mem.available_ratio", -0.01, offset=1.0),
    **{
        f"{what}_allowance_exceeded": CloudMetric("net.drops_per_s", 1.0, what, is_count=True)
        for what in ("bw_in", "bw_out", "pps", "conntrack", "linklocal")
    },
    "BlockedTransactions": CloudMetric("db.sessions_blocked"),
    "CommitLatency": CloudMetric("db.commit_latency_s", 0.001),
    "CommitThroughput": CloudMetric("db.commits_per_s"),
    "DiskQueueDepth": CloudMetric("disk.outstanding", 1.0, "storage"),
    "ReadLatency": CloudMetric("disk.read_latency_s", 1.0, "storage"),
    "WriteLatency": CloudMetric("disk.write_latency_s", 1.0, "storage"),
    "ReadIOPS": CloudMetric("disk.reads_per_s", 1.0, "storage"),
    "WriteIOPS": CloudMetric("disk.writes_per_s", 1.0, "storage"),
    "ReadThroughput": CloudMetric("disk.read_bytes_per_s", 1.0, "storage"),
    "WriteThroughput": CloudMetric("disk.write_bytes_per_s", 1.0, "storage"),
    "NetworkReceiveThroughput": CloudMetric("net.received_bytes_per_s", 1.0, "all"),
    "NetworkTransmitThroughput": CloudMetric("net.sent_bytes_per_s", 1.0, "all"),
    "NetworkIn": CloudMetric("net.received_bytes_per_s", 1.0, "all", is_count=True),
    "NetworkOut": CloudMetric("net.sent_bytes_per_s", 1.0, "all", is_count=True),
    "VolumeQueueLength": CloudMetric("disk.outstanding", 1.0, "volume"),
    "VolumeAvgReadLatency": CloudMetric("disk.read_latency_s", 0.001, "volume"),
    "VolumeAvgWriteLatency": CloudMetric("disk.write_latency_s", 0.001, "volume"),
    "VolumeReadOps": CloudMetric("disk.reads_per_s", 1.0, "volume", is_count=True),
    "VolumeWriteOps": CloudMetric("disk.writes_per_s", 1.0, "volume", is_count=True),
    "VolumeIOPSExceededCheck": CloudMetric("disk.used_iops_ratio", 1.0, "volume"),
    "VolumeThroughputExceededCheck": CloudMetric("disk.used_bytes_ratio", 1.0, "volume"),
    "BurstBalance": CloudMetric("disk.used_burst_ratio", -0.01, "volume", offset=1.0),
    "EBSIOBalance%": CloudMetric("disk.used_burst_ratio", -0.01, "all volumes", offset=1.0),
    "InstanceEBSIOPSExceededCheck": CloudMetric("disk.used_iops_ratio", 1.0, "all volumes"),
    "InstanceEBSThroughputExceededCheck": CloudMetric("disk.used_bytes_ratio", 1.0, "all volumes"),
}
"""Metrics of EC2 instances (with those of their network adapter), EBS volumes, RDS and ElastiCache."""
_MEANS = ("average", "value", "maximum", "total", "sum")
_SUMS = ("total", "sum", "value")
"""Statistics of a reading in the order of preference."""


class AzureMonitorJson:
    """Import format ``azure-monitor``."""

    name = "azure-monitor"
    says = "Azure Monitor's metrics of a machine or a SQL database (az monitor metrics list -o json)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the namespace of its metrics."""
        return _AZURE_BEGINS.match(head) is not None and "Microsoft.Insights/metrics" in head

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:  # noqa: ARG002 -- its times are UTC
        """Yield one sample per value (see ``Format.read``)."""
        yield from _samples(_of_azure(legible.mapping(legible.document(lines), "its top")), AZURE, facts)


class CloudWatchJson:
    """Import format ``cloudwatch``."""

    name = "cloudwatch"
    says = "CloudWatch's metrics (aws cloudwatch get-metric-data or get-metric-statistics), JSON"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the first names of its answers."""
        return _AWS_BEGINS.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:  # noqa: ARG002 -- its times are UTC
        """Yield one sample per value (see ``Format.read``)."""
        yield from _samples(_of_aws(legible.mapping(legible.document(lines), "its top")), AWS, facts)


def _of_azure(content: Mapping[str, Any]) -> Iterator[CloudSeries]:
    for metric in legible.mappings(content.get("value"), "value"):
        resource = _RESOURCE.search(str(metric.get("id", "")))
        name = str(legible.mapping(metric.get("name"), "name").get("value", ""))
        for series in legible.mappings(metric.get("timeseries"), "timeseries"):
            of = [
                str(each.get("value"))
                for each in legible.mappings(series.get("metadatavalues"), "metadatavalues")
            ]
            data = legible.mappings(series.get("data"), "data")
            readings = [(str(each.get("timeStamp")), each) for each in data]
            yield CloudSeries(name, f"LUN {of[0]}" if of else "", resource[1] if resource else "", readings)


def _of_aws(content: Mapping[str, Any]) -> Iterator[CloudSeries]:
    for result in legible.mappings(content.get("MetricDataResults"), "MetricDataResults"):
        times, values = (legible.listed(result.get(name), name) for name in ("Timestamps", "Values"))
        if len(times) != len(values):
            raise ForeignFileError(
                f"found {len(times)} Timestamps and {len(values)} Values; {legible.AS_IT_CAME}"
            )
        instance, _, name = str(result.get("Label", "")).rpartition(" ")
        readings = [(str(at), {"value": value}) for at, value in zip(times, values, strict=True)]
        yield CloudSeries(name, instance, "", readings)
    if data := legible.mappings(content.get("Datapoints"), "Datapoints"):
        of_each = [{name.lower(): value for name, value in each.items()} for each in data]
        readings = [(str(each.get("timestamp")), each) for each in of_each]
        yield CloudSeries(str(content.get("Label", "")), "", "", readings)


def _samples(
    series: Iterable[CloudSeries], table: Mapping[str, CloudMetric], facts: FileFacts
) -> Iterator[Sample]:
    unused: dict[str, None] = {}
    is_used = False
    for one in series:
        means = table.get(one.name)
        if means is None:
            unused[one.name or "one without a name"] = None
            continue
        is_used = True
        facts.facts(one.host).update(data_io="kernel")
        instance = (one.instance or means.instance) if means.instance else ""
        values = {_time_s(time): _value(reading, means) for time, reading in one.readings}
        times = sorted(values)
        if len(times) < 2:
            facts.note(f"{one.name} was ignored: it has {len(times)} values, its interval is not known")
            continue
        interval_s = median_low([later - at for at, later in itertools.pairwise(times)])
        for at_s in times:
            value = values[at_s]
            if value is not None:
                value = value * means.unit / (interval_s if means.is_count else 1.0) + means.offset
                # the remaining amount is larger than the whole
                value = max(value, 0.0) if means.offset else value
            at_ns = round((at_s + interval_s) * 1e9)
            yield Sample(at_ns, interval_s, one.host, means.metric, instance, value, None)
    if unused:
        names = ", ".join(list(unused)[:5])
        if not is_used:
            raise ForeignFileError(f"Pinchpoint uses none of its metrics ({names}); used: {', '.join(table)}")
        facts.note(f"ignored metrics that Pinchpoint does not use: {names}")


def _value(reading: Mapping[str, Any], means: CloudMetric) -> float | None:
    """Return the value of an interval; None if there is none."""
    for name in _SUMS if means.is_count else _MEANS:
        value = reading.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _time_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ForeignFileError(
            f"found the time {text[:40]!r}; allowed: ISO 8601, as the tool prints it"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
