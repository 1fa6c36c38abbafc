"""Builds the verdict's tables of scenarios, disks and CPUs. Each number is one measured quantity."""

from __future__ import annotations

from typing import Any

import numpy as np

from pinchpoint.analysis.bursts import burst_table
from pinchpoint.analysis.durability import writes_table
from pinchpoint.analysis.resources.disk.managed import database_row
from pinchpoint.analysis.thresholds import latency_limit
from pinchpoint.data.inputs import DiskRole, Inputs
from pinchpoint.data.operations import Latency
from pinchpoint.data.series import Floats, Key, Readings, Series


def scenario_table(inputs: Inputs) -> dict[str, dict[str, Any]]:
    """Per scenario, over the measure phase: throughput of ok operations, latencies, errors, drops."""
    names = dict.fromkeys([*(load.scenario for load in inputs.loads), *inputs.traffic.scenarios])
    return {name: _scenario(inputs, name) for name in names}


def _scenario(inputs: Inputs, name: str) -> dict[str, Any]:
    traffic, length = inputs.traffic.of(name).whole(), inputs.window.seconds
    done = traffic.ok()
    row: dict[str, Any] = {
        "throughput_per_s": done.count / length if length else None,
        "count": done.count,
        **_latencies("response", done.response()),
        **_latencies("service", done.service()),
        "error_ratio": traffic.failures / traffic.count if traffic.count else None,
        "outcomes": traffic.outcomes(),
        "dropped": traffic.dropped,
    }
    load = inputs.load(name)
    if load is not None and load.model == "burst":
        row["bursts"] = burst_table(inputs, load)
    if writes := writes_table(inputs, name):
        row["writes"] = writes
    return row


def _latencies(name: str, latency: Latency | None) -> dict[str, float | None]:
    figures = ("p50_s", "p95_s", "p99_s")
    return {f"{name}_{figure}": getattr(latency, figure) if latency else None for figure in figures}


def disk_table(inputs: Inputs) -> list[dict[str, Any]]:
    """One row per disk with a role, over the measure phase; None with the reason if not measured."""
    return [_disk(inputs, disk) for disk in inputs.disks]


def _disk(inputs: Inputs, disk: DiskRole) -> dict[str, Any]:
    hosts = [disk.host, *(h.name for h in inputs.on_machine(disk.machine) if h.name != disk.host)]

    def key_of(metric: str) -> Key | None:
        keys = (Key(host, f"disk.{metric}", disk.device or "") for host in hosts)
        return next((key for key in keys if inputs.samples.mean(*key) is not None), None)

    def series(metric: str) -> Series | None:
        key = key_of(metric)
        return inputs.samples.series(*key) if key else None

    def readings(metric: str) -> Readings | None:
        key = key_of(metric)
        return inputs.samples.readings(*key) if key else None

    counted = None if disk.seen else database_row(inputs, disk)
    verified = series("data_writes_per_s") is not None
    prefix = "data_" if verified else ""
    latency = series(f"{prefix}write_latency_s")
    iops = _sum(readings(f"{prefix}writes_per_s"), readings("reads_per_s"))
    row = {
        "tier": disk.tier,
        "host": disk.host,
        "role": disk.role,
        "device": disk.device,
        "write_latency_mean_s": latency.mean() if latency else None,
        "write_latency_max_s": latency.maximum() if latency else None,
        "read_latency_mean_s": _mean(series("read_latency_s")),
        "flush_latency_mean_s": _mean(series("flush_latency_s")),
        "iops_mean": float(iops.mean()) if len(iops) else None,
        "iops_max": float(iops.max()) if len(iops) else None,
        "iops_source": "data" if verified or disk.data_io == "kernel" else "kernel",
        "latency_limit_s": latency_limit(disk.role).value,
        "latency_limit_source": latency_limit(disk.role).source,
        "why_not_measured": None if len(iops) else disk.why or _why_no_iops(latency),
    }
    return row if counted is None else row | counted | {"iops_source": "database", "why_not_measured": None}


def _why_no_iops(latency: Series | None) -> str:
    if latency is None or not latency.measured:
        return "no samples of this device"
    return "how many I/Os: its reads and writes were not both recorded"


def _sum(writes: Readings | None, reads: Readings | None) -> Floats:
    """Reads plus writes of the same intervals; empty if either was not measured."""
    if writes is None or reads is None:
        return np.empty(0)
    # The time stamps of one reading differ by much less than a tenth of a second.
    first, second = (np.rint(one.middle_s * 10).astype(np.int64) for one in (writes, reads))
    _, left, right = np.intersect1d(first, second, return_indices=True)
    total: Floats = writes.value[left] + reads.value[right]
    return total[np.isfinite(total)]


def _mean(series: Series | None) -> float | None:
    return series.mean() if series else None


def cpu_table(inputs: Inputs) -> list[dict[str, Any]]:
    """One row per tier and host: busy share of the tier's own processes (of its cores), and of the host."""
    rows = []
    for host in inputs.hosts:
        own = inputs.samples.series(host.name, "cpu.busy_ratio", f"tier:{host.tier}")
        machine = inputs.samples.series(host.name, "cpu.busy_ratio")
        shown = own if own is not None and own.mean() is not None else machine
        rows.append(
            {
                "tier": host.tier,
                "host": host.name,
                "of": "tier" if shown is own and own is not None else "machine",
                "busy_mean_ratio": _mean(shown),
                "busy_max_ratio": shown.maximum() if shown else None,
                "machine_busy_mean_ratio": _mean(machine),
                "machine_busy_max_ratio": machine.maximum() if machine else None,
            }
        )
    return rows
