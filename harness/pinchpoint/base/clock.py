"""Converts instants between text and seconds of UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_of(text: str) -> float:
    """UTC seconds of an ISO time; a time without a zone is UTC."""
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
