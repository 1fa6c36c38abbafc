"""Reduces the operations of long runs to steps of ten seconds."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.base.objects import JsonObject
from pinchpoint.store import histogram
from pinchpoint.store.schema import COARSE_S, LONG_RUN_S, OPERATIONS_SCHEMA

_SUMS = ("count", "bytes", "dropped")
_HISTOGRAMS = ("service", "response")


def step_s(manifest: JsonObject, until: str) -> int:
    """Seconds that a row of operations covers: 1, or 10 after more than an hour of load.

    Args:
        manifest: the run's manifest; the load begins with the first phase.
        until: end of the load so far, as UTC text.
    """
    phases = manifest.get("phases") or ()
    if not phases:
        return 1
    begun, now = datetime.fromisoformat(phases[0]["from"]), datetime.fromisoformat(until)
    return COARSE_S if (now - begun).total_seconds() > LONG_RUN_S else 1


def coarse(operations: pa.Table, step: int) -> pa.Table:
    """The operations added up in steps of ``step`` seconds, aligned to UTC; histograms are added as well.

    Rows that already cover a step do not change, so the function accepts tables that are partly reduced.
    """
    if step == 1 or operations.num_rows == 0 or pc.min(operations["interval_s"]).as_py() >= step:
        return operations
    begins = pc.multiply(pc.divide(operations["time_s"], step), step)
    table = operations.set_column(0, "time_s", begins)
    names = ["time_s", "worker", "scenario", "operation", "outcome"]
    wanted = [*((name, "sum") for name in _SUMS), *((name, "list") for name in _HISTOGRAMS)]
    grouped = table.group_by(names, use_threads=False).aggregate(wanted)
    columns = {name: grouped[name] for name in names}
    columns |= {name: grouped[f"{name}_sum"] for name in _SUMS}
    columns |= {name: _merged(grouped[f"{name}_list"]) for name in _HISTOGRAMS}
    columns["interval_s"] = pa.repeat(pa.scalar(float(step)), grouped.num_rows)
    return pa.table([columns[name] for name in OPERATIONS_SCHEMA.names], schema=OPERATIONS_SCHEMA)


def _merged(lists: pa.ChunkedArray) -> pa.Array:
    return pa.array([histogram.merged(texts.as_py()) for texts in lists], pa.string())
