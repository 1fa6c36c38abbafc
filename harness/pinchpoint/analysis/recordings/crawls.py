"""Computes the figures of a search product's crawls from the product's log, one row per content source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pinchpoint.analysis.published_means import SourceMean, judge_means
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Key, Series


def crawl_rows(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """One row per source.

    ``rate_per_s`` is documents ÷ duration; ``rate_active_per_s`` is the rate that the product reports.
    """
    for key in inputs.samples.keys("search.documents_per_s"):
        done = _series(inputs, key, "documents_per_s")
        if done is None or not done.measured:
            continue
        failed = _series(inputs, key, "failures_per_s")
        latency = _series(inputs, key, "repository_latency_s")
        reported = _series(inputs, key, "reported_documents_per_s")
        duration_s = float(done.covered_s.sum())
        yield {
            "source": key.instance or "all sources",
            "count": round(done.sum()),
            "failures": round(failed.sum()) if failed is not None else None,
            "skipped": None,
            "duration_s": duration_s,
            "rate_per_s": done.sum() / duration_s,
            "rate_active_per_s": reported.mean() if reported is not None else None,
            "repository_latency_s": latency.mean() if latency is not None else None,
            "repository_latency_p50_s": None,
            "repository_latency_p95_s": None,
            "bytes": None,
            "complete": True,
        }


def crawl_findings(inputs: Inputs) -> Iterator[str]:
    """A sentence about the source at which most requests of a crawl are in flight.

    A log does not say whether the source is part of the farm.
    """
    sources = [
        SourceMean(row["source"], row["rate_per_s"], row["repository_latency_s"])
        for row in crawl_rows(inputs)
        if row["repository_latency_s"] is not None
    ]
    if len(sources) > 1:
        for one in judge_means((), (), sources).sources:
            yield one.why


def _series(inputs: Inputs, key: Key, name: str) -> Series | None:
    return inputs.samples.series(key.host, f"search.{name}", key.instance)
