"""What the sessions of each database did during the measure phase: ran, or waited, and for what."""

from __future__ import annotations

from typing import Any

from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.recorded import over_samples
from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.report.tables import Column, Table, duration, number
from pinchpoint.store.read import StoredRun
from pinchpoint_collectors.common.counts import counted

MOST = 10
"""Waits that are listed of each host; the rest are summed."""
RUNNING = "running, or ready to run on a CPU"


def waits(run: StoredRun, clock: TimeAxis) -> Table:
    """Session time by wait, the longest first, with its share of the time of all active sessions."""
    rows: list[dict[str, Any]] = []
    hidden: list[str] = []
    for host, spent in _spent_s(run, clock).items():
        active_s = spent.pop(("db.sessions_active", ""), None)
        if active_s is None:  # who was at work was not asked: a share of nothing known
            continue
        hidden += [host] if spent.pop(("db.sessions_hidden", ""), 0.0) else []
        ranked = sorted(((s, _name(*key)) for key, s in spent.items() if s > 0), reverse=True)
        rest = ranked[MOST:]
        named = ranked[:MOST] + (
            [(sum(s for s, _ in rest), counted(len(rest), "other wait"))] if rest else []
        )
        rows += [
            {"host": host, "wait": name, "time_s": s, "ratio": s / active_s if active_s else None}
            for s, name in named
        ]
    note = "Over the measure phase, all client sessions together, sampled some ten times a second."
    if hidden:
        note += (
            f" On {listed(hidden)} the collector's role may not see all sessions; hidden ones are left out."
        )
    return Table(
        "waits",
        "Top waits of the databases",
        (
            Column("host", "host"),
            Column("wait", "sessions were"),
            duration("time_s", "session time"),
            number("ratio", "of active session time", units.percent, absent="-"),
        ),
        rows,
        note=note,
        empty="",  # most farms have no database whose sessions are sampled
    )


def _name(metric: str, instance: str) -> str:
    return RUNNING if metric == "db.sessions_running" else f"waiting for {instance}"


def _spent_s(run: StoredRun, clock: TimeAxis) -> dict[str, dict[tuple[str, str], float]]:
    """Per host: (metric, instance) -> session seconds in the measure phase; all of the run without one."""
    low, high = clock.window or (0.0, float("inf"))
    found = over_samples(run).execute(
        """
        SELECT host, metric, instance, sum(value * interval_s) FROM samples
        WHERE metric IN ('db.sessions_active', 'db.sessions_running', 'db.sessions_waiting',
                         'db.sessions_hidden')
          AND value IS NOT NULL
          AND time_ns / 1e9 - interval_s / 2 >= $low AND time_ns / 1e9 - interval_s / 2 < $high
        GROUP BY ALL ORDER BY ALL
        """,
        {"low": low, "high": high},
    )
    spent: dict[str, dict[tuple[str, str], float]] = {}
    for host, metric, instance, session_s in found.fetchall():
        spent.setdefault(host, {})[metric, instance or ""] = session_s
    return spent
