"""What of a capture was replayed, and why not all of it."""

from __future__ import annotations

from collections import Counter

from pinchpoint.report.tables import Column, Table, number
from pinchpoint.store.read import StoredRun

_EVENT = "replayed"


def replayed(run: StoredRun) -> Table:
    """One row per scenario and what became of its captured statements, all workers together."""
    totals: dict[str, Counter[str]] = {}
    for event in run.events:
        if event.get("event") == _EVENT:
            total = totals.setdefault(str(event.get("scenario")), Counter())
            total["captured"] += event["captured"]
            total["executed"] += event["executed"]
            total.update({f"not executed: {cause}": count for cause, count in event["differences"].items()})
            total.update(
                {f"executed, failed: {outcome}": count for outcome, count in event["failed"].items()}
            )
    rows = [
        {"scenario": scenario, "what": what, "statements": count}
        for scenario, total in totals.items()
        for what, count in total.items()
    ]
    return Table(
        "replayed",
        "Captured and replayed",
        (
            Column("scenario", "scenario"),
            Column("what", "statements that were"),
            number("statements", "count"),
        ),
        rows,
        note="Captured is executed and what was not executed; what failed was executed. From the warm-up on.",
        empty="",  # most runs replay no capture
    )
