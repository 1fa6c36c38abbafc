"""Lists the SQL statements with the most time in the measure phase, by the database's own counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.text import titled
from pinchpoint.base.wording import capitalised
from pinchpoint.report.tables import Table, columns
from pinchpoint.store.read import StoredRun

MOST = 10
"""Largest number of statements listed per server. All further statements are added up."""
LENGTH = 200
"""Largest number of letters of a statement in the table. The manifest has more of the text."""
HIDDEN = "(hidden from the collector's role)"


def top_statements(run: StoredRun) -> Table:
    """Build the table of statements, the most time first, with the share of the time of all statements."""
    servers = run.manifest.get("statements") or ()
    return Table(
        "statements",
        "Top SQL statements",
        columns(
            "host",
            "text: statement",
            "database: database | -",
            "time_s: time",
            "ratio: of all statements | -",
            "calls number",
            "mean_s: per call",
            "rows number: rows | -",
        ),
        [row for server in servers for row in _rows(server)],
        note=" ".join(_notes(servers)),
        empty=" ".join(_missing(servers)),  # most farms have no database that reports statements
    )


def statements_text(run: StoredRun) -> str:
    """Return the table of statements as text for the terminal; "" if no database reported any."""
    table = top_statements(run)
    lines = [
        f"{units.seconds(row['time_s'])} ({units.percent(row['ratio'])}), {row['calls']:,.0f} calls of "
        f"{units.seconds(row['mean_s'])} on {row['host']}: {row['text']}"
        for row in table.rows
    ]
    return titled(f"{table.title}:", [*lines, *_missing(run.manifest.get("statements") or ())])


def _rows(server: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    listed = [one for one in server.get("statements") or () if one["calls"]]
    total_s = server.get("time_s")
    for one in listed[:MOST]:
        text = one.get("text") or HIDDEN
        yield {
            **one,
            "host": server["host"],
            "text": text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…",
            "ratio": one["time_s"] / total_s if total_s else None,
            "mean_s": one["time_s"] / one["calls"],
        }
    rest = (server.get("count") or len(listed)) - min(len(listed), MOST)
    if rest > 0 and total_s is not None:
        time_s = max(0.0, total_s - sum(one["time_s"] for one in listed[:MOST]))
        calls = (server.get("calls") or 0.0) - sum(one["calls"] for one in listed[:MOST])
        yield {
            "host": server["host"],
            "text": f"{rest} other statement" + "s" * (rest > 1),
            "database": None,
            "time_s": time_s,
            "ratio": time_s / total_s if total_s else None,
            "calls": max(0.0, calls),
            "mean_s": time_s / calls if calls > 0 else None,
            "rows": None,
        }


def _notes(servers: Any) -> Iterator[str]:
    if any(server.get("statements") for server in servers):
        yield (
            "Over the measure phase: the server's own counters at its end less those at its begin. Constants "
            "are left out; time includes waiting."
        )
    if any(server.get("statements") and server["kind"] == "postgres" for server in servers):
        yield "PostgreSQL counts the time of a commit only where COMMIT is a statement of its own."
    yield from _missing(servers)


def _missing(servers: Any) -> Iterator[str]:
    for server in servers:
        if server.get("why"):
            remedy = f" {capitalised(server['remedy'])}." if server.get("remedy") else ""
            yield f"Not measured on {server['host']}: {server['why']}.{remedy}"
        elif not server.get("statements"):
            yield f"{server['host']}: no statement ended in the measure phase."
