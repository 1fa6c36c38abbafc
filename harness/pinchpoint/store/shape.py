"""Whether a manifest has the form in which Pinchpoint writes it: else every reader would stumble over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

OBJECTS = ("plan", "farm", "hosts", "versions", "data_quality")
LISTS = ("phases", "steps", "generators", "collectors", "imports")
"""Of objects, as are the values of ``hosts``."""
LEVEL = ("scenario", "level", "unit", "from", "to")
LOADS: Mapping[str, tuple[str, ...]] = {
    "closed": ("users",),
    "open": ("rate_per_s",),
    "soak": ("rate_per_s",),
    "burst": ("base_per_s", "peak_per_s", "every_s", "for_s"),
    "ramp": ("start", "to", "over_s"),
    "steps": ("start", "step", "each_s", "until"),
}
"""Load model -> what a scenario's load says of itself in any case."""
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
    yield from _scenarios(manifest.get("plan"))


def _scenarios(plan: Any) -> Iterator[str]:
    """What a plan was to do, of which a recording that was imported has none."""
    planned = plan.get("scenarios") if isinstance(plan, dict) else None
    yield from _not("plan.scenarios", planned, dict)
    for name, given in planned.items() if isinstance(planned, dict) else ():
        place = f"plan.scenarios.{name}"
        load = given.get("load") if isinstance(given, dict) else given
        if not isinstance(load, dict):
            place = f"{place}.load" if isinstance(given, dict) else place
            yield from [f"{place}: missing"] if load is None else _not(place, load, dict)
            continue
        needed = LOADS.get(str(load.get("model")))
        if needed is None:
            yield f"{place}.load.model: found {load.get('model')!r}; allowed: {', '.join(LOADS)}"
        yield from (f"{place}.load.{each}: missing" for each in needed or () if load.get(each) is None)


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
