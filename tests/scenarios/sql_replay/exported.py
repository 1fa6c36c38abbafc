"""Extended Events as SQL Server exports them (format of its manual and tools, made-up data)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

COLUMNS = ("batch_text", "statement", "duration", "result", "session_id", "database_name", "transaction_id")
BEGINS = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)


@dataclass(frozen=True)
class Happened:
    """One event: text, session, end (seconds from the start) and duration (seconds)."""

    text: str
    at_s: float
    session: int = 51
    duration_s: float = 0.01
    name: str = "sql_batch_completed"
    transaction: int = 0
    result: str = "OK"
    database: str = "shop"

    @property
    def field(self) -> str:
        """Name of the field with the text."""
        return "batch_text" if self.name == "sql_batch_completed" else "statement"

    @property
    def time(self) -> datetime:
        """Time of the end."""
        return BEGINS + timedelta(seconds=self.at_s)

    @property
    def duration_us(self) -> int:
        """Duration in microseconds."""
        return round(self.duration_s * 1e6)


def exported_csv(events: Iterable[Happened]) -> str:
    """Return the events in Management Studio's export format: local times, a UTC column, NULL."""
    found = io.StringIO()
    rows = csv.writer(found)
    rows.writerow(["name", "timestamp", "timestamp (UTC)", *COLUMNS])
    for each in events:
        utc = each.time.strftime("%Y-%m-%d %H:%M:%S.%f0")
        local = (each.time - timedelta(hours=5)).strftime("%Y-%m-%d %H:%M:%S.%f0")
        texts = (each.text, "NULL") if each.field == "batch_text" else ("NULL", each.text)
        where = (each.session, each.database, each.transaction)
        rows.writerow([each.name, local, utc, *texts, each.duration_us, each.result, *where])
    return found.getvalue()
