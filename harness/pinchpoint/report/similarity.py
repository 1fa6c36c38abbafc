"""Compares a run with the production servers that its plan was fitted to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.objects import object_at
from pinchpoint.data.machines import tiers
from pinchpoint.data.queries import over_operations
from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.fit import replayed as of_sql
from pinchpoint.fit import replayed as of_stores
from pinchpoint.fit.rates import Rate
from pinchpoint.plan.production import FIGURES
from pinchpoint.report.tables import Table, columns, text
from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import show

_COUNTS = """SELECT scenario, operation, sum(count) FROM operations
    WHERE outcome = 'ok' AND NOT contains(operation, '/') AND time_s >= $1 AND time_s < $2
    GROUP BY scenario, operation"""
_SECONDS = """SELECT time_s, max(interval_s), sum(count) FROM operations
    WHERE scenario = ANY($3) AND outcome = 'ok' AND NOT contains(operation, '/')
        AND time_s >= $1 AND time_s < $2 GROUP BY time_s"""
_MEANS = """SELECT metric, instance, sum(mean) FROM (
        SELECT metric, instance, host, sum(value * interval_s) / sum(interval_s) AS mean FROM samples
        WHERE host = ANY($3) AND (starts_with(metric, 'db.') OR starts_with(metric, 'disk.'))
            AND value IS NOT NULL AND time_ns > $1 AND time_ns <= $2 GROUP BY ALL)
    GROUP BY metric, instance"""


def similarity(run: StoredRun, clock: TimeAxis) -> Table:
    """Build the table with one row per known figure of production."""
    plan = object_at(run.manifest, "plan")
    known = object_at(plan, "production")
    result = _replayed(run, clock) if known else {}
    rows = []
    for name, value in known.items():
        replayed = result.get(name)
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
        columns(
            "figure",
            "production_shown number: production",
            "replayed_shown number: this run",
            "ratio times: ratio | none",
        ),
        rows,
        note="What the plan was fitted to, and the same of the measure phase. What a server counts holds all "
        "of its databases, and what watches it. Times are not fitted: they say how similar the servers are.",
        empty="",  # most plans are not fitted to a server
    )


def _replayed(run: StoredRun, clock: TimeAxis) -> dict[str, float]:
    """Return the figures of a run's sql-mix and nosql-burst scenarios.

    Figures that were not measured are left out.
    """
    if clock.window is None:
        return {}
    window, length_s = clock.window, clock.window[1] - clock.window[0]
    scenarios = object_at(run.manifest, "plan", "scenarios")
    kinds: dict[str, dict[str, Mapping[str, Any]]] = {of_sql.USE: {}, of_stores.RECORDS_USE: {}}
    for name, planned in scenarios.items():
        kinds.setdefault(str(planned.get("use")), {})[name] = object_at(planned, "params")
    on_sql, on_stores = kinds[of_sql.USE], kinds[of_stores.RECORDS_USE]
    result: dict[str, float] = {}
    with over_operations(run) as connection:
        show(run.samples, connection)
        counts: dict[str, dict[str, int]] = {}
        for scenario, operation, count in connection.execute(_COUNTS, [*window]).fetchall():
            counts.setdefault(scenario, {})[operation] = count

        def means(tier: str) -> of_sql.Means:
            """Return the mean of each metric of a tier, added up over its hosts."""
            hosts = [host for name, host in tiers(run) if name == tier]
            between = [round(edge_s * 1e9) for edge_s in window]
            rows = connection.execute(_MEANS, [*between, hosts]).fetchall()
            return {(metric, instance): mean for metric, instance, mean in rows}

        if on_sql:
            together: Counter[str] = Counter()
            for name in on_sql:
                together.update(counts.get(name, {}))
            result |= of_sql.replayed(together, next(iter(on_sql.values())), length_s, means("sql"))
        if on_stores:
            reported = object_at(run.manifest, "endpoints")
            done = [
                of_stores.ScenarioDone(counts.get(name, {}), params, object_at(reported, name, "nosql"))
                for name, params in on_stores.items()
            ]
            rows = connection.execute(_SECONDS, [*window, [*on_stores]]).fetchall()
            seconds = list(_seconds({at: (interval_s, count) for at, interval_s, count in rows}, window))
            result |= of_stores.replayed_records(done, length_s, means("nosql"), seconds)
    return result


def _seconds(rows: Mapping[float, tuple[float, int]], window: tuple[float, float]) -> Iterator[Rate]:
    """Yield the rate in every time step of the measure phase, including steps in which no operation ended."""
    step_s = max((interval_s for interval_s, _ in rows.values()), default=1.0)
    at = window[0]
    while at < window[1]:
        interval_s, count = rows.get(at, (step_s, 0))
        yield Rate(at + interval_s, interval_s, count / interval_s)
        at += interval_s


def _shown(name: str, value: float) -> str:
    if "bytes" in name:
        return units.bytes_(value)
    for ending, write in (("_per_s", units.per_second), ("_ratio", units.percent), ("_s", units.seconds)):
        if name.endswith(ending):
            return write(value)
    return text(value)
