"""Where a crawled document's time went, and what could not be crawled."""

from __future__ import annotations

from typing import Any

from pinchpoint.analysis.crawls import STAGES
from pinchpoint.report.tables import Column, Row, Table, duration, number, share

_TITLES = {"politeness": "waiting for its turn", "enumerate": "enumeration", "crawl_db": "crawl database"}


def stages(verdict: Row) -> Table:
    """One row per content source."""
    rows: list[dict[str, Any]] = [
        {**row, **(row.get("stages") or {})} for row in verdict.get("crawl") or () if row.get("stages")
    ]
    there = [stage for stage in STAGES if any(stage in row for row in rows)]
    return Table(
        "crawl_stages",
        "Where a document's time went",
        (
            Column("source", "source"),
            *(duration(stage, _TITLES.get(stage, stage)) for stage in there),
            number("workers_busy", "workers busy"),
            number("workers", "of at most"),
            share("workers_busy_ratio", "pool full"),
        ),
        rows,
        note="All attempts of a stage ÷ documents. Workers busy: mean number at work on the source while it "
        "was crawled, over its own limit of workers, or the users of the load where it has none.",
        empty="",
    )


def log(verdict: Row) -> Table:
    """What could not be crawled, by source and failure: how often, and the first that did."""
    rows: list[dict[str, Any]] = []
    for source in verdict.get("crawl") or ():
        for failure, count in sorted((source.get("failures_by_kind") or {}).items()):
            first: Row = next((each for each in source.get("failed") or () if each["failure"] == failure), {})
            rows.append(
                {
                    "source": source["source"],
                    "failure": failure,
                    "count": count,
                    "url": first.get("url"),
                    "message": first.get("message") or None,
                }
            )
    return Table(
        "crawl_log",
        "Crawl log: what could not be crawled",
        (
            Column("source", "source"),
            Column("failure", "failure"),
            number("count", "items"),
            Column("url", "first of them", absent="in the crawl database"),
            Column("message", "what was said", absent="nothing"),
        ),
        rows,
        note="With run --keep-data every item is in the crawl database: tables history and errors.",
        empty="",
    )
