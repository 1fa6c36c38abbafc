"""Computes trends of a soak: figures that rise or fall over hours at the same load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pinchpoint.analysis.thresholds import DRIFTS, LEVEL_SHIFT
from pinchpoint.data.changes import kendall
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Window

PARTS = 10
"""Number of parts of the window to compare (design value); each is at least ``LEAST_PART_S`` long."""
LEAST_PART_S = 10

OF_HOSTS = (
    "mem.available_bytes",
    "cpu.busy_ratio",
    "pressure.memory_ratio",
    "db.connections",
    "db.sessions_idle_in_transaction",
)
OF_DISKS = ("disk.write_latency_s", "disk.read_latency_s", "disk.outstanding")


def drift_table(inputs: Inputs) -> tuple[dict[str, Any], ...]:
    """The changes from the first tenth of a soak to its last; empty for other loads.

    One row per figure: ``{of, instance, metric, first, last, change_ratio, trend}``. ``trend`` is ``rises``
    or ``falls`` if the figure changed by a tenth or more and its order over the tenths is significant, else
    ``steady``; None if too little was measured.
    """
    window = inputs.window
    soaks = [load.scenario for load in inputs.loads if load.model == "soak"]
    if not soaks or window.seconds < PARTS * LEAST_PART_S:
        return ()
    parts = np.array_split(np.arange(window.steps), PARTS)
    rows = [row for name in soaks for row in _scenario(inputs, name, parts)]
    return tuple(rows + list(_farm(inputs, parts)))


def _scenario(inputs: Inputs, name: str, parts: list[Any]) -> Iterator[dict[str, Any]]:
    whole = inputs.traffic.of(name).whole()
    result: dict[str, list[float | None]] = {
        "throughput_per_s": [],
        "p50_s": [],
        "p99_s": [],
        "error_ratio": [],
    }
    for part in parts:
        step = inputs.window.step_s
        there = whole.during(Window(inputs.window.first_s + int(part[0]) * step, step, len(part)))
        times = there.ok().response() or there.ok().service()
        result["throughput_per_s"].append(there.ok().count / (len(part) * step))
        result["p50_s"].append(times.p50_s if times else None)
        result["p99_s"].append(times.p99_s if times else None)
        result["error_ratio"].append(there.failures / there.count if there.count else None)
    for metric, values in result.items():
        yield _row(name, "", metric, np.array(values, dtype=float))


def _farm(inputs: Inputs, parts: list[Any]) -> Iterator[dict[str, Any]]:
    wanted = [(host.name, metric, "") for host in inputs.hosts for metric in OF_HOSTS]
    wanted += [
        (disk.host, metric, disk.device) for disk in inputs.disks if disk.device for metric in OF_DISKS
    ]
    for host, metric, instance in dict.fromkeys(wanted):
        steps = inputs.samples.steps(host, metric, instance)
        if np.isfinite(steps).any():
            yield _row(host, instance, metric, np.array([_mean(steps[part]) for part in parts]))


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _row(of: str, instance: str, metric: str, values: Floats) -> dict[str, Any]:
    first, last = (float(values[at]) if np.isfinite(values[at]) else None for at in (0, -1))
    change = last / first - 1 if first and last is not None else None
    return {
        "of": of,
        "instance": instance,
        "metric": metric,
        "first": first,
        "last": last,
        "change_ratio": change,
        "trend": _trend(values, first, last),
    }


def _trend(values: Floats, first: float | None, last: float | None) -> str | None:
    known = np.isfinite(values)
    if known.sum() < PARTS or first is None or last is None:
        return None
    size = max(abs(first), abs(last))
    tau, p = kendall(values)
    if p >= DRIFTS.value or abs(last - first) < LEVEL_SHIFT.value * size:
        return "steady"
    return "rises" if tau > 0 else "falls"
