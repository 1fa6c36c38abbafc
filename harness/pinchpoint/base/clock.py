"""Converts times between ISO text and UTC seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_of(text: str) -> float:
    """Return the UTC seconds of an ISO time. A time without a zone counts as UTC."""
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
