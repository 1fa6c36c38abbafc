"""Lists the metrics that stop rules and objectives in plan.yaml may name."""

OPERATION_METRICS = ("error_ratio", "response_p95_s")
SAMPLE_METRICS = (
    "cpu.busy_ratio",
    "cpu.run_queue",
    "cpu.steal_ratio",
    "cpu.wait_ratio",
    "cpu.waiting_threads",
    "db.buffer_hit_ratio",
    "db.commits_per_s",
    "db.connections",
    "db.connections_ratio",
    "db.deadlocks_per_s",
    "db.fsync_latency_s",
    "db.page_life_s",
    "db.read_latency_s",
    "db.rollbacks_per_s",
    "db.temp_bytes_per_s",
    "db.workers_ratio",
    "db.write_latency_s",
    "disk.busy_ratio",
    "disk.flush_latency_s",
    "disk.outstanding",
    "disk.read_bytes_per_s",
    "disk.read_latency_s",
    "disk.reads_per_s",
    "disk.write_bytes_per_s",
    "disk.write_latency_s",
    "disk.writes_per_s",
    "mem.available_bytes",
    "mem.available_ratio",
    "mem.paged_in_bytes_per_s",
    "mem.paged_out_bytes_per_s",
    "net.errors_per_s",
    "net.received_bytes_per_s",
    "net.sent_bytes_per_s",
    "pressure.cpu_ratio",
    "pressure.io_ratio",
    "pressure.memory_ratio",
)
"""Metrics of collectors that plans may name (docs/metrics.md, docs/collectors.md)."""
MORE_IS_BETTER = frozenset(
    {"db.buffer_hit_ratio", "db.page_life_s", "mem.available_bytes", "mem.available_ratio"}
)
"""Metrics of servers for which a higher value is better; for all others a lower value is better or
neutral."""
SERVER_FIGURES = ("mean", "p50", "p95", "p99", "max", "min")
"""Figures over the measure phase that an objective of the servers may limit."""


def at_least(metric: str, figure: str) -> bool:
    """Whether an objective of the servers is a lower limit and not an upper limit."""
    return figure == "min" or (metric in MORE_IS_BETTER and figure == "mean")
