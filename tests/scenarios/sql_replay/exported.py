"""Extended Events as SQL Server exports them (shapes as its manual and its tools have them; data made up)."""

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
    """One event: what was sent, by whom, when it ended (s from the begin), how long it took (s)."""

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
        """The field that has the text."""
        return "batch_text" if self.name == "sql_batch_completed" else "statement"

    @property
    def time(self) -> datetime:
        """When it ended."""
        return BEGINS + timedelta(seconds=self.at_s)

    @property
    def duration_us(self) -> int:
        """How long it took."""
        return round(self.duration_s * 1e6)


def exported_csv(events: Iterable[Happened]) -> str:
    """As Management Studio exports its table of events: local times, a column for UTC, NULL for nothing."""
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
