"""Reads SQL Server's Extended Events, exported as CSV, as the statements that applications sent.

Management Studio writes a column for each field and action, including ``name`` and ``timestamp``. A remote
procedure call is written as T-SQL with the same effect: ``exec dbo.place_order @customer=7``; with output
parameters ``declare @p1 int set @p1=13 exec sp_prepexec @p1 output,N'@P1 int',N'SELECT @P1',7 select @p1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path

from ..databases.servers.contract import MSSQL
from ..errors import ScenarioError
from ..sql_script.use_statements import find_use
from ..sql_script.values import delimiter_of
from .capture import LOST, LogEntry, csv_rows, opened, with_header

BEGIN, COMMIT, ROLLBACK = "BEGIN TRANSACTION", "COMMIT", "ROLLBACK"

WHOLE: Mapping[str, str] = {"rpc_completed": "statement", "sql_batch_completed": "batch_text"}
"""Event of a whole request of an application -> field with the text of the request."""
PARTS: Mapping[str, str] = {"sql_statement_completed": "statement", "sp_statement_completed": "statement"}
"""Events of single statements within an application's request."""
MANAGED: Mapping[str, str] = {
    "begin_tran_completed": BEGIN,
    "commit_tran_completed": COMMIT,
    "rollback_tran_completed": ROLLBACK,
}
"""Events of transactions that a driver begins and ends by requests without a text."""
LOGOUT = "logout"
"""Name of the event for the end of a connection, and why its entry is no statement. Pooled connections have
no such event."""
_CACHED = ("true", "1")
_RESULTS = ("", "0", "ok")
_HIDDEN = "The text has been replaced with this comment for security reasons."
_US = 1_000_000
_OFFSET = re.compile(r"\s+(?=[+-]\d\d:?\d\d$)")


@dataclass(frozen=True, slots=True)
class ExtendedEvent:
    """One exported event.

    Attributes:
        place: ``FILE:LINE`` of its start.
        name: name of the event: ``rpc_completed``.
        time: time of the event as written.
        fields: fields and actions by name. If a field has a text beside its number, the text is used.
    """

    place: str
    name: str
    time: str
    fields: Mapping[str, str]


def entry_of(event: ExtendedEvent) -> LogEntry | None:
    """Return the statement of an event; None if it is not replayed. Raises ``ScenarioError``.

    For the end of a connection, the entry has no text, and its cause is ``LOGOUT``.
    """
    session = event.fields.get("session_id", "")
    if _ends_connection(event):
        return LogEntry(session, "", _ended_s(event), 0.0, None, left_out=LOGOUT)
    where = WHOLE.get(event.name) or PARTS.get(event.name)
    if where is None and event.name not in MANAGED:
        return None
    if not session:
        raise ScenarioError(
            f"{event.place}: {event.name} without session_id; needed: events captured with "
            "ACTION (sqlserver.session_id, sqlserver.database_name, sqlserver.transaction_id)"
        )
    text = event.fields.get(where, "") if where else MANAGED[event.name]
    return LogEntry(
        session,
        event.fields.get("database_name") or event.fields.get("database_id", ""),
        _ended_s(event),
        _whole_number(event, "duration", otherwise=0 if event.name in MANAGED else None) / _US,
        text or None,
        left_out=_left_out(event, text),
        transaction=_whole_number(event, "transaction_id", otherwise=0),
    )


def _ends_connection(event: ExtendedEvent) -> bool:
    return event.name == LOGOUT and event.fields.get("is_cached", "").strip().lower() not in _CACHED


def _left_out(event: ExtendedEvent, text: str) -> str | None:
    if event.fields.get("result", "").lower() not in _RESULTS:
        return "failed_when_captured"
    if not text:
        return "no_text"
    if LOST in text:
        return "letters_lost"
    return "hidden_by_the_server" if _HIDDEN in text else None


def _ended_s(event: ExtendedEvent) -> float:
    """Return the time of the event in seconds.

    Without a zone it is UTC, because all events of a file have the same zone.
    """
    try:
        time = datetime.fromisoformat(_OFFSET.sub("", event.time.strip()))
    except ValueError as error:
        raise ScenarioError(
            f"{event.place}: {event.name}: the time {event.time!r}; allowed: as in 2026-11-21T20:15:00.123Z "
            "or 2026-11-21 20:15:00.1230000"
        ) from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _whole_number(event: ExtendedEvent, field: str, otherwise: int | None = None) -> int:
    result = event.fields.get(field, "").strip()
    if not result and otherwise is not None:
        return otherwise
    if not result.isdecimal():
        what = f"{field} {result!r}" if result else f"no {field}"
        raise ScenarioError(f"{event.place}: {event.name} with {what}; allowed: a whole number")
    return int(result)


