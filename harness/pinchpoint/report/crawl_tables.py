"""Where a crawled document's time went, which pool was full, and what could not be crawled."""

from __future__ import annotations

from typing import Any

from pinchpoint.analysis.crawls import STAGES
from pinchpoint.report.tables import Column, Row, Table, duration, number, share

_TITLES = {"politeness": "waiting for its turn", "enumerate": "enumeration", "crawl_db": "crawl database"}


def stages(verdict: Row) -> Table:
    """One row per content source, and one for where documents go."""
    rows: list[dict[str, Any]] = [
        {**row, **(row.get("stages") or {})} for row in verdict.get("crawl") or () if row.get("stages")
    ]
    rows += _destinations(verdict)
    there = [stage for stage in STAGES if any(stage in row for row in rows)]
    return Table(
        "crawl_stages",
        "Where a document's time went, and which pool was full",
        (
            Column("source", "source"),
            *(duration(stage, _TITLES.get(stage, stage)) for stage in there),
            number("workers_busy", "busy"),
            number("workers", "of at most"),
            share("workers_busy_ratio", "pool full"),
        ),
        rows,
        note="All attempts of a stage ÷ documents. Busy: mean number of workers on a source while it was "
        "crawled, over its own limit of workers, or the users of the load where it has none; of where "
        "documents go, mean number of requests there, over their limit, or the users.",
        empty="",
    )


def _destinations(verdict: Row) -> list[dict[str, Any]]:
    """The pool of requests to where documents go, of each crawl; its sources all tell the same."""
    found: list[Row] = []
    for row in verdict.get("crawl") or ():
        destination = row.get("destination")
        if destination and destination not in found:
            found.append(destination)
    return [
        {
            "source": "(where documents go)",
            "workers_busy": each["busy"],
            "workers": each["limit"],
            "workers_busy_ratio": each["busy_ratio"],
        }
        for each in found
    ]


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
