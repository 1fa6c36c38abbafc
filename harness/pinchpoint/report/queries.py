"""A query for every fact: what an engineer pastes to see the raw rows behind a sentence."""

from __future__ import annotations

from pinchpoint.base.clock import seconds_of
from pinchpoint.data.series import each_core
from pinchpoint.store.schema import OPERATIONS, SAMPLES


def samples_query(metric: str, host: str | None, instance: str | None, window: tuple[str, str] | None) -> str:
    """The command that lists the samples of a metric in a window of UTC ISO times; ``None`` means all.

    Those whose intervals have their middle in it, as the analysis takes them: their mean is its mean.
    """
    where = [f"metric = {_quoted(metric)}"]
    if host is not None:
        where.append(f"host = {_quoted(host)}")
    if instance is not None:
        names = [_quoted(each) for each in each_core(instance)]
        where.append(f"instance = {names[0]}" if len(names) == 1 else f"instance IN ({', '.join(names)})")
    if window is not None:
        low, high = (round(seconds_of(stamp) * 1e9) for stamp in window)
        where.append(f"time_ns - 5e8 * interval_s >= {low} AND time_ns - 5e8 * interval_s < {high}")
    columns = "make_timestamp_ns(time_ns) AS utc, host, instance, value, weight, interval_s"
    return _select(columns, SAMPLES, where, "ORDER BY time_ns")


def operations_query(scenario: str | None, window: tuple[str, str] | None) -> str:
    """The command that counts operations by second and outcome, of one scenario or of all."""
    where = ["NOT contains(operation, '/')"]
    if scenario is not None:
        where.append(f"scenario = {_quoted(scenario)}")
    if window is not None:
        low, high = (f"{seconds_of(stamp):.3f}".removesuffix(".000") for stamp in window)
        where.append(f"time_s >= {low} AND time_s < {high}")
    names = "make_timestamp(time_s * 1000000) AS utc, scenario, operation, outcome"
    sums = "sum(count) AS count, sum(dropped) AS dropped"
    return _select(f"{names}, {sums}", OPERATIONS, where, "GROUP BY ALL ORDER BY ALL")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _select(columns: str, file: str, where: list[str], rest: str) -> str:
    """The query as one shell word in double quotes: names may hold anything, SQL is full of single ones."""
    sql = " ".join(["SELECT", columns, "FROM", _quoted(file), "WHERE", " AND ".join(where), rest])
    for special in ("\\", '"', "$", "`"):
        sql = sql.replace(special, "\\" + special)
    return f'duckdb -c "{sql}"'
