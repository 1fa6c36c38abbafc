"""Replaces impossible stored values by "not measured" and counts them (``pinchpoint_collectors.bounds``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.store.order import NAMES
from pinchpoint_collectors import bounds
from pinchpoint_collectors.record import Sample

_NS = 10**9
_LATEST_S = bounds.LATEST_NS // _NS
_COUNTS = ("count", "bytes", "dropped")


def without_impossible_samples(samples: pa.Table, nonsense: bounds.Tally) -> pa.Table:
    """The samples without rows of impossible times; impossible values and weights become null.

    Args:
        samples: table of ``SAMPLES_SCHEMA``; names are text or dictionaries.
        nonsense: counter to which the impossible rows are added.
    """
    if not samples.num_rows or _is_sane(samples):
        return samples
    placed = pc.and_(
        _within(samples["time_ns"], bounds.EARLIEST_NS, bounds.LATEST_NS),
        _within(samples["interval_s"], 0.0, bounds.LONGEST_INTERVAL_S),
    )
    placed = pc.fill_null(placed, False)
    if not pc.all(placed).as_py():
        _count(samples.filter(pc.invert(placed)), nonsense)
        samples = samples.filter(placed)
    odd = pa.array(_odd(samples))
    if not pc.any(odd).as_py():
        return samples
    _count(samples.filter(odd), nonsense)
    for name in ("value", "weight"):
        position = samples.schema.get_field_index(name)
        column = pc.if_else(odd, pa.scalar(None, pa.float64()), samples[name])
        samples = samples.set_column(position, samples.schema.field(name), column)
    return samples


def _within(column: pa.ChunkedArray, least: float, most: float) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most))


def _is_sane(samples: pa.Table) -> bool:
    """Whether all values are possible, checked by minimum and maximum for speed."""
    return (
        _all_within(samples["time_ns"], bounds.ValueRange(bounds.EARLIEST_NS, bounds.LATEST_NS))
        and _all_within(samples["interval_s"], bounds.ValueRange(0.0, bounds.LONGEST_INTERVAL_S))
        and not (samples["time_ns"].null_count or samples["interval_s"].null_count)
        and _all_within(samples["weight"], bounds.WEIGHT)
        and _values_within(samples["value"], samples["metric"])
    )


def _all_within(column: pa.ChunkedArray, bound: bounds.ValueRange) -> bool:
    if column.null_count == len(column):
        return True
    numbers = (column.drop_null() if column.null_count else column).to_numpy()
    # with a NaN among the values, minimum and maximum are NaN
    return bound.has(numbers.min()) and bound.has(numbers.max())


def _values_within(values: pa.ChunkedArray, metrics: pa.ChunkedArray) -> bool:
    """Whether all values are possible, checked by the range of each stretch of rows of one metric."""
    names, codes = _coded(metrics)
    if values.null_count:
        values, codes = values.drop_null(), codes[_is_there(values)]
    value = values.to_numpy()
    if not len(value):
        return True
    begins = np.concatenate([[0], np.flatnonzero(codes[1:] != codes[:-1]) + 1])
    low, high = _bounds(names)[codes[begins]].T
    lowest, highest = np.minimum.reduceat(value, begins), np.maximum.reduceat(value, begins)
    return bool(((lowest >= low) & (highest <= high)).all())


def _odd(samples: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each row has an impossible value or weight."""
    names, codes = _coded(samples["metric"])
    low, high = _bounds(names)[codes].T
    value, weight = samples["value"].to_numpy(), samples["weight"].to_numpy()
    least, most = bounds.WEIGHT
    odd: npt.NDArray[np.bool_] = ~((value >= low) & (value <= high)) & _is_there(samples["value"])
    odd |= ~((weight >= least) & (weight <= most)) & _is_there(samples["weight"])
    return odd


