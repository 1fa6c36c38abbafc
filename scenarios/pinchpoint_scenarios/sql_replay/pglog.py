"""Reads PostgreSQL's logs (CSV or JSON lines), which contain the duration of every statement.

A server writes these logs with ``logging_collector = on``, ``log_destination = 'csvlog'`` (or ``jsonlog``)
and ``log_min_duration_statement = 0`` (PostgreSQL manual, "Error Reporting and Logging").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from ..errors import ScenarioError
from ..sql_text import copies_with_client, placeholders, writes_other_letters
from .capture import LOST, LogEntry, csv_rows, opened

_COLUMNS: Mapping[str, int] = {
    "time": 0,
    "database": 2,
    "session": 5,
    "tag": 7,
    "severity": 11,
    "message": 13,
    "detail": 14,
    "query": 19,
    "backend": 23,
}
"""Column of a CSV log -> its position in every version since 9.0; the last column exists since 13."""
_KEYS: Mapping[str, str] = {
    "time": "timestamp",
    "database": "dbname",
    "session": "session_id",
    "tag": "ps",
    "severity": "error_severity",
    "message": "message",
    "detail": "detail",
    "query": "statement",
    "backend": "backend_type",
}
_LEAST_COLUMNS = 23
_CLIENT = "client backend"
_ANOTHER_ROW = re.compile(r"\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ")

_SAID = r"(?P<how>statement|parse|bind|execute|fastpath)(?: (?P<name>[^:]*))?: ?(?P<text>.*)"
_DURATION = re.compile(rf"duration: (?P<ms>\d+\.\d+) ms(?:  {_SAID})?", re.DOTALL)
_BEGUN = re.compile(_SAID, re.DOTALL)
"""Pattern of a statement that log_statement logged at its start. Its duration is a later entry."""
_PARTS = ("parse", "bind")
"""Names of steps before an execution. They have durations of their own, but are no statements."""
_PARAMETERS = re.compile(r"^parameters: ", re.IGNORECASE)
_PARAMETER = re.compile(r"\$(\d+) = (NULL|'((?:[^']|'')*)')(?:, |$)", re.DOTALL)
_FETCH = "fetch from "
_UNNAMED = "<unnamed>"


def read_logs(paths: Sequence[Path]) -> Iterator[LogEntry]:
    """Yield every statement of a server's logs, those of each session in the order of their ends.

    Raises ``ScenarioError`` with file and line for an invalid row.
    """
    return as_sent(_entries(paths))


def _entries(paths: Sequence[Path]) -> Iterator[LogEntry]:
    clock = _LogClock()
    for path in paths:
        with opened(path, errors="replace") as file:
            beginning = file.read(1)
            file.seek(0)
            last: LogEntry | None = None
            for row in _json_rows(file, path) if beginning == "{" else _csv_rows(file, path):
                entry = _entry(row, f"{path}:{row['line']}", clock) if row else _cut_off(last)
                if entry is not None:
                    yield entry
                    last = entry


class _LogClock:
    """Parses the times of rows. Their zone does not matter, because all rows have the same zone."""

    def __init__(self) -> None:
        self._zone: str | None = None

    def seconds(self, written: str, place: str) -> float:
        """Return the time of a row in seconds. Raises ``ScenarioError``."""
        text, _, zone = written.rpartition(" ")
        if self._zone is None:
            self._zone = zone
        if zone != self._zone:
            raise ScenarioError(
                f"{place}: a time of {zone}, after those of {self._zone}: an hour would be missing, or there "
                "twice; allowed: a log with log_timezone = 'UTC', or a capture of what was before the change "
                "alone, or after it"
            )
        try:
            return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
        except ValueError as error:
            raise ScenarioError(
                f"{place}: the time {written!r}; allowed: as in 2026-11-21 20:15:00.123 UTC"
            ) from error


_Row = Mapping[str, str]
"""Columns by the names above, and the line in the file; empty: the log ends within a line."""


def _csv_rows(file: TextIO, path: Path) -> Iterator[_Row]:
    rows = csv_rows(file, path)
    before = False
    for line, row in rows:
        if not row:
            continue
        if len(row) < _LEAST_COLUMNS:
            if before and next(rows, None) is None and not _ANOTHER_ROW.search(row[-1]):
                yield {}
                return
            raise ScenarioError(
                f"{path}:{line}: {len(row)} columns; allowed: a log that PostgreSQL wrote as csvlog or "
                "jsonlog, SQL Server's Extended Events, or mysql.slow_log, exported"
            )
        backend = row[_COLUMNS["backend"]] if len(row) > _COLUMNS["backend"] else _CLIENT
        read = {name: row[at] for name, at in _COLUMNS.items() if at < len(row)}
        yield {**read, "backend": backend, "line": str(line)}
        before = True


def _json_rows(file: TextIO, path: Path) -> Iterator[_Row]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            result = json.loads(line)
            row = {name: str(result.get(key) or "") for name, key in _KEYS.items()}
        except (ValueError, AttributeError, RecursionError) as error:
            if number > 1 and not line.endswith("\n"):
                yield {}
                return
            raise ScenarioError(
                f"{path}:{number}: no JSON object; allowed: a log in jsonlog format"
            ) from error
        yield {**row, "line": str(number)}


def _cut_off(last: LogEntry | None) -> LogEntry | None:
    """Return the incomplete end of a log that was copied while it was written; None if nothing is before."""
    if last is None:
        return None
    return LogEntry(last.session, last.database, last.ended_s, 0.0, None, left_out="line_cut_off")


def _entry(row: _Row, place: str, clock: _LogClock) -> LogEntry | None:
    """Return the statement of a log row, if it has one."""
    if row["backend"] != _CLIENT or not row["database"]:
        return None
    where = (row["session"], row["database"], clock.seconds(row["time"], place))
    # An error may have no statement (log_min_error_statement). The end of a session never has one.
    if row["severity"] == "ERROR" or (row["severity"] == "FATAL" and row["query"]):
        return LogEntry(*where, 0.0, row["query"] or None, left_out=FAILED)
    match = _DURATION.fullmatch(row["message"]) or _BEGUN.fullmatch(row["message"])
    if row["severity"] != "LOG" or match is None or (match["how"] or row["tag"].lower()) in _PARTS:
        return None
    ms = match.groupdict().get("ms")
    text, parameters, left_out = match["text"], None, _left_out(match)
    if match["how"] == "execute" and left_out is None:
        parameters, left_out = _parameters(row["detail"], text)
    if left_out is None and LOST in f"{text}{row['detail']}":
        left_out = "letters_lost"
    prepared = match["how"] == "execute" and not (match["name"] or "").startswith(_UNNAMED)
    return LogEntry(
        *where, float(ms or 0) / 1000, text, parameters, left_out, begun=ms is None, prepared=prepared
    )


def _left_out(match: re.Match[str]) -> str | None:
    """Return why a statement cannot be replayed, by its text."""
    if match["how"] is None:
        return NO_TEXT
    if match["how"] == "fastpath":
        return "function_call"
    if match["how"] == "execute" and (match["name"] or "").startswith(_FETCH):
        return "further_rows_of_a_portal"
    if writes_other_letters(match["text"]):
        return "other_letters"
    return "copy_data_not_logged" if copies_with_client(match["text"]) else None


def _parameters(detail: str, text: str) -> tuple[tuple[str | None, ...] | None, str | None]:
    """Return the parameter values of a statement, and why it cannot be replayed."""
    answer = _PARAMETERS.sub("", detail)
    result = {
        int(match[1]): None if match[2] == "NULL" else match[3].replace("''", "'")
        for match in _PARAMETER.finditer(answer)
    }
    if len(result) < placeholders(text):
        return None, "parameters_not_logged"
    values = tuple(result[number] for number in sorted(result))
    return values, PARAMETERS_CUT if any(value and value.endswith(CUT) for value in values) else None


NO_TEXT, NO_DURATION, FAILED = "no_text", "no_duration", "failed_when_captured"
PARAMETERS_CUT = "parameters_cut"
"""Reason why a statement cannot be replayed."""
CUT = "..."
"""End of a value that was cut off, or that happens to end in the same way."""
_LETTER_BYTES = 4
"""Bytes of a letter. A value is cut between letters, so it is shorter than ``log_parameter_max_length`` by up
to this."""

_COMMIT = re.compile(
    r"(?:\s|/\*(?:[^*]++|\*(?!/))*\*/|--[^\n]*+\n)*(?:commit|end)\b(?:\s+(?:work|transaction)\b)?(?!\s+prepared)",
    re.IGNORECASE | re.DOTALL,
)


def as_sent(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Return the statements of the rows of a log, those of each session in the order of their ends."""
    sessions: dict[str, list[LogEntry]] = {}
    longest = 0
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
        longest = max(longest, *_lengths(entry, cut=False))
    for several in sessions.values():
        several.sort(key=lambda entry: entry.ended_s)
        yield from _rolled_back(_joined(_whole(each, longest) for each in several))


