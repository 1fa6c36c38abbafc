"""How far the data can be trusted: generators, collectors, incidents, what is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.clock import seconds_of
from pinchpoint.report.clock import Clock
from pinchpoint.report.query import over_samples
from pinchpoint.report.tables import Column, Row, Table, duration, number, share, text
from pinchpoint.store.read import StoredRun


def generators(run: StoredRun, clock: Clock) -> Table:
    """Whether the load generators themselves kept up."""
    rows: list[dict[str, Any]] = []
    loads = [plan["load"]["model"] for plan in run.manifest.get("plan", {}).get("scenarios", {}).values()]
    unscheduled = "closed load" if set(loads) == {"closed"} else units.NOT_MEASURED
    connection = over_samples(run)
    low, high = clock.window or (0.0, 1e12)
    found = connection.execute(
        """
        SELECT host,
               avg(value) FILTER (metric = 'generator.cpu_ratio'),
               max(value) FILTER (metric = 'generator.cpu_ratio'),
               max(value) FILTER (metric = 'generator.loop_lag_s'),
               max(value) FILTER (metric = 'generator.send_lag_s'),
               sum(value * interval_s) FILTER (metric = 'generator.scheduled_per_s'),
               sum(value * interval_s) FILTER (metric = 'generator.started_per_s')
        FROM samples
        WHERE starts_with(metric, 'generator.')
          AND time_ns / 1e9 - interval_s / 2 >= $low AND time_ns / 1e9 - interval_s / 2 < $high
        GROUP BY host ORDER BY host
        """,
        {"low": low, "high": high},
    ).fetchall()
    keys = (
        "generator",
        "cpu_mean",
        "cpu_max",
        "loop_lag_max_s",
        "send_lag_max_s",
        "scheduled",
        "started",
    )
    rows = [dict(zip(keys, row, strict=True)) for row in found]
    for row in rows:
        row["started_ratio"] = row["started"] / row["scheduled"] if row["scheduled"] else None
    return Table(
        "generators",
        "Load generators",
        (
            Column("generator", "generator"),
            share("cpu_mean", "CPU of one core, mean"),
            share("cpu_max", "max"),
            duration("loop_lag_max_s", "loop lag, max"),
            number("send_lag_max_s", "send lag p99, worst second", units.seconds, absent=unscheduled),
            number("started_ratio", "started ÷ scheduled", units.percent, absent=unscheduled),
        ),
        rows,
        empty="Nothing was measured of the load generators.",
    )


def collectors(run: StoredRun, clock: Clock) -> Table:
    """What watching the farm cost, and whether it worked."""
    rows = [
        {**row, "cost_ratio": row["cpu_s"] / clock.length_s if row.get("cpu_s") is not None else None}
        for row in run.manifest.get("collectors") or ()
        if clock.length_s > 0
    ]
    return Table(
        "collectors",
        "Collectors and their own cost",
        (
            Column("kind", "collector"),
            Column("hosts", "hosts"),
            duration("interval_s", "interval"),
            number("readings", "readings"),
            number("failed", "failed"),
            duration("cpu_s", "CPU used"),
            share("cost_ratio", "of one core"),
            *_far(rows),
        ),
        rows,
        empty="No collector of ours ran: what was measured was imported."
        if run.manifest.get("imports")
        else "No collector ran: nothing but the load itself was measured.",
    )


def _far(rows: Sequence[Row]) -> tuple[Column, ...]:
    """What only collectors of other machines tell."""
    if not any(row.get("received_bytes") is not None for row in rows):
        return ()
    return (
        number("host_cpu_s", "CPU used there", units.seconds),
        number("received_bytes", "received", units.bytes_),
    )


def clocks(run: StoredRun) -> Table:
    """How far the hosts' clocks were off, and how well that is known."""
    rows = [
        {"host": host, "kind": kind, "spread_s": _spread_s(told), **told}
        for host, kinds in (run.manifest.get("data_quality") or {}).items()
        for kind, told in kinds.items()
        if told.get("clock_offset_s") is not None
    ]
    return Table(
        "clocks",
        "Clocks of the hosts",
        (
            Column("host", "host"),
            Column("kind", "collector"),
            duration("clock_offset_s", "ahead of ours"),
            duration("clock_error_s", "known to within"),
            duration("spread_s", "moved during the run by"),
        ),
        rows,
        note="Samples carry the host's time, corrected by what is known of its clock.",
        empty="",
    )


def _spread_s(told: Row) -> float | None:
    between = told.get("clock_offset_between_s")
    return between[1] - between[0] if between else None


def blind(run: StoredRun) -> Table:
    """What was not seen, and when."""
    rows = [
        {
            "host": host,
            "kind": kind,
            **{key: gap.get(key) for key in ("from", "to", "missed", "why")},
            "lasted_s": seconds_of(gap["to"]) - seconds_of(gap["from"]),
        }
        for host, kinds in (run.manifest.get("data_quality") or {}).items()
        for kind, told in kinds.items()
        for gap in told.get("gaps") or ()
    ]
    return Table(
        "blind",
        "What was not seen, and when",
        (
            Column("host", "host"),
            Column("kind", "collector"),
            Column("from", "from (UTC)"),
            Column("to", "to"),
            duration("lasted_s", "for"),
            number("missed", "readings missed"),
            Column("why", "why"),
        ),
        rows,
        note="Nothing is made up for it: where nobody looked, there are no samples.",
        empty="",
    )


_QUIET = frozenset({"phase", "prepare", "load_begun", "step", "steps_ended", "warmed_up"})
_QUIET |= {"crawl_started", "crawl_ended", "replayed", "probed"}  # they have tables of their own
_QUIET |= {"steps_held", "made_slower", "put_back"}  # likewise, of a causal test


def incidents(run: StoredRun) -> Table:
    """Events that are no ordinary part of a run."""
    rows = []
    for event in run.events:
        name = str(event.get("event"))
        if name in _QUIET or name.startswith("phase"):
            continue
        rest = {key: value for key, value in event.items() if key not in ("time", "event")}
        rows.append({"time": event.get("time"), "event": name.replace("_", " "), "details": _details(rest)})
    return Table(
        "incidents",
        "Gaps, failures and warnings while it ran",
        (Column("time", "UTC"), Column("event", "event"), Column("details", "details")),
        rows,
        empty="None.",
    )


def _details(facts: Row) -> str:
    words = [f"{key.replace('_', ' ')}: {_flat(value)}" for key, value in facts.items() if value is not None]
    return "; ".join(words)


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else text(value)


def not_measured(run: StoredRun) -> Table:
    """What could not be had, why, and how to get it; alike on several hosts is said once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for host, facts in run.manifest.get("hosts", {}).items():
        for row in facts.get("not_measured") or ():
            keys = ("metric", "instance", "why", "remedy")
            found.setdefault(tuple(str(row.get(key) or "") for key in keys), []).append(host)
    rows = [
        {"metric": m, "instance": i, "hosts": hosts, "why": why, "remedy": remedy}
        for (m, i, why, remedy), hosts in found.items()
    ]
    return Table(
        "not_measured",
        "Not measured",
        (
            Column("metric", "metric"),
            Column("instance", "instance"),
            Column("hosts", "hosts"),
            Column("why", "why"),
            Column("remedy", "remedy"),
        ),
        rows,
        empty="Everything the collectors know how to read was there.",
    )
