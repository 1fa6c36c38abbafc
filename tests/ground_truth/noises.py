"""Remove samples from a run: the verdict may become inconclusive, but may not name another cause.

Each noise is computed from a stored run: one collector missing, samples every five seconds, or a fifth of the
samples lost. (Another process that uses CPU cannot be simulated with samples: see ``burner.py``.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.store.read import StoredRun
from pinchpoint.store.samples import table
from pinchpoint.store.schema import SAMPLES_SCHEMA

SLOW_S = 5
"""Interval between readings of the slower collectors, in seconds; the usual interval is one second."""
LOST = 0.2
"""Ratio of lost samples, half of them as whole readings, half one by one."""
SEED = 5

ITSELF = "local"
"""The collector of a host itself; any other kind reads the database."""
OF_DATABASES = "db."
OF_GENERATORS = "generator."


def noises(run: StoredRun) -> Iterator[tuple[str, StoredRun]]:
    """Yield (name, run with fewer samples) for every noise."""
    samples = table(run.samples)
    for host, kind in collectors(samples):
        yield f"without {kind} of {host}", replace(run, samples=without(samples, host, kind))
    yield f"every {SLOW_S} s", replace(run, samples=every(samples, SLOW_S))
    yield f"{LOST:.0%} lost", replace(run, samples=lost(samples, LOST, SEED))


def collectors(samples: pa.Table) -> list[tuple[str, str]]:
    """Return (host, kind) of every collector that reported success or failure."""
    told = samples.filter(pc.equal(samples["metric"], "collector.ok"))
    return sorted(set(zip(told["host"].to_pylist(), told["instance"].to_pylist(), strict=True)))


def without(samples: pa.Table, host: str, kind: str) -> pa.Table:
    """Return the samples without those of one collector, its own health metrics included."""
    own = pc.or_(
        pc.and_(pc.starts_with(samples["metric"], "collector."), _of_kind(samples["instance"], kind)),
        _measured_by(samples["metric"], kind),
    )
    return samples.filter(pc.invert(pc.and_(pc.equal(samples["host"], host), own)))


def _of_kind(instance: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Match ``KIND`` and the instances of its parts (``KIND/part``)."""
    return pc.or_(pc.equal(instance, kind), pc.starts_with(instance, f"{kind}/"))


def _measured_by(metric: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    of_database = pc.starts_with(metric, OF_DATABASES)
    if kind != ITSELF:
        return of_database
    return pc.invert(pc.or_(of_database, pc.starts_with(metric, "collector.")))


def every(samples: pa.Table, seconds: int) -> pa.Table:
    """Return the samples as slower collectors read them: means over time; latencies weighted by operations.

    The generators' own metrics stay unchanged, because no collector reads them.
    """
    told = pc.starts_with(samples["metric"], OF_GENERATORS)
    rows = samples.filter(pc.invert(told))
    # A mean latency is weighted by its operations, any other value by its interval; a missing value has no
    # weight.
    weight = pc.coalesce(rows["weight"], rows["interval_s"])
    weight = pc.if_else(pc.is_valid(rows["value"]), weight, pa.scalar(None, pa.float64()))
    bucket = pc.divide(rows["time_ns"], seconds * 10**9)  # integer division
    rows = rows.append_column("bucket", bucket)
    rows = rows.append_column("by", weight).append_column("total", pc.multiply(rows["value"], weight))
    found = rows.group_by(["host", "metric", "instance", "bucket"]).aggregate(
        [("time_ns", "max"), ("interval_s", "sum"), ("total", "sum"), ("by", "sum"), ("weight", "sum")]
    )
    by = pc.if_else(pc.greater(found["by_sum"], 0), found["by_sum"], pa.scalar(None, pa.float64()))
    slow = pa.table(
        {
            "time_ns": found["time_ns_max"],
            "interval_s": found["interval_s_sum"],
            "host": found["host"],
            "metric": found["metric"],
            "instance": found["instance"],
            "value": pc.divide(found["total_sum"], by),
            "weight": found["weight_sum"],
        },
        schema=SAMPLES_SCHEMA,
    )
    return pa.concat_tables([slow, samples.filter(told)])


def lost(samples: pa.Table, share: float, seed: int) -> pa.Table:
    """Drop a ratio of the samples: whole readings of a host, and single samples."""
    random = np.random.default_rng(seed)
    reading = samples["host"].dictionary_encode().unify_dictionaries().combine_chunks().indices.to_numpy()
    readings, number = np.unique(
        np.column_stack([reading, samples["time_ns"].to_numpy()]), axis=0, return_inverse=True
    )
    # Half of each kind: 1 - (1 - part)^2 = share.
    part = 1 - np.sqrt(1 - share)
    whole = random.random(len(readings)) < part
    single = random.random(samples.num_rows) < part
    return samples.filter(pa.array(~(whole[number.ravel()] | single)))