def _lengths(entry: LogEntry, *, cut: bool) -> Iterator[int]:
    """Return the lengths in bytes of the values that look cut off, or of the others; at least a 0."""
    yield 0
    for value in entry.parameters or ():
        if value and value.endswith(CUT) is cut:
            yield len(value.encode())


def _whole(entry: LogEntry, longest: int) -> LogEntry:
    """Return the entry with its values, if a longer value in the log is complete.

    In that case the values were not cut off, but end in dots themselves.
    """
    if (
        entry.left_out != PARAMETERS_CUT
        or max(_lengths(entry, cut=True)) - len(CUT) + _LETTER_BYTES > longest
    ):
        return entry
    return replace(entry, left_out=None)


def _joined(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Return one entry for a statement that was logged at its start and, without its text, at its end."""
    waiting: LogEntry | None = None
    for entry in entries:
        if waiting is not None and _ends(waiting, entry):
            yield _ended(waiting, entry)
            waiting = None
        elif entry.begun:
            if waiting is not None:
                yield _endless(waiting)
            waiting = entry
        else:
            yield entry
    if waiting is not None:
        yield _endless(waiting)


def _ends(begun: LogEntry, entry: LogEntry) -> bool:
    """Return whether an entry describes the end of the same statement."""
    if entry.begun:
        return False
    return entry.left_out == NO_TEXT or (entry.left_out == FAILED and entry.text == begun.text)


def _ended(begun: LogEntry, end: LogEntry) -> LogEntry:
    if end.left_out == FAILED:
        return end
    return replace(begun, ended_s=end.ended_s, duration_s=end.duration_s, begun=False)


def _endless(begun: LogEntry) -> LogEntry:
    return replace(begun, begun=False, left_out=begun.left_out or NO_DURATION)


def _rolled_back(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Return ROLLBACK in place of a COMMIT that ended a failed transaction, as the server did.

    Failed statements are not replayed, so COMMIT would keep changes that the captured database never had.
    Within such a transaction no other statement succeeds before its end.
    """
    failed = False
    for entry in entries:
        commit = _COMMIT.match(entry.text or "")
        if entry.left_out == FAILED:
            failed = commit is None
            yield replace(entry, text="ROLLBACK", left_out=None) if commit else entry
        elif entry.left_out == NO_DURATION:
            yield entry  # the transaction may have failed
        else:
            rest = (entry.text or "")[commit.end() :] if commit else ""
            yield replace(entry, text=f"ROLLBACK{rest}") if commit and failed else entry
            failed = False
