"""Hold one row of the benchmark; print it when it is known and write it as JSON."""

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
    """One figure, with the peer's figure if there is one.

    Attributes:
        name: name of the measured quantity.
        value: Pinchpoint's figure, in ``unit``; None: not measured.
        unit: s, us, 1/s or x.
        peer: name of the program compared with; None: no comparison.
        peer_value: the peer's figure, in ``unit``.
        ratio: Pinchpoint's figure divided by the peer's; with pairs, the median of their ratios.
        goal: bound on the ratio, or on the value if there is no peer; None: no bound.
        at_most: True if the goal is an upper bound.
        met: True if the goal was reached or there is no goal.
        note: reason why the figure was not measured, or a remark on it.
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
        """Return the row in the format of bench.json (DESIGN.md section 2); an empty ``note`` is left out."""
        names = ("name", "value", "unit", "peer", "peer_value", "ratio", "goal", "met")
        found = {name: getattr(self, name) for name in names}
        return found | {"note": self.note} if self.note else found


def heading() -> str:
    """Return the table's header lines."""
    return _line(_HEADINGS) + "\n" + _line(["-" * width for width in _WIDTHS])


def line(row: Row) -> str:
    """Return one line of the table, followed by the note if there is one."""
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
