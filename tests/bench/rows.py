"""A row of the benchmark: printed as it is known, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEADINGS = ("what", "ours", "unit", "peer", "its", "ratio", "goal", "met")
_WIDTHS = (52, 10, 5, 10, 10, 7, 8, 4)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside the peer's.

    Attributes:
        name: what was measured.
        value: ours, in ``unit``; None: not measured.
        unit: s, us, 1/s or x.
        peer: what it is compared with; None: nothing.
        peer_value: the peer's, in ``unit``.
        ratio: ours to the peer's, the median of the pairs where there are pairs.
        goal: the bound on the ratio, or on the value where there is no peer; None: there is none.
        at_most: whether the goal is an upper bound.
        met: whether the goal was reached; true if there is none.
        note: why it was not measured, or what else must be known.
    """

    name: str
    value: float | None
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    goal: float | None = None
    at_most: bool = True
    met: bool = True
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """As in bench.json (DESIGN.md section 2); ``note`` only where there is one."""
        names = ("name", "value", "unit", "peer", "peer_value", "ratio", "goal", "met")
        found = {name: getattr(self, name) for name in names}
        return found | {"note": self.note} if self.note else found


def heading() -> str:
    """The table's first lines."""
    return _line(_HEADINGS) + "\n" + _line(["-" * width for width in _WIDTHS])


def line(row: Row) -> str:
    """A row of the table, and its note below."""
    goal = "" if row.goal is None else f"{'<=' if row.at_most else '>='} {row.goal:.2f}"
    cells = (
        row.name,
        "not measured" if row.value is None else _number(row.value),
        row.unit,
        row.peer or "",
        _number(row.peer_value),
        _number(row.ratio),
        goal,
        "yes" if row.met else "NO",
    )
    return _line(cells) + (f"\n  {row.note}" if row.note else "")


def write(rows: Sequence[Row], path: Path) -> None:
    """Write bench.json."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n", encoding="utf-8")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _line(cells: Sequence[str]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()
