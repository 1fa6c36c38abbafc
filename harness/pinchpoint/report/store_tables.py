"""What NoSQL stores tell of themselves, as people read it."""

from __future__ import annotations

from pinchpoint.base import units
from pinchpoint.report.tables import Column, Row, Table, number


def stores(verdict: Row) -> Table:
    """Logs, compactions, queues and connections, by the stores' own account."""
    rows = [
        {
            **row,
            **{
                name: None if row[name] is None else units.of_metric(row["metric"], row[name])
                for name in ("mean", "max")
            },
        }
        for row in verdict.get("stores") or ()
    ]
    return Table(
        "stores",
        "What the stores say of themselves",
        (
            Column("host", "host"),
            Column("of", "what"),
            number("mean", "mean"),
            number("max", "most"),
            Column("metric", "metric"),
            Column("instance", "of", absent=""),
        ),
        rows,
        note="Over the measure phase, by the store's own account: its collector asks it once a second.",
        empty="",  # most farms have no store that is asked
    )