def _is_there(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    there: npt.NDArray[np.bool_] = column.is_valid().to_numpy()
    return there


def _coded(metrics: pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int32]]:
    """(names of the metrics, index of each row's metric among the names)."""
    if not pa.types.is_dictionary(metrics.type):
        metrics = metrics.dictionary_encode()
    whole = metrics.chunk(0) if metrics.num_chunks == 1 else metrics.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    indices = whole.indices.fill_null(0) if whole.null_count else whole.indices
    return [str(name) for name in whole.dictionary.to_pylist()], indices.to_numpy()


def _bounds(names: list[str]) -> npt.NDArray[np.float64]:
    """The lowest and the highest possible value of each metric, one row per metric."""
    pairs = [bounds.bound_of(name) for name in names]
    return np.array(pairs or [bounds.ValueRange(-np.inf, np.inf)], dtype=np.float64)


def _count(rows: pa.Table, nonsense: bounds.Tally) -> None:
    """Count impossible rows by series, because a file may contain very many of them."""
    rows = pa.table({name: rows[name].cast(pa.string()) for name in NAMES} | _others(rows))
    rows = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    each = rows.group_by(list(NAMES), use_threads=False).aggregate([("row", "min"), ("row", "count")])
    for series in each.to_pylist():
        first = rows.slice(series["row_min"], 1).to_pylist()[0]
        host, metric, instance = (str(first[name]) for name in NAMES)
        at_ns, interval_s = first["time_ns"] or 0, first["interval_s"]
        interval_s = float("nan") if interval_s is None else interval_s
        one = bounds.nonsense(
            Sample(at_ns, interval_s, host, metric, instance, first["value"], first["weight"])
        )
        one.count = series["row_count"]
        nonsense.add(one)


def _others(rows: pa.Table) -> dict[str, Any]:
    return {name: rows[name] for name in ("time_ns", "interval_s", "value", "weight")}


def without_impossible_operations(operations: pa.Table, nonsense: bounds.Tally) -> pa.Table:
    """The rows of operations with a possible time and no negative count.

    Args:
        operations: table of ``OPERATIONS_SCHEMA`` from any process.
        nonsense: counter to which the impossible rows are added.
    """
    if not operations.num_rows:
        return operations
    fine = pc.and_(
        _within(operations["time_s"], 0, _LATEST_S),
        pc.and_(
            pc.greater(operations["interval_s"], 0.0),
            pc.less_equal(operations["interval_s"], bounds.LONGEST_INTERVAL_S),
        ),
    )
    for name in _COUNTS:
        fine = pc.and_(fine, pc.greater_equal(operations[name], 0))
    fine = pc.fill_null(fine, False)
    if pc.all(fine).as_py():
        return operations
    for row in operations.filter(pc.invert(fine)).to_pylist():
        first = ", ".join(f"{name} {row[name]}" for name in ("time_s", "interval_s", *_COUNTS))
        of = f"{row['scenario']} {row['operation']}".strip()
        time_ns = (row["time_s"] or 0) * _NS
        allowed = "counts from 0, times from 1970 to 2200"
        nonsense.add(bounds.Impossible(str(row["worker"]), "operations", of, 1, first, allowed, time_ns))
    return operations.filter(fine)


def bounds_in_sql(metrics: list[str]) -> tuple[pa.Table, str, str]:
    """(table ``metric_bounds`` with each metric's possible range, SQL of the value, SQL of the weight).

    The SQL gives null for an impossible value or weight.
    """
    pairs = [bounds.bound_of(name) for name in metrics]
    known = pa.table(
        {
            "metric": pa.array(metrics, pa.string()),
            "lowest": pa.array([pair.lowest for pair in pairs], pa.float64()),
            "highest": pa.array([pair.highest for pair in pairs], pa.float64()),
        }
    )
    least, most = bounds.WEIGHT
    fine = f"value BETWEEN lowest AND highest AND coalesce(weight BETWEEN {least} AND {most}, true)"
    return known, f"CASE WHEN {fine} THEN value END", f"CASE WHEN {fine} THEN weight END"