_UTC = "timestamp (utc)"
_NULL = "NULL"


_LITERAL = r"N?'(?:[^']|'')*'"
_SET = rf"set\s+@\w+\s*=\s*(?:{_LITERAL}|[^\s';]+)"
_DECLARED = rf"(?:(?:declare\s+@\w+\s+[\w.]+(?:\([^)]*\))?|{_SET})\s*+(?:;\s++|(?<=\s)))*"
"""Declarations before a call. The pattern can match in only one way; otherwise 30 lines would have 2^30
ways."""
_CALL = re.compile(rf"(?is)\s*{_DECLARED}exec(?:ute)?\s+(?P<name>[\w.\[\]$#]++)(?!\s*\()")
"""Name of a procedure. Parentheses after it are excluded, because other servers use them to execute a
prepared statement."""
_HANDED_OVER = re.compile(
    rf"(?is)\s*exec(?:ute)?\s+(?:sys\.)?sp_executesql\s+(?:@\w+\s*=\s*)?(?P<text>{_LITERAL})"
)

_PREPARED = re.compile(
    rf"(?is)\s*declare\s+@\w+\s+int\s+set\s+@\w+\s*=\s*(?P<handle>\S+)\s+"
    rf"exec\s+(?P<how>sp_prepexec|sp_prepare)\s+@\w+\s+output\s*,\s*"
    rf"(?P<types>NULL|{_LITERAL})\s*,\s*(?P<text>{_LITERAL})(?P<values>.*?)(?:\s+select\s+@\w+)?\s*"
)
_EXECUTED = re.compile(r"(?is)\s*exec\s+sp_execute\s+(?P<handle>\d+)(?P<values>.*)")
_FORGOTTEN = "sp_unprepare"
_RESET = "sp_reset_connection"
_CURSOR = "sp_cursor"


def called(text: str) -> str | None:
    """Return the procedure of a text that consists of one call; otherwise None."""
    match = _CALL.match(text)
    return match["name"].replace("[", "").replace("]", "") if match else None


def handed_over(text: str) -> str | None:
    """Return the statement that a call of ``sp_executesql`` executes; None for another call."""
    match = _HANDED_OVER.match(text)
    return _unquoted(match["text"]) if match else None


def resets(text: str) -> bool:
    """Return whether a pool passes the connection to its next user, which resets the session's state."""
    return (called(text) or "").lower().rpartition(".")[2] == _RESET


