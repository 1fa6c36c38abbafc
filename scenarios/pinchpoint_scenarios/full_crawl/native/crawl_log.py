"""Reads SharePoint's crawl log.

Microsoft documents the tables but not the names of their columns. A column is used if its name is
unambiguous; otherwise the figure is not measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

_LATENCY = re.compile(r"repository.*latency|latency.*repository", re.IGNORECASE)
_MESSAGE = re.compile(r"message", re.IGNORECASE)
_COUNT = re.compile(r"count", re.IGNORECASE)
_NAMED = re.compile(r"name", re.IGNORECASE)
_LONGEST = 200  # largest number of characters of a message that are kept


def latency_s(history: Iterable[Row]) -> float | None:
    """Return the mean repository latency of a crawl in seconds, from GetCrawlHistory; None: not measured.

    The crawl history shows it in milliseconds.
    """
    result = [value for row in history if (value := _number(row, _LATENCY)) is not None]
    return result[0] / 1000 if result else None


def latency_missing(history: Iterable[Row]) -> str:
    """Return why ``latency_s`` is None, and where the figure can be read."""
    columns = list(dict.fromkeys(column for row in history for column in row))
    had = (
        f"no column of repository latency; it has {', '.join(columns)}" if columns else "no row of this crawl"
    )
    return (
        f"repository latency is not measured: the crawl history has {had}. "
        "Central Administration shows it (Crawl Health Reports)"
    )


def failures(errors: Iterable[Row], count: int) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Return how often items of a crawl failed by reason, from GetCrawlErrors.

    Args:
        errors: messages with their counts, from the whole crawl log of the source.
        count: number of failures of this crawl.

    Returns:
        Failures are listed by message if the messages account for this crawl's failures, and otherwise all
        under ``error``. Each message is also one entry of the crawl's log.
    """
    reported: dict[str, int] = {}
    for row in errors:
        message, times = _text(row, _MESSAGE), _number(row, _COUNT)
        if message and times:
            reported[message] = reported.get(message, 0) + int(times)
    by_kind = reported if reported and sum(reported.values()) == count else {"error": count} if count else {}
    kinds = by_kind if by_kind is reported else dict.fromkeys(reported, "error")
    log = [
        {
            "url": None,
            "failure": message if kinds is reported else "error",
            "message": message,
            "attempts": None,
            "ended": None,
        }
        for message in reported
    ]
    return dict(by_kind), log


def items(rows: Iterable[Row]) -> list[str]:
    """Return the number of indexed items, as a phrase for each source.

    The figures are from GetCrawlStatisticsByContentSource.
    """
    phrases = []
    for row in rows:
        name = _text(row, _NAMED)
        counts = [f"{column} {value:,}" for column, value in row.items() if _is_count(column, value)]
        if name and counts:
            phrases.append(f"{name}: {', '.join(counts)}")
    return phrases


def _is_count(column: str, value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and bool(_COUNT.search(column)) and value > 0


def _number(row: Row, name: re.Pattern[str]) -> float | None:
    for column, value in row.items():
        if name.search(column) and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _text(row: Row, name: re.Pattern[str]) -> str | None:
    for column, value in row.items():
        if name.search(column) and isinstance(value, str) and value.strip():
            return " ".join(value.split())[:_LONGEST]
    return None
