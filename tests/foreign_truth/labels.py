"""Read ``labels.csv`` of a folder of labelled recordings, with one row per recording.

| column | content |
| --- | --- |
| `case` | name of the case, unique in the folder |
| `set` | the set that it is counted in |
| `file` | the recording, relative to the folder; several are separated by spaces |
| `kind` | the kind of file, as `pinchpoint import --kind` has it; empty: its first lines decide |
| `map` | the mapping of a CSV, relative to the folder; empty: none |
| `disks` | the purposes of disks as `--disk` has them, separated by spaces; empty: not known |
| `answer` | the limiting resource of ``ANSWERS``, or `healthy` |
| `host` | the limiting host; empty: any host is right |
| `from`, `to` | time of the limit (ISO 8601, UTC); empty: the whole recording |

Columns `kind`, `map`, `disks`, `host`, `from` and `to` are optional.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pinchpoint.base.errors import InputError

LABELS = "labels.csv"
HEALTHY = "healthy"
WORSE = "worse"
ELSEWHERE = "elsewhere"
ANSWERS = {
    "cpu": ("cpu", "thread"),
    "thread": ("thread", "cpu"),
    "memory": ("memory",),
    "disk": ("disk",),
    "network": ("network",),
    "lock": ("lock",),
    "pool": ("pool",),
    ELSEWHERE: ("dependency", "lock", "pool"),
    HEALTHY: (),
    WORSE: (),
}
"""Answer -> the resources of a verdict that are right. ``worse`` labels a fault without a known resource: an
all-clear is wrong."""
NEEDED = ("case", "set", "file", "answer")
LAYOUT = "tests/foreign_truth/README.md has the layout"


@dataclass(frozen=True, slots=True)
class Label:
    """One row of ``labels.csv``; the module's docstring explains the columns."""

    case: str
    set: str
    files: tuple[Path, ...]
    kind: str | None
    mapping: Path | None
    disks: tuple[str, ...]
    answer: str
    host: str
    from_s: float | None
    to_s: float | None


def read_labels(folder: Path) -> list[Label]:
    """Return the rows of a folder's labels. Raises InputError with file, line and field."""
    path = folder / LABELS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}; {LAYOUT}") from error
    if not rows:
        raise InputError(f"{path}: no row; {LAYOUT}")
    missing = [name for name in NEEDED if name not in rows[0]]
    if missing:
        raise InputError(f"{path}:1: no column {', '.join(missing)}; needed: {', '.join(NEEDED)}")
    found = [_label(folder, f"{path}:{line}", row) for line, row in enumerate(rows, 2)]
    names = [label.case for label in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"{path}: case: found {twice!r} twice; each case has a name of its own")
    return found


def _label(folder: Path, place: str, row: dict[str, str]) -> Label:
    if row["answer"] not in ANSWERS:
        raise InputError(f"{place}: answer: found {row['answer']!r}; allowed: {', '.join(ANSWERS)}")
    files = tuple(folder / name for name in row["file"].split())
    mapping = folder / row["map"] if row.get("map") else None
    for path in (*files, *([mapping] if mapping else [])):
        if not path.is_file():
            raise InputError(f"{place}: no file {path}")
    return Label(
        case=row["case"],
        set=row["set"],
        files=files,
        kind=row.get("kind") or None,
        mapping=mapping,
        disks=tuple((row.get("disks") or "").split()),
        answer=row["answer"],
        host=row.get("host") or "",
        from_s=_time_s(place, "from", row),
        to_s=_time_s(place, "to", row),
    )


def _time_s(place: str, field: str, row: dict[str, str]) -> float | None:
    text = row.get(field)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise InputError(
            f"{place}: {field}: found {text!r}; allowed: a time in UTC as 2026-11-20T09:00:00"
        ) from error
