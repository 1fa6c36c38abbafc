"""Converts a tool's latency histogram to the store's form, so that repetitions add up exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pinchpoint.store.histogram import (
    HIGHEST_US,
    LOWEST_US,
    Counts,
    counted,
    encoded,
    summed,
    values_us,
)


def histogram(times_ns: Mapping[int, int]) -> str:
    """The counts of latencies (ns -> number) as HdrHistogram text (µs, three digits)."""
    values = np.fromiter(times_ns, dtype=np.int64)
    many = np.fromiter(times_ns.values(), dtype=np.int64)
    # rounded to microseconds as in ``histogram.counted``
    microseconds = np.clip((values + 500) // 1000, LOWEST_US, HIGHEST_US)
    last = len(counted(values.max(keepdims=True)))
    lowest, _ = values_us(np.arange(last, dtype=np.int64))
    places = np.searchsorted(lowest, microseconds, side="right") - 1
    return encoded(np.bincount(places, many).astype(np.int64))


def quantiles(texts: Iterable[str], shares: Iterable[float]) -> list[float | None]:
    """The time in seconds within which each share of all I/Os ended; None without I/O."""
    given = list(texts)
    counts = summed(given) if given else np.zeros(0, dtype=np.int64)
    return [_within(counts, share) for share in shares]


def _within(counts: Counts, share: float) -> float | None:
    total = int(counts.sum())
    if not total:
        return None
    place = int(np.searchsorted(np.cumsum(counts), np.ceil(share * total)))
    lowest, width = values_us(np.array([place], dtype=np.int64))
    return float(lowest[0] + width[0] - 1) / 1e6
