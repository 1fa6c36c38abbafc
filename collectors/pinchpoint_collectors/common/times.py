"""Formats times in UTC as text."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc(time_ns: int | None = None) -> str:
    """Return UTC nanoseconds as ISO text with milliseconds: ``2026-01-01T00:00:00.000Z``; by default now."""
    return iso((time.time_ns() if time_ns is None else time_ns) / 1e9)


def iso(time_s: float, timespec: str = "milliseconds") -> str:
    """Return UTC seconds as ISO text. ``timespec`` is that of ``datetime.isoformat``."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
