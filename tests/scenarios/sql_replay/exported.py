"""Extended Events as SQL Server exports them (shapes as its manual and its tools have them; data made up)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape

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


def xml(each: Happened) -> str:
    """As ``sys.fn_xe_file_target_read_file`` gives it in ``event_data``."""
    numbers = {"OK": 0, "Error": 1, "Abort": 2}
    stamp = each.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return (
        f'<event name="{each.name}" package="sqlserver" timestamp="{stamp}">'
        f'<data name="cpu_time"><value>0</value></data>'
        f'<data name="duration"><value>{each.duration_us}</value></data>'
        f'<data name="result"><value>{numbers[each.result]}</value><text>{each.result}</text></data>'
        f'<data name="{each.field}"><value>{escape(each.text)}</value></data>'
        f'<action name="transaction_id" package="sqlserver"><value>{each.transaction}</value></action>'
        f'<action name="session_id" package="sqlserver"><value>{each.session}</value></action>'
        f'<action name="database_name" package="sqlserver"><value>{each.database}</value></action></event>'
    )


def ring_buffer(events: Iterable[Happened]) -> str:
    """As ``CAST(target_data AS xml)`` of a ring buffer has them: with types, and texts that are empty."""
    inside = "\n".join(
        xml(each)
        .replace("<value>", '<type name="x" package="package0"></type><value>')
        .replace("</value></data>", "</value><text></text></data>")
        for each in events
    )
    return f'<?xml version="1.0"?>\n<RingBufferTarget truncated="0">\n{inside}</RingBufferTarget>'


def rows_as_csv(events: Iterable[Happened], delimiter: str = ",") -> str:
    """Rows of ``sys.fn_xe_file_target_read_file``, saved as CSV."""
    found = io.StringIO()
    rows = csv.writer(found, delimiter=delimiter)
    rows.writerow(["module_guid", "object_name", "event_data", "file_offset"])
    rows.writerows(["CE79811F-1A80", each.name, xml(each), 1024] for each in events)
    return found.getvalue()


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
