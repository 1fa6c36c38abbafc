"""One Extended Event of SQL Server, whatever it was exported to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ..errors import ScenarioError
from .captured import Entry
from .files import LOST

BEGIN, COMMIT, ROLLBACK = "BEGIN TRANSACTION", "COMMIT", "ROLLBACK"

WHOLE: Mapping[str, str] = {"rpc_completed": "statement", "sql_batch_completed": "batch_text"}
"""Events that are what an application sent -> where its text is."""
PARTS: Mapping[str, str] = {"sql_statement_completed": "statement", "sp_statement_completed": "statement"}
"""Events that are statements of what an application sent."""
MANAGED: Mapping[str, str] = {
    "begin_tran_completed": BEGIN,
    "commit_tran_completed": COMMIT,
    "rollback_tran_completed": ROLLBACK,
}
"""Events of transactions that a driver begins and ends by requests of their own, which have no text."""
LOGOUT = "logout"
"""The event of a connection's end, and why its entry is no statement; a pool that keeps it ends none."""
_CACHED = ("true", "1")
_RESULTS = ("", "0", "ok")
_HIDDEN = "The text has been replaced with this comment for security reasons."
_US = 1_000_000
_OFFSET = re.compile(r"\s+(?=[+-]\d\d:?\d\d$)")


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it was exported.

    Attributes:
        place: ``FILE:LINE`` where it begins.
        name: of the event: ``rpc_completed``.
        time: when it happened, as it is written.
        fields: its fields and actions, by name; of a field that has a text beside its number, the text.
    """

    place: str
    name: str
    time: str
    fields: Mapping[str, str]


def entry_of(event: Event) -> Entry | None:
    """The statement an event tells of; None: of none that is replayed. Raises ``ScenarioError``.

    Of the end of a connection the entry has no text, and ``LOGOUT`` for the cause.
    """
    session = event.fields.get("session_id", "")
    if _ends_connection(event):
        return Entry(session, "", _ended_s(event), 0.0, None, left_out=LOGOUT)
    where = WHOLE.get(event.name) or PARTS.get(event.name)
    if where is None and event.name not in MANAGED:
        return None
    if not session:
        raise ScenarioError(
            f"{event.place}: {event.name} without session_id; needed: events captured with "
            "ACTION (sqlserver.session_id, sqlserver.database_name, sqlserver.transaction_id)"
        )
    text = event.fields.get(where, "") if where else MANAGED[event.name]
    return Entry(
        session,
        event.fields.get("database_name") or event.fields.get("database_id", ""),
        _ended_s(event),
        _whole_number(event, "duration", otherwise=0 if event.name in MANAGED else None) / _US,
        text or None,
        left_out=_left_out(event, text),
        transaction=_whole_number(event, "transaction_id", otherwise=0),
    )


def _ends_connection(event: Event) -> bool:
    return event.name == LOGOUT and event.fields.get("is_cached", "").strip().lower() not in _CACHED


def _left_out(event: Event, text: str) -> str | None:
    if event.fields.get("result", "").lower() not in _RESULTS:
        return "failed_when_captured"
    if not text:
        return "no_text"
    if LOST in text:
        return "letters_lost"
    return "hidden_by_the_server" if _HIDDEN in text else None


def _ended_s(event: Event) -> float:
    """When it happened, in seconds. Without a zone it is UTC: all events of a file have the same."""
    try:
        time = datetime.fromisoformat(_OFFSET.sub("", event.time.strip()))
    except ValueError as error:
        raise ScenarioError(
            f"{event.place}: {event.name}: the time {event.time!r}; allowed: as in 2026-11-21T20:15:00.123Z "
            "or 2026-11-21 20:15:00.1230000"
        ) from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _whole_number(event: Event, field: str, otherwise: int | None = None) -> int:
    found = event.fields.get(field, "").strip()
    if not found and otherwise is not None:
        return otherwise
    if not found.isdecimal():
        what = f"{field} {found!r}" if found else f"no {field}"
        raise ScenarioError(f"{event.place}: {event.name} with {what}; allowed: a whole number")
    return int(found)
