"""What a storage probe within a run measured, as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.report import units
from pinchpoint.report.tables import Column, Table, duration, number, rate
from pinchpoint.store.read import StoredRun

PROBED = "probed"
"""The event of a cell that was measured (scenario storage-probe)."""


def probes(run: StoredRun) -> Table:
    """One row per cell and scenario: the mean of its repetitions, the longest of them."""
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in run.events:
        if event.get("event") == PROBED:
            rows.setdefault((str(event.get("scenario")), str(event.get("name"))), []).append(event)
    return Table(
        "probes",
        "What storage probes measured",
        (
            Column("scenario", "scenario"),
            Column("disk", "disk"),
            Column("cell", "cell"),
            number("trials", "repetitions"),
            rate("iops", "I/Os per second"),
            number("bytes_per_s", "bytes per second", lambda value: units.of_metric("_bytes_per_s", value)),
            duration("mean_s", "mean latency"),
            duration("p50_s", "p50"),
            duration("p99_s", "p99"),
            duration("max_s", "longest"),
        ),
        [_row(scenario, name, events) for (scenario, name), events in rows.items()],
        note="While the rest of the plan went on: what a disk has left, not what it can do. Percentiles are "
        "means of the repetitions' own. The verdict on them is in the folder probe-SCENARIO of the run.",
        empty="",  # most runs probe nothing
    )


def _row(scenario: str, name: str, events: list[Mapping[str, Any]]) -> dict[str, Any]:
    def mean(*keys: str) -> float | None:
        sums = [
            sum(event[key] for key in keys if event.get(key) is not None)
            for event in events
            if any(event.get(key) is not None for key in keys)
        ]
        return sum(sums) / len(sums) if sums else None

    longest = [event["max_s"] for event in events if event.get("max_s") is not None]
    return {
        "scenario": scenario,
        "disk": events[0].get("disk") or events[0].get("folder"),
        "cell": name,
        "trials": len(events),
        "iops": mean("reads_per_s", "writes_per_s"),
        "bytes_per_s": mean("read_bytes_per_s", "write_bytes_per_s"),
        "mean_s": mean("mean_s"),
        "p50_s": mean("p50_s"),
        "p99_s": mean("p99_s"),
        "max_s": max(longest, default=None),
    }
