"""Reads an export of ``mysql.slow_log``, the statement log of MariaDB and MySQL.

A server writes every statement there with ``log_output = TABLE``, ``slow_query_log = ON`` and
``long_query_time = 0``. Values that were sent beside a statement are in its text (MariaDB manual,
"mysql.slow_log Table"). ``start_time`` is the start of a statement (seen on MariaDB 10.11). The client's
``--batch`` writes tabs and backslashes; other tools write CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from ..databases.servers.contract import MYSQL
from ..errors import ScenarioError
from ..sql_script.use_statements import find_use
from ..sql_script.values import delimiter_of
from .capture import LogEntry, Rows, csv_rows, opened, with_header

_NOT_SENT = "# administrator command"
_LOCAL_DATA = re.compile(r"(?i)\s*load\s+(?:data|xml)\b.*\blocal\b")
_NAMES = re.compile(r"(?i)\s*set\s+(?:names|character\s+set)\b")
"""Statements that set the encoding of a client. MariaDB's ODBC driver sets it itself, and refuses such a
statement."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "0": "\0"}
_LENGTH = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")


def read_slow_logs(paths: Sequence[Path]) -> Iterator[LogEntry]:
    """Yield every statement of exports. Raises ``ScenarioError`` with file and line for an invalid one."""
    return chain.from_iterable(map(_read, paths))


def _read(path: Path) -> Iterator[LogEntry]:
    with opened(path, newline="\n") as file:  # a carriage return is part of the statement that was sent
        first = file.readline()
        delimiter, whole = delimiter_of(first), chain([first], file)
        rows = _batch_rows(whole) if delimiter == "\t" else csv_rows(whole, path, delimiter)
        for place, row in with_header(rows, path):
            entry = _entry(row, place)
            if entry is not None:
                yield entry


def _batch_rows(lines: Iterable[str]) -> Rows:
    """Yield the rows that ``mariadb --batch`` wrote, each with its line."""
    for number, line in enumerate(lines, 1):
        yield number, [_ESCAPE.sub(_unescaped, each) for each in line.rstrip("\r\n").split("\t")]


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])


def _entry(row: dict[str, str], place: str) -> LogEntry | None:
    """Return the statement of a row; None if no client sent it, or if it concerns no database."""
    text = row["sql_text"]
    if not row["db"] or text.startswith(_NOT_SENT):
        return None
    duration_s = _length_s(row["query_time"], place)
    return LogEntry(
        row["thread_id"],
        row["db"],
        _seconds(row["start_time"], place) + duration_s,
        duration_s,
        text or None,
        left_out=_left_out(text),
    )


def _left_out(text: str) -> str | None:
    if not text:
        return "no_text"
    if _LOCAL_DATA.match(text):
        return "copy_data_not_logged"
    if _NAMES.match(text):
        return "connections_housekeeping"
    return "changes_database" if find_use(text, (MYSQL,)) is not None else None


def _seconds(text: str, place: str) -> float:
    """Return a time in seconds. Its zone does not matter, because all rows have the same zone."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise ScenarioError(
            f"{place}: the start_time {text!r}; allowed: as in 2026-11-21 20:15:00.123456"
        ) from error


def _length_s(text: str, place: str) -> float:
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise ScenarioError(f"{place}: the query_time {text!r}; allowed: as in 00:00:01.234567")
    hours, minutes, seconds = match.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
