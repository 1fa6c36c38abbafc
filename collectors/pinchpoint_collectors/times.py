"""Instants as people and JSON write them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(time_ns: int) -> str:
    """UTC nanoseconds as ISO text with milliseconds: ``2026-01-01T00:00:00.000Z``."""
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
