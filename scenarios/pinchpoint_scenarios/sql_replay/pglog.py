"""PostgreSQL's own logs, as CSV or JSON lines, with the duration of every statement.

A server writes them with ``logging_collector = on``, ``log_destination = 'csvlog'`` (or ``jsonlog``) and
``log_min_duration_statement = 0`` (PostgreSQL manual, "Error Reporting and Logging").
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from ..errors import ScenarioError
from .captured import Entry

# The columns of a CSV log that are read, by their place in every version since 9.0.
_TIME, _DATABASE, _SESSION, _SEVERITY, _MESSAGE, _DETAIL, _QUERY, _BACKEND = 0, 2, 5, 11, 13, 14, 19, 23
_LEAST_COLUMNS = 23
_CLIENT = "client backend"

_DURATION = re.compile(
    r"duration: (?P<ms>\d+\.\d+) ms"
    r"(?:  (?P<how>statement|parse|bind|execute|fastpath)(?: (?P<name>[^:]*))?: ?(?P<text>.*))?",
    re.DOTALL,
)
_PARTS = ("parse", "bind")
"""What precedes an execution and has a duration of its own: no statement, so none is left out."""
_PARAMETERS = re.compile(r"^parameters: ", re.IGNORECASE)
_PARAMETER = re.compile(r"\$(\d+) = (NULL|'((?:[^']|'')*)')(?:, |$)", re.DOTALL)
_CUT = "..."
_COPY = re.compile(r"\s*copy\b.*\b(stdin|stdout)\b", re.IGNORECASE | re.DOTALL)
_FIRST_WORD = re.compile(r"\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*([A-Za-z]+)", re.DOTALL)
_FETCH = "fetch from "


def read_log(path: Path) -> Iterator[Entry]:
    """Every statement of a log file. Raises ``ScenarioError`` naming file and line of what is no log."""
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            beginning = file.read(1)
            file.seek(0)
            rows = _json_rows(file, path) if beginning == "{" else _csv_rows(file, path)
            for row in rows:
                entry = _entry(row, path)
                if entry is not None:
                    yield entry
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror}); check the path") from error


_Row = Mapping[str, str]
"""time, database, session, severity, message, detail, query, backend, and the line in the file."""


def _csv_rows(file: TextIO, path: Path) -> Iterator[_Row]:
    rows = csv.reader(file)
    try:
        for row in rows:
            if len(row) < _LEAST_COLUMNS:
                raise ScenarioError(
                    f"{path}:{rows.line_num}: {len(row)} columns; allowed: a log that PostgreSQL wrote as "
                    "csvlog or jsonlog"
                )
            yield {
                "time": row[_TIME],
                "database": row[_DATABASE],
                "session": row[_SESSION],
                "severity": row[_SEVERITY],
                "message": row[_MESSAGE],
                "detail": row[_DETAIL],
                "query": row[_QUERY],
                "backend": row[_BACKEND] if len(row) > _BACKEND else _CLIENT,
                "line": str(rows.line_num),
            }
    except csv.Error as error:
        raise ScenarioError(f"{path}:{rows.line_num}: no CSV ({error})") from error


def _json_rows(file: TextIO, path: Path) -> Iterator[_Row]:
    names = {
        "time": "timestamp",
        "database": "dbname",
        "session": "session_id",
        "severity": "error_severity",
        "message": "message",
        "detail": "detail",
        "query": "statement",
        "backend": "backend_type",
    }
    for number, line in enumerate(file, 1):
        try:
            found = json.loads(line)
            row = {name: str(found.get(key) or "") for name, key in names.items()}
        except (ValueError, AttributeError) as error:
            raise ScenarioError(
                f"{path}:{number}: no JSON object; allowed: a log in jsonlog format"
            ) from error
        yield {**row, "line": str(number)}


def _entry(row: _Row, path: Path) -> Entry | None:
    """The statement a row of the log tells of, if it does."""
    if row["backend"] != _CLIENT or not row["database"]:
        return None
    place = (row["session"], row["database"], _seconds(row, path))
    if row["severity"] == "ERROR" and row["query"]:
        return Entry(*place, 0.0, row["query"], left_out="failed_when_captured")
    match = _DURATION.fullmatch(row["message"])
    if row["severity"] != "LOG" or match is None or match["how"] in _PARTS:
        return None
    text, parameters, left_out = match["text"], None, _left_out(match)
    if match["how"] == "execute" and left_out is None:
        parameters, left_out = _parameters(row["detail"], text)
    return Entry(*place, float(match["ms"]) / 1000, text, parameters, left_out)


def _left_out(match: re.Match[str]) -> str | None:
    """Why a statement cannot be made again, by its text."""
    if match["how"] is None:
        return "no_text"
    if match["how"] == "fastpath":
        return "function_call"
    if match["how"] == "execute" and (match["name"] or "").startswith(_FETCH):
        return "further_rows_of_a_portal"
    return "copy_data_not_logged" if _COPY.match(match["text"]) else None


def _parameters(detail: str, text: str) -> tuple[tuple[str | None, ...] | None, str | None]:
    """The values that were sent beside a statement, and why it cannot be made again."""
    said = _PARAMETERS.sub("", detail)
    found = {
        int(match[1]): None if match[2] == "NULL" else match[3].replace("''", "'")
        for match in _PARAMETER.finditer(said)
    }
    wanted = max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)
    if len(found) < wanted:
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


def verb(text: str) -> str:
    """The first word of a statement, in lower case: the operation it is counted as."""
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match else "statement"
