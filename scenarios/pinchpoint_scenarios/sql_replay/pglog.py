"""PostgreSQL's own logs, as CSV or JSON lines, with the duration of every statement.

A server writes them with ``logging_collector = on``, ``log_destination = 'csvlog'`` (or ``jsonlog``) and
``log_min_duration_statement = 0`` (PostgreSQL manual, "Error Reporting and Logging").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from ..errors import ScenarioError
from ..sql_text import copies_with_client, placeholders
from .captured import Entry
from .files import csv_rows, opened
from .pgsessions import FAILED, NO_TEXT

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
"""The columns of a CSV log that are read, by their place in every version since 9.0; the last since 13."""
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
"""How log_statement writes it down when it begins: its duration then comes without it."""
_PARTS = ("parse", "bind")
"""What precedes an execution and has a duration of its own: no statement, so none is left out."""
_FAILURES = ("ERROR", "FATAL")
_LOST = "\N{REPLACEMENT CHARACTER}"
"""What stands for a letter that is none in UTF-8."""
_PARAMETERS = re.compile(r"^parameters: ", re.IGNORECASE)
_PARAMETER = re.compile(r"\$(\d+) = (NULL|'((?:[^']|'')*)')(?:, |$)", re.DOTALL)
_CUT = "..."
_FETCH = "fetch from "


def read_log(path: Path) -> Iterator[Entry]:
    """Every statement of a log file. Raises ``ScenarioError`` naming file and line of what is no log."""
    with opened(path, errors="replace") as file:
        beginning = file.read(1)
        file.seek(0)
        last: Entry | None = None
        for row in _json_rows(file, path) if beginning == "{" else _csv_rows(file, path):
            entry = _entry(row, path) if row else _cut_off(last)
            if entry is not None:
                yield entry
                last = entry


_Row = Mapping[str, str]
"""The columns by the names above, and the line in the file; empty: the log ends within a line."""


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
            found = json.loads(line)
            row = {name: str(found.get(key) or "") for name, key in _KEYS.items()}
        except (ValueError, AttributeError) as error:
            if number > 1 and not line.endswith("\n"):
                yield {}
                return
            raise ScenarioError(
                f"{path}:{number}: no JSON object; allowed: a log in jsonlog format"
            ) from error
        yield {**row, "line": str(number)}


def _cut_off(last: Entry | None) -> Entry | None:
    """What ends in the middle, as a log that was copied while it was written; None: nothing was before it."""
    if last is None:
        return None
    return Entry(last.session, last.database, last.ended_s, 0.0, None, left_out="line_cut_off")


def _entry(row: _Row, path: Path) -> Entry | None:
    """The statement a row of the log tells of, if it does."""
    if row["backend"] != _CLIENT or not row["database"]:
        return None
    place = (row["session"], row["database"], _seconds(row, path))
    if row["severity"] in _FAILURES and row["query"]:
        return Entry(*place, 0.0, row["query"], left_out=FAILED)
    match = _DURATION.fullmatch(row["message"]) or _BEGUN.fullmatch(row["message"])
    if row["severity"] != "LOG" or match is None or _is_part(match, row["tag"]):
        return None
    ms = match.groupdict().get("ms")
    text, parameters, left_out = match["text"], None, _left_out(match)
    if match["how"] == "execute" and left_out is None:
        parameters, left_out = _parameters(row["detail"], text)
    if left_out is None and _LOST in f"{text}{row['detail']}":
        left_out = "letters_not_utf8"
    return Entry(*place, float(ms or 0) / 1000, text, parameters, left_out, begun=ms is None)


def _is_part(match: re.Match[str], tag: str) -> bool:
    return (match["how"] or tag.lower()) in _PARTS


def _left_out(match: re.Match[str]) -> str | None:
    """Why a statement cannot be made again, by its text."""
    if match["how"] is None:
        return NO_TEXT
    if match["how"] == "fastpath":
        return "function_call"
    if match["how"] == "execute" and (match["name"] or "").startswith(_FETCH):
        return "further_rows_of_a_portal"
    return "copy_data_not_logged" if copies_with_client(match["text"]) else None


def _parameters(detail: str, text: str) -> tuple[tuple[str | None, ...] | None, str | None]:
    """The values that were sent beside a statement, and why it cannot be made again."""
    said = _PARAMETERS.sub("", detail)
    found = {
        int(match[1]): None if match[2] == "NULL" else match[3].replace("''", "'")
        for match in _PARAMETER.finditer(said)
    }
    if len(found) < placeholders(text):
        return None, "parameters_not_logged"
    if any(value is not None and value.endswith(_CUT) for value in found.values()):
        return None, "parameters_cut"
    return tuple(found[number] for number in sorted(found)), None


def _seconds(row: _Row, path: Path) -> float:
    """The row's time. Its zone does not matter: all rows of a log have the same."""
    text = row["time"].rpartition(" ")[0]
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise ScenarioError(
            f"{path}:{row['line']}: the time {row['time']!r}; allowed: as in 2026-11-21 20:15:00.123 UTC"
        ) from error
