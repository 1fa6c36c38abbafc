"""The other side as the base's model has it, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint.base import units
from pinchpoint.report.tables import Column, Table, number

Row = Mapping[str, Any]


def tables(content: Row) -> Iterator[Table]:
    """The prediction beside the measurement; nothing where nobody asked for one."""
    found = content["what_if"]
    if found is None:
        return
    base, other = content["base"]["label"], content["other"]["label"]
    notes = " ".join([*found["notes"], "Of the first run of each side."])
    why = str(found["why_none"] or "no scenario was run").rstrip(".")
    yield Table(
        "what_if",
        f"What if: {other} predicted from {base} alone",
        (
            Column("scenario", "scenario"),
            number("base_per_s", f"measured in {base}", units.per_second),
            number("predicted_per_s", "predicted", units.per_second),
            number("interval_per_s", "between", _range, absent="not known"),
            number("measured_per_s", f"measured in {other}", units.per_second),
            number("error_ratio", "prediction off by", _signed),
        ),
        found["rows"],
        note=notes,
        empty=f"Nothing was predicted: {why}. {notes}"
        if found["notes"]
        else f"Nothing was predicted: {why}.",
    )


def _range(ends: Sequence[float]) -> str:
    return " to ".join(units.per_second(end) for end in ends)


def _signed(ratio: float) -> str:
    return f"{'+' if ratio > 0 else ''}{units.percent(ratio)}"
