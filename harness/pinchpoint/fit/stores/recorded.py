"""The work of a production store from the samples of a run or an import."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import ProductionFigure, plain
from pinchpoint.fit.stores import record
from pinchpoint.fit.stores.record import ProductionStore, StoreActivity
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun, open_run

Series = Mapping[tuple[str, str], Mapping[int, float]]
"""(metric, instance) -> number of the step -> mean of the step, all hosts together."""

_MARKS = {
    "valkey": "db.commands_per_s",
    "cassandra": "db.requests_per_s",
    "mongodb": "db.operations_per_s",
}
"""The metric by which a collector's samples are known."""
_PRODUCTS = {"valkey": "Valkey or Redis", "cassandra": "Cassandra", "mongodb": "MongoDB"}
_SERIES = """WITH marked AS (SELECT DISTINCT host FROM samples WHERE metric = $1),
    reported AS (SELECT metric, instance, host, value, time_ns / 1e9 - interval_s / 2 AS middle_s FROM samples
        WHERE host IN (SELECT host FROM marked) AND starts_with(metric, 'db.') AND value IS NOT NULL),
    means AS (SELECT metric, instance, host, CAST(floor((middle_s - $2) / $3) AS BIGINT) AS step,
            avg(value) AS mean FROM reported WHERE middle_s >= $2 AND middle_s < $4 GROUP BY ALL)
    SELECT metric, instance, step, sum(mean) FROM means GROUP BY ALL"""


def store(directory: Path) -> ProductionStore:
    """The store that a run's collectors watched.

    Args:
        directory: a run directory; of one with load of ours its measure phase is taken, of samples alone all.

    Raises:
        InputError: it is no run, or has no samples of a store.
    """
    import duckdb  # noqa: PLC0415 -- a fifth of a second

    run = open_run(directory)
    connection = duckdb.connect()
    samples.show(run.samples, connection)
    there = {name for (name,) in connection.execute("SELECT DISTINCT metric FROM samples").fetchall()}
    families = [family for family, mark in _MARKS.items() if mark in there]
    if len(families) != 1:
        found = " and ".join(_PRODUCTS[family] for family in families) or "none"
        raise InputError(
            f"{directory}: has samples of {found}; needed: those of one store, by a collector of kind "
            f"{', '.join(_MARKS)}"
        )
    (family,) = families
    begin_s, end_s = _window(run, directory)
    step_s = max(1, math.ceil(samples.usual_interval_s(run.samples)))
    rows = connection.execute(_SERIES, [_MARKS[family], begin_s, step_s, end_s]).fetchall()
    series: dict[tuple[str, str], dict[int, float]] = {}
    for metric, instance, step, value in rows:
        series.setdefault((metric, instance), {})[step] = value
    stretches = [
        _stretch(family, series, step, begin_s, step_s)
        for step in sorted(
            {step for (metric, _), its in series.items() if metric == _MARKS[family] for step in its}
        )
    ]
    if not any(stretch.operations for stretch in stretches):
        raise InputError(f"{directory}: the store received no command while it was recorded")
    return _store(family, directory.name, stretches)


def _window(run: StoredRun, directory: Path) -> tuple[float, float]:
    measured = [phase for phase in run.manifest.get("phases") or () if phase["name"] == "measure"]
    if measured and measured[-1]["to"]:
        return seconds_of(measured[0]["from"]), seconds_of(measured[-1]["to"])
    extent = samples.extent(run.samples)
    if extent is None:
        raise InputError(f"{directory}: there is no sample in it")
    return extent


def _stretch(family: str, series: Series, step: int, begin_s: float, step_s: int) -> StoreActivity:
    def added(metric: str, instance: str = "") -> float | None:
        value = series.get((metric, instance), {}).get(step)
        return None if value is None else value * step_s

    began_s = begin_s + step * step_s
    received = added("db.received_bytes_per_s")
    if family == "valkey":
        return StoreActivity(
            began_s,
            began_s + step_s,
            operations=added("db.commands_per_s") or 0.0,
            log_bytes=added("db.aof.bytes_per_s"),
            received_bytes=received,
            server_s=added("db.main_thread.commands_ratio"),
        )
    mark = _MARKS[family]
    if family == "cassandra":
        reads, inserts, writes = added(mark, "read") or 0.0, None, added(mark, "write") or 0.0
    else:
        reads, inserts = added(mark, "query") or 0.0, added(mark, "insert") or 0.0
        writes = inserts + (added(mark, "update") or 0.0)
    return StoreActivity(
        began_s,
        began_s + step_s,
        operations=reads + writes,
        reads=reads,
        writes=writes,
        inserts=inserts,
        log_bytes=added("db.journal.bytes_per_s"),
        received_bytes=received,
    )


def _store(family: str, name: str, stretches: list[StoreActivity]) -> ProductionStore:
    notes = [f"{name}: its samples do not show the number of records and their lifetime"]
    lacking, sizes = [], []
    if family == "valkey":
        lacking.append(
            f"which commands read and which write, the samples of {name} do not show: all are updates here; "
            "two answers to INFO all beside them would show it"
        )
        logged = [stretch for stretch in stretches if stretch.log_bytes is not None]
        if commands := sum(stretch.operations for stretch in logged):
            each = sum(stretch.log_bytes or 0.0 for stretch in logged) / commands
            value = record.payload_of_request(each, record.key(0, 0.0), 0.0, kept=True)
            sizes.append(
                ProductionFigure(
                    value, f"{name}: the append-only file grew {plain(each)} bytes for a command"
                )
            )
    return ProductionStore(
        family=family,
        product=_PRODUCTS[family],
        source=name,
        stretches=stretches,
        sizes=sizes,
        notes=notes,
        lacking=lacking,
    )
