"""Whether a manifest has the form in which Pinchpoint writes it: else every reader would stumble over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

OBJECTS = ("plan", "farm", "hosts", "versions", "data_quality")
LISTS = ("phases", "steps", "generators", "collectors", "imports")
"""Of objects, as are the values of ``hosts``."""
LEVEL = ("scenario", "level", "unit", "from", "to")
NAMES: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a number",
    float: "a number",
}


def faults(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What is not as it is written: ``FIELD: what was found; what is allowed``. Null is as good as absent."""
    for name in OBJECTS:
        yield from _not(name, manifest.get(name), dict)
    for name in LISTS:
        yield from _not(name, manifest.get(name), list)
    hosts = manifest.get("hosts")
    for host, facts in hosts.items() if isinstance(hosts, dict) else ():
        yield from _not(f"hosts.{host}", facts, dict)
    for name in LISTS:
        rows = manifest.get(name)
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            place = f"{name}[{number}]"
            yield from [f"{place}: found null; allowed: an object"] if row is None else _not(place, row, dict)
            if isinstance(row, dict) and name in {"phases", "steps"}:
                yield from _stretch(place, row, LEVEL if name == "steps" else ())


def _stretch(place: str, row: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[str]:
    """A phase or a level: its fields, and its two times."""
    yield from (f"{place}.{name}: missing" for name in needed if row.get(name) is None)
    for name in ("from", "to"):
        text = row.get(name)
        if text is not None and not _is_time(text):
            yield f"{place}.{name}: found {text!r}; allowed: a time such as 2026-01-01T00:00:00Z"


def _not(place: str, value: Any, wanted: type) -> Iterator[str]:
    if value is not None and not isinstance(value, wanted):
        yield f"{place}: found {NAMES.get(type(value), type(value).__name__)}; allowed: {NAMES[wanted]}"


def _is_time(text: Any) -> bool:
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True
