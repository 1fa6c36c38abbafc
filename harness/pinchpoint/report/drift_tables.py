"""What changed over a soak, as people read it."""

from __future__ import annotations

from pinchpoint.base import units
from pinchpoint.report.tables import Column, Row, Table, number, share


def drift(verdict: Row) -> Table:
    """From the first tenth of the measure phase to its last; what changed comes first."""
    order = {"rises": 0, "falls": 0, "steady": 1, None: 2}
    rows = [
        {
            **row,
            "of": " ".join(part for part in (row["of"], row["instance"]) if part),
            "first": None if row["first"] is None else units.of_metric(row["metric"], row["first"]),
            "last": None if row["last"] is None else units.of_metric(row["metric"], row["last"]),
        }
        for row in sorted(verdict.get("drift") or (), key=lambda row: order[row["trend"]])
    ]
    return Table(
        "drift",
        "What changed over the soak",
        (
            Column("of", "of"),
            Column("metric", "figure"),
            number("first", "first tenth"),
            number("last", "last tenth"),
            share("change_ratio", "change"),
            Column("trend", "trend"),
        ),
        rows,
        note="A trend is named where the first and the last tenth of the time differ by 10 % or more and the "
        "tenths between them stand in that order (Kendall's tau, p < .01).",
        empty="",  # most loads are no soak
    )
