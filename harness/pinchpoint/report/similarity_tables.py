"""How near a run came to the production server that its plan was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.fit.figures import (
    DISK_READ_BYTES,
    DISK_WRITE_BYTES,
    FIGURES,
    LOG_BYTES_PER_WRITE,
    LOG_WRITE_BYTES,
    PAGE_READS_PER_OPERATION,
    READS_PER_S,
    READS_PER_WRITE,
    ROWS_PER_WRITE,
    TEMP_BYTES_PER_OPERATION,
    WRITES_PER_S,
)
from pinchpoint.report import units
from pinchpoint.report.clock import Clock
from pinchpoint.report.places import tiers
from pinchpoint.report.query import over_operations
from pinchpoint.report.tables import Column, Table, number, text
from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import show

_USE = "sql-mix"
_ROWS_OF: Mapping[str, int | str] = {
    "log_append": 1,
    "log_batch": "batch_rows",
    "data_update": 1,
    "bulk_load": "copy_rows",
}
"""Operation that writes -> rows of one, or the parameter that says how many."""
_COUNTS = """SELECT operation, sum(count) FROM operations
    WHERE scenario = ANY($1) AND outcome = 'ok' AND NOT contains(operation, '/')
        AND time_s >= $2 AND time_s < $3 GROUP BY operation"""
_MEANS = """SELECT metric, instance, sum(value * interval_s) / sum(interval_s) FROM samples
    WHERE metric IN ('db.wal_bytes_per_s', 'db.reads_per_s', 'db.temp_bytes_per_s', 'db.writes_per_s',
        'db.write_bytes_per_s') AND value IS NOT NULL AND time_ns > $1 AND time_ns <= $2
    GROUP BY metric, instance"""
_DISKS = """SELECT metric, sum(value * interval_s) FROM samples
    WHERE host = ANY($3) AND metric IN ('disk.reads_per_s', 'disk.read_bytes_per_s', 'disk.writes_per_s',
        'disk.write_bytes_per_s') AND value IS NOT NULL AND time_ns > $1 AND time_ns <= $2
    GROUP BY metric"""


def similarity(run: StoredRun, clock: Clock) -> Table:
    """One row per figure that production is known by."""
    plan = run.manifest.get("plan") or {}
    known = plan.get("production") or {}
    found = _replayed(run, clock) if known else {}
    rows = []
    for name, value in known.items():
        replayed = found.get(name)
        ratio = replayed / value if replayed is not None and value else None
        rows.append(
            {
                "figure": FIGURES.get(name, name),
                "name": name,
                "production": value,
                "replayed": replayed,
                "ratio": ratio,
                "production_shown": _shown(name, value),
                "replayed_shown": None if replayed is None else _shown(name, replayed),
            }
        )
    return Table(
        "similarity",
        "Production and this run",
        (
            Column("figure", "figure"),
            number("production_shown", "production"),
            number("replayed_shown", "this run"),
            number("ratio", "ratio", units.times),
        ),
        rows,
        note="What the plan was fitted to, and the same of the measure phase. What a server counts holds all "
        "of its databases, and what watches it.",
        empty="",  # most plans are not fitted to a server
    )


def _replayed(run: StoredRun, clock: Clock) -> dict[str, float]:
    """The figures of a run, as far as they were measured."""
    window = clock.window
    scenarios = (run.manifest.get("plan") or {}).get("scenarios") or {}
    names = [name for name, planned in scenarios.items() if planned.get("use") == _USE]
    if window is None or not names:
        return {}
    with over_operations(run) as connection:
        counts = dict(connection.execute(_COUNTS, [names, *window]).fetchall())
        show(run.samples, connection)
        between = [round(edge_s * 1e9) for edge_s in window]
        means = {(m, i): value for m, i, value in connection.execute(_MEANS, between).fetchall()}
        disks = dict(connection.execute(_DISKS, [*between, _database_hosts(run)]).fetchall())
    params = scenarios[names[0]].get("params") or {}
    return _rates(counts, params, window[1] - window[0], means) | _sizes(means, disks)


def _database_hosts(run: StoredRun) -> list[str]:
    """The hosts of the SQL tier."""
    return [host for tier, host in tiers(run) if tier == "sql"]


def _rates(
    counts: Mapping[str, int],
    params: Mapping[str, Any],
    length_s: float,
    means: Mapping[tuple[str, str], float],
) -> dict[str, float]:
    writes = sum(count for name, count in counts.items() if name in _ROWS_OF)
    reads = sum(counts.values()) - writes
    operations = writes + reads
    if not operations or length_s <= 0:
        return {}
    found = {WRITES_PER_S: writes / length_s, READS_PER_S: reads / length_s}
    for name, key in (
        (PAGE_READS_PER_OPERATION, ("db.reads_per_s", "data")),
        (TEMP_BYTES_PER_OPERATION, ("db.temp_bytes_per_s", "")),
    ):
        if key in means:
            found[name] = means[key] * length_s / operations
    if writes:
        found[READS_PER_WRITE] = reads / writes
        rows = [(count, _rows_of(name, params)) for name, count in counts.items() if name in _ROWS_OF]
        if all(each is not None for _, each in rows):
            found[ROWS_PER_WRITE] = sum(count * (each or 0) for count, each in rows) / writes
        if ("db.wal_bytes_per_s", "") in means:
            found[LOG_BYTES_PER_WRITE] = means["db.wal_bytes_per_s", ""] * length_s / writes
    return found


def _rows_of(operation: str, params: Mapping[str, Any]) -> int | None:
    """The rows that one operation writes; None where the plan leaves them to a default."""
    rows = _ROWS_OF[operation]
    return params.get(rows) if isinstance(rows, str) else rows


def _sizes(means: Mapping[tuple[str, str], float], disks: Mapping[str, float]) -> dict[str, float]:
    found = {}
    for name, size, count in (
        (LOG_WRITE_BYTES, means.get(("db.write_bytes_per_s", "wal")), means.get(("db.writes_per_s", "wal"))),
        (DISK_READ_BYTES, disks.get("disk.read_bytes_per_s"), disks.get("disk.reads_per_s")),
        (DISK_WRITE_BYTES, disks.get("disk.write_bytes_per_s"), disks.get("disk.writes_per_s")),
    ):
        if size is not None and count:
            found[name] = size / count
    return found


def _shown(name: str, value: float) -> str:
    if "bytes" in name:
        return units.bytes_(value)
    return units.per_second(value) if name.endswith("_per_s") else text(value)
