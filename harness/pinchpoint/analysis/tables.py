"""The verdict's tables: scenarios with their bursts, disks, CPUs. Each number is one measured thing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.durability import writes_table
from pinchpoint.analysis.inputs import DiskRole, Inputs, Load
from pinchpoint.analysis.managed import database_row
from pinchpoint.analysis.series import Floats, Key, Readings, Series
from pinchpoint.analysis.stages import offered_per_s, peak_steps
from pinchpoint.analysis.thresholds import RECOVERED, latency_limit
from pinchpoint.analysis.traffic import Latency, Traffic


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


def _latencies(name: str, found: Latency | None) -> dict[str, float | None]:
    figures = ("p50_s", "p95_s", "p99_s")
    return {f"{name}_{figure}": getattr(found, figure) if found else None for figure in figures}


def burst_table(inputs: Inputs, load: Load) -> list[dict[str, Any]]:
    """Each burst of a scenario: offered, done, dropped, latency in it, and the time to recover after it.

    Its backlog is what was due by its end, since measuring began, and had neither ended nor been dropped. A
    burst is where the generators scheduled more than half-way between base and peak. It is recovered from in
    the first step whose median latency is within 10 % of the median between bursts, those steps left out at
    whose end more waited than arrives in one: what is left of a burst is no calm.
    """
    window = inputs.window
    inside = peak_steps(inputs, load.scenario)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
    traffic = inputs.traffic.of(load.scenario).whole()
    offered = offered_per_s(inputs, load.scenario)
    medians = traffic.medians_s(window)
    waiting = _backlog(inputs, traffic, offered)
    calm = _calm(medians, inside | (waiting > max(1.0, (load.base_per_s or 0.0) * window.step_s)))
    rows = []
    for start, end in edges.reshape(-1, 2):
        first = window.first_s + int(start) * window.step_s
        length = int(end - start) * window.step_s
        burst = traffic.at(range(first, first + length))
        next_start = edges[edges > end].min() if (edges > end).any() else window.steps
        latency = burst.ok().response() or burst.ok().service()
        rows.append(
            {
                "start_s": first - window.first_s,
                "duration_s": length,
                "offered": float(offered[start:end].sum() * window.step_s),
                "done": burst.ok().count,
                "dropped": burst.dropped,
                "p50_s": latency.p50_s if latency else None,
                "p99_s": latency.p99_s if latency else None,
                "backlog": float(waiting[end - 1]) if np.isfinite(waiting[end - 1]) else None,
                "recovery_s": _recovery(medians[end:next_start], calm, window.step_s),
            }
        )
    return rows


def _backlog(inputs: Inputs, traffic: Traffic, offered: Floats) -> Floats:
    """How many operations were due and neither ended nor dropped at the end of each step."""
    window = inputs.window
    # A dropped operation is a row without a count, in the second it was meant for.
    gone = np.array(
        [
            traffic.at(range(first, first + window.step_s)).dropped
            for first in range(window.first_s, window.first_s + window.steps * window.step_s, window.step_s)
        ]
    )
    left = offered * window.step_s - traffic.per_step(window) * window.step_s - gone
    return np.asarray(np.maximum(np.cumsum(left), 0.0), dtype=np.float64)


def _calm(medians: Floats, busy: npt.NDArray[np.bool_]) -> float | None:
    """The median latency between bursts; None where there is no such time."""
    outside = medians[~busy & np.isfinite(medians)]
    return float(np.median(outside)) if len(outside) else None


def _recovery(after: Floats, calm: float | None, step_s: int) -> float | None:
    """Seconds from a burst's end until the latency is calm again; None where that was not seen."""
    if calm is None:
        return None
    back = np.flatnonzero(after <= calm * (1 + RECOVERED.value))
    return float(back[0] * step_s) if len(back) else None


def disk_table(inputs: Inputs) -> list[dict[str, Any]]:
    """Every disk with a role, over the measure phase; what a disk did not tell is null, with the reason."""
    return [_disk(inputs, disk) for disk in inputs.disks]


def _disk(inputs: Inputs, disk: DiskRole) -> dict[str, Any]:
    hosts = [disk.host, *(h.name for h in inputs.on_machine(disk.machine) if h.name != disk.host)]

    def told(metric: str) -> Key | None:
        keys = (Key(host, f"disk.{metric}", disk.device or "") for host in hosts)
        return next((key for key in keys if inputs.samples.mean(*key) is not None), None)

    def series(metric: str) -> Series | None:
        key = told(metric)
        return inputs.samples.series(*key) if key else None

    def readings(metric: str) -> Readings | None:
        key = told(metric)
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
    """Reads and writes of the same intervals, added; empty where either was not measured."""
    if writes is None or reads is None:
        return np.empty(0)
    # Stamps of one reading agree to well below a tenth of a second.
    first, second = (np.rint(one.middle_s * 10).astype(np.int64) for one in (writes, reads))
    _, left, right = np.intersect1d(first, second, return_indices=True)
    total: Floats = writes.value[left] + reads.value[right]
    return total[np.isfinite(total)]


def _mean(series: Series | None) -> float | None:
    return series.mean() if series else None


def cpu_table(inputs: Inputs) -> list[dict[str, Any]]:
    """Per tier and host: busy ratio of the tier's own processes (of its cores), and of the whole machine."""
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
