"""Formats a count with its noun in the singular or the plural."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return ``1 crawl`` or ``2,584 counters``. ``plural`` is needed if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
