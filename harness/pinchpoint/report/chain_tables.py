"""The chain behind a verdict as tables: what was considered, and what gave way when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint.report.tables import Column, Row, Table, share

_HELD: Mapping[bool | None, str] = {True: "yes", False: "no", None: "?"}


def considered(verdict: Row) -> Table:
    """Every resource with the four kinds of evidence, the most used first."""
    rows = [
        {**row, **{check["evidence"]: _HELD[check["holds"]] for check in row["checks"]}}
        for row in (verdict.get("explanation") or {}).get("considered") or ()
    ]
    return Table(
        "considered",
        "What was considered",
        (
            Column("name", "resource"),
            share("used_ratio", "used"),
            *(Column(kind, kind) for kind in ("E1", "E2", "E3", "E4")),
            Column("why", "why it is, or is not, the answer"),
        ),
        rows,
        note="E1: it is used up. E2: its queue grows with the load. E3: its ceiling fits what was reached. "
        'E4: somebody else says so. "?": could not be told. `pinchpoint analyse --explain` has the figures.',
        empty="",  # a run without a measured window
    )


def periods(verdict: Row) -> Table:
    """What was used up when; left out where it was one thing all the time."""
    found = verdict.get("timeline") or ()
    rows = [_period(row, *span) for row, span in zip(found, spans(found), strict=True)]
    return Table(
        "periods",
        "What gave way when",
        (
            Column("from", "from (UTC)"),
            Column("to", "to"),
            Column("level", "load", absent="-"),
            Column("what", "used up"),
        ),
        rows if len(rows) > 1 else [],
        note="Told in parts of ten seconds at least, or by the levels of a load in steps."
        if verdict.get("scenarios")
        else "The longest times of half a minute or more; several things may be used up at once.",
        empty="",  # most runs have one answer
    )


def spans(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Begin and end of each row in UTC; with the day, where they are not all of one."""
    days = {row[end][:10] for row in rows for end in ("from", "to")}
    first = len("2026-11-20T") if len(days) == 1 else 0
    return [(row["from"][first:19].replace("T", " "), row["to"][first:19].replace("T", " ")) for row in rows]


def owner(row: Row) -> str:
    """Whose it is: tier and role, and the host, of which a tier may have several."""
    place = ".".join(str(row[name]) for name in ("tier", "role") if row[name])
    return f"{place} ({row['host']})" if place and row["host"] else place or str(row["host"] or "")


def _period(row: Row, begin: str, end: str) -> dict[str, Any]:
    what = f"{owner(row) or row['instance']}: {row['kind']}" if row["kind"] else "nothing"
    return {"from": begin, "to": end, "level": row["level"], "what": what}
