"""What a storage probe within a run measured, as people read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint.base import units
from pinchpoint.report.tables import Column, Table, duration, number, rate
from pinchpoint.store import times
from pinchpoint.store.read import StoredRun

PROBED = "probed"
"""The event of a cell that was measured (scenario storage-probe)."""
FAILED = "probe_failed"
"""The event of one that was tried, and ``why`` it was not."""
_SHARES = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99, "p999_s": 0.999}

Events = Sequence[Mapping[str, Any]]


def probes(run: StoredRun) -> Table:
    """One row per cell and scenario: the mean of its repetitions, the longest of them."""
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in run.events:
        if event.get("event") in (PROBED, FAILED):
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
            duration("p95_s", "p95"),
            duration("p99_s", "p99"),
            duration("p999_s", "p99.9"),
            duration("max_s", "longest"),
            Column("failed", "not measured", absent=""),
        ),
        [_row(scenario, name, events) for (scenario, name), events in rows.items()],
        note="While the rest of the plan went on: what a disk has left, not what it can do. Percentiles are "
        "of all I/Os of all repetitions together. The verdict on them is in the folder probe-SCENARIO of the "
        "run.",
        empty="",  # most runs probe nothing
    )


def _row(scenario: str, name: str, events: Events) -> dict[str, Any]:
    done = [event for event in events if event["event"] == PROBED]
    failed = dict.fromkeys(str(event.get("why")) for event in events if event["event"] == FAILED)
    longest = [event["max_s"] for event in done if event.get("max_s") is not None]
    return {
        "scenario": scenario,
        "disk": events[0].get("disk") or events[0].get("folder"),
        "cell": name,
        "trials": len(done),
        "iops": _mean(done, "reads_per_s", "writes_per_s"),
        "bytes_per_s": _mean(done, "read_bytes_per_s", "write_bytes_per_s"),
        "mean_s": _latency(done),
        **_percentiles(done),
        "max_s": max(longest, default=None),
        "failed": "; ".join(failed) or None,
    }


def _mean(events: Events, *keys: str) -> float | None:
    sums = [
        sum(event[key] for key in keys if event.get(key) is not None)
        for event in events
        if any(event.get(key) is not None for key in keys)
    ]
    return sum(sums) / len(sums) if sums else None


def _latency(events: Events) -> float | None:
    """Weighted by how many I/Os each repetition had."""
    known = [
        (event["mean_s"], (_mean([event], "reads_per_s", "writes_per_s") or 0.0) * (event["seconds"] or 0.0))
        for event in events
        if event.get("mean_s") is not None
    ]
    weight = sum(count for _, count in known)
    return sum(mean * count for mean, count in known) / weight if weight else None


def _percentiles(events: Events) -> dict[str, float | None]:
    """None where the tool tells no histogram."""
    texts = [times.histogram(dict(event["times_ns"])) for event in events if event.get("times_ns")]
    return dict(zip(_SHARES, times.quantiles(texts, _SHARES.values()), strict=True))
