"""Builds the tables of servers' own statistics other than sessions and files: logs, queues, connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.data.inputs import ROLE_ORDER, Inputs

KINDS = ("valkey", "cassandra", "mongodb", "mariadb", "sqlserver", "azure", "aws")
"""Collectors that read such a server, or report what the server's cloud measured."""

_OF_A_CLOUD_DISK = {
    "iops_ratio": "of its IOPS limit used",
    "bytes_ratio": "of its bandwidth limit used",
    "iops_exceeded_ratio": "of the time more than its IOPS limit requested",
    "bytes_exceeded_ratio": "of the time more than its bandwidth limit requested",
    "burst_iops_used_ratio": "of its I/O credits used",
    "burst_bytes_used_ratio": "of its bandwidth credits used",
    "burst_used_ratio": "of its burst credits used",
    "latency_s": "an I/O, as the platform measured it",
    "read_latency_s": "a read, as the platform measured it",
    "write_latency_s": "a write, as the platform measured it",
    "reads_per_s": "reads, as the platform counted them",
    "writes_per_s": "writes, as the platform counted them",
    "outstanding": "I/Os outstanding, as the platform measured them",
}

FIGURES: Mapping[tuple[str, str], str] = {
    ("db.main_thread.busy_ratio", ""): "its one thread at work",
    ("db.aof.wait_ratio", ""): "of that, writing and flushing its log",
    ("db.aof.delayed_fsyncs_per_s", ""): "writes that waited for a flush in the background",
    ("db.spike_s", "aof-fsync-always"): "longest flush of its log",
    ("db.spike_s", "aof-write"): "longest write to its log",
    ("db.fork_latency_s", ""): "pause to start a snapshot or a log rewrite",
    ("db.pool.active", "MutationStage"): "writes in their stage: at work, or waiting for the commit log",
    ("db.pool.pending", "MutationStage"): "writes that wait for a thread",
    ("db.pool.pending", "ReadStage"): "reads that wait for a thread",
    ("db.pool.pending", "Native-Transport-Requests"): "requests that wait to be accepted",
    ("db.pool.pending", "MemtableFlushWriter"): "memtables that wait to be written out",
    ("db.pool.pending", "CompactionExecutor"): "compactions that wait to start",
    ("db.compactions_running", ""): "compactions in flight",
    ("db.compaction_left_bytes", ""): "data left to compact",
    ("db.journal.sync_s_per_s", ""): "share of the time in which the journal was flushed",
    ("db.journal.sync_latency_s", ""): "a flush of the journal",
    ("db.cache_wait_s_per_s", ""): "clients that wait for room in the cache",
    ("db.cache_dirty_ratio", ""): "of the cache not yet written",
    ("db.tickets_queued", "read"): "reads that wait for a ticket",
    ("db.tickets_queued", "write"): "writes that wait for a ticket",
    ("db.request_latency_s", "write"): "a write, as the server sees it",
    ("db.write_latency_s", "log"): "a write of its log",
    ("db.fsync_latency_s", "log"): "a flush of its log",
    ("db.log_buffer_full_per_s", ""): "writes that waited for room in the log's buffer",
    ("db.checkpoint_age_ratio", ""): "of its log, what a restart would go through",
    ("db.buffer_waits_per_s", ""): "sessions that waited for a free page",
    ("db.lock_wait_latency_s", ""): "a wait for a row",
    ("db.history_length", ""): "old versions that cannot be cleared away yet",
    ("db.governed_s_per_s", "data"): "I/O of data held back by the resource governor, of the time",
    ("db.governed_s_per_s", "log"): "I/O of the log held back by it",
    ("db.signal_wait_ratio", ""): "of its waits, waiting for a CPU",
    ("db.tasks_runnable", ""): "tasks that want a CPU",
    ("db.cpu_ratio", ""): "of its machine's CPU used by it",
    ("db.page_life_s", ""): "a page's life in the buffer",
    ("db.memory_grants_pending", ""): "statements that wait for memory",
    ("db.memory_ratio", ""): "of the memory it aims at in use",
    ("db.connections", ""): "connections",
    ("db.connections_ratio", ""): "of those it takes",
    ("db.connections_rejected_per_s", ""): "connections refused",
    ("cloud.vm_uncached_iops_ratio", ""): "of the machine's IOPS for uncached disks used",
    ("cloud.vm_uncached_bytes_ratio", ""): "of the machine's bandwidth for uncached disks used",
    ("cloud.vm_cached_iops_ratio", ""): "of the machine's IOPS for cached disks used",
    ("cloud.vm_cached_bytes_ratio", ""): "of the machine's bandwidth for cached disks used",
    ("cloud.vm_iops_exceeded_ratio", ""): "of the time more than the machine's IOPS requested",
    ("cloud.vm_bytes_exceeded_ratio", ""): "of the time more than the machine's bandwidth requested",
    ("cloud.vm_burst_iops_used_ratio", ""): "of the machine's I/O credits used",
    ("cloud.vm_burst_bytes_used_ratio", ""): "of the machine's bandwidth credits used",
    **{
        (f"cloud.disk_{metric}", role): f"{role} disk: {of}"
        for role in (*ROLE_ORDER, "os")
        for metric, of in _OF_A_CLOUD_DISK.items()
    },
}
"""(metric, instance) -> meaning in words, in the order of the table."""


def store_table(inputs: Inputs) -> tuple[dict[str, Any], ...]:
    """One row per store and reported figure: ``{tier, host, of, metric, instance, mean, max}``, base units.

    The figures are over the measure phase; the mean of a time is weighted by operations. A figure that the
    store does not have has no row. A figure that should have been read and was not is None.
    """
    tiers = {host.name: host.tier for host in inputs.hosts}
    hosts = dict.fromkeys(host for kind, host in inputs.views if kind in KINDS)
    return tuple(row for host in hosts for row in _rows(inputs, tiers.get(host, ""), host))


def _rows(inputs: Inputs, tier: str, host: str) -> Iterator[dict[str, Any]]:
    for (metric, instance), of in FIGURES.items():
        series = inputs.samples.series(host, metric, instance)
        if series is not None:
            about = {"tier": tier, "host": host, "of": of, "metric": metric, "instance": instance}
            yield {**about, "mean": series.mean(), "max": series.maximum()}