class Handles:
    """The prepared statements of one session. Their numbers differ when they are prepared again.

    A statement that was prepared and executed by number therefore becomes ``sp_executesql``, which has no
    number.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def replayable(self, entry: LogEntry) -> LogEntry:
        """Return the entry in a form that can be replayed, or with the reason why it cannot."""
        procedure = called(entry.text or "")
        if entry.text is None or procedure is None:
            return entry
        name = procedure.lower().rpartition(".")[2]
        if name in ("sp_prepexec", "sp_prepare"):
            return self._prepared(entry, entry.text)
        if name == "sp_execute":
            return self._executed(entry, entry.text)
        if name.startswith(_CURSOR):
            return replace(entry, left_out=entry.left_out or "server_cursor")
        if name in (_FORGOTTEN, _RESET):
            return replace(entry, left_out=entry.left_out or "connections_housekeeping")
        return entry

    def _prepared(self, entry: LogEntry, text: str) -> LogEntry:
        match = _PREPARED.fullmatch(text)
        if match is None:
            return entry
        self._known[match["handle"]] = (match["text"], match["types"])
        if match["how"].lower() == "sp_prepare":
            return replace(entry, left_out=entry.left_out or "connections_housekeeping")
        return replace(entry, text=_executesql(match["text"], match["types"], match["values"]))

    def _executed(self, entry: LogEntry, text: str) -> LogEntry:
        match = _EXECUTED.fullmatch(text)
        known = self._known.get(match["handle"]) if match else None
        if match is None or known is None:
            return replace(entry, left_out=entry.left_out or "prepared_before_the_capture")
        return replace(entry, text=_executesql(*known, match["values"]))


def _executesql(text: str, types: str, values: str) -> str:
    if types.upper() == "NULL" or not _unquoted(types).strip():
        return f"exec sp_executesql {text}"
    return f"exec sp_executesql {text},{types}{values.rstrip()}"


def _unquoted(literal: str) -> str:
    return literal[literal.index("'") + 1 : -1].replace("''", "'")


_VARIABLE = re.compile(r"(?<![@\w])@\w")
_BULK = re.compile(r"(?i)\s*insert\s+bulk\b")
_TEMPORARY = re.compile(r"(?i)\b(?:create\s+table|into)\s+\[?#")
_OWN_TRANSACTION = re.compile(r"(?i)\b(?:begin\s+tran|commit|rollback|implicit_transactions)")


def read_events(paths: Sequence[Path]) -> Iterator[LogEntry]:
    """Yield the statements of a capture's events, those of each session in the order of their ends.

    Raises ``ScenarioError`` with file and line for an invalid event.
    """
    yield from _entries_of(chain.from_iterable(map(_events, paths)))


def _events(path: Path) -> Iterator[ExtendedEvent]:
    with opened(path) as file:
        first = file.readline()
        for place, row in with_header(csv_rows(chain([first], file), path, delimiter_of(first)), path):
            fields = {column: value for column, value in row.items() if value != _NULL}
            # Local time repeats one hour each year.
            yield ExtendedEvent(
                place, fields.get("name", ""), fields.get(_UTC) or fields.get("timestamp", ""), fields
            )


def _entries_of(events: Iterable[ExtendedEvent]) -> list[LogEntry]:
    """Return the statements of events.

    If batches and calls were captured, single statements are their parts and are ignored. Otherwise each is a
    statement.
    """
    result: list[tuple[str, LogEntry]] = []
    whole = False
    for event in events:
        entry = entry_of(event)
        if entry is None or (whole and event.name in PARTS):
            continue
        if event.name in WHOLE and not whole:
            whole = True
            result = [each for each in result if each[0] not in PARTS]
        result.append((event.name, _judged(entry, part=event.name in PARTS)))
    deduce = not any(name in MANAGED for name, _ in result)
    sessions: dict[str, list[LogEntry]] = {}
    for _, entry in result:
        sessions.setdefault(entry.session, []).append(entry)
    return [entry for entries in sessions.values() for entry in _as_sent(entries, deduce=deduce)]


def _judged(entry: LogEntry, *, part: bool) -> LogEntry:
    """Return the entry, with the reason if its text shows that it cannot be replayed."""
    text = entry.text or ""
    if entry.left_out is None and _BULK.match(text):
        return replace(entry, left_out="bulk_data_not_captured")
    if entry.left_out is None and part and _VARIABLE.search(re.sub(_LITERAL, "", text)):
        return replace(entry, left_out="variables_not_captured")
    return entry


def _as_sent(entries: list[LogEntry], *, deduce: bool) -> Iterator[LogEntry]:
    """Return the entries of one session in a form that can be replayed."""
    handles = Handles()
    by_time = sorted(entries, key=lambda each: each.ended_s)
    ordered = [_staying(handles.replayable(each)) for each in by_time]
    if deduce and not any(_OWN_TRANSACTION.search(each.text or "") for each in ordered):
        ordered = list(_with_transactions(ordered))
    return _by_connection(ordered)


def _staying(entry: LogEntry) -> LogEntry:
    """Return the entry. It is left out if it, or the statement that it executes, leaves the database."""
    text = entry.text or ""
    texts = (text, handed_over(text) or "")
    if entry.left_out is None and any(find_use(each, (MSSQL,)) is not None for each in texts):
        return replace(entry, left_out="changes_database")
    return entry


def _by_connection(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Return one session per connection, because the server reuses the number of a session.

    The same is done after a pool's reset of a connection with temporary tables: the reset drops them, only a
    driver can request it, and a new connection has no temporary tables either.
    """
    number, temporary = 0, False
    for entry in entries:
        if entry.left_out == LOGOUT:
            number, temporary = number + 1, False
            continue
        yield replace(entry, session=f"{entry.session}/{number}") if number else entry
        text = entry.text or ""
        if resets(text) and temporary:
            number, temporary = number + 1, False
        else:
            temporary = temporary or _TEMPORARY.search(text) is not None


def _with_transactions(entries: Sequence[LogEntry]) -> Iterator[LogEntry]:
    """Add a begin and a commit around the statements of one transaction.

    The requests by which a driver begins and ends a transaction are separate events that were not captured. A
    transaction that was rolled back is therefore committed, because nothing shows the rollback.
    """
    before_s = float("-inf")
    for number, group in groupby(entries, key=lambda each: each.transaction):
        run = list(group)
        made = [each for each in run if each.left_out is None]
        if number and len(made) > 1:
            first, last = made[0], made[-1]
            begun_s = max(first.began_s, before_s)
            yield replace(first, text=BEGIN, ended_s=begun_s, duration_s=0.0, deduced=True)
            yield from run
            yield replace(last, text=COMMIT, duration_s=0.0, deduced=True)
        else:
            yield from run
        before_s = run[-1].ended_s
