"""Detects the kind of capture files, and reads every statement in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import ScenarioError
from ..sql_script.values import delimiter_of
from .capture import XEL, LogEntry, opened
from .extended_events import read_events
from .pglog import read_logs
from .slowlog import read_slow_logs

_HEAD = 4096

_PGLOG, _PGLOG_JSON = "a PostgreSQL log as CSV", "a PostgreSQL log as JSON"
_XE_CSV = "Extended Events as CSV"
_SLOW_LOG = "an export of mysql.slow_log"
_SLOW_LOG_COLUMNS = {"start_time", "query_time", "thread_id", "db", "sql_text"}
_KINDS: Mapping[str, Callable[[Sequence[Path]], Iterator[LogEntry]]] = {
    _PGLOG: read_logs,
    _PGLOG_JSON: read_logs,
    _SLOW_LOG: read_slow_logs,
    _XE_CSV: read_events,
}
"""Kind of a capture's files -> how they are read."""


def read_capture(paths: Sequence[Path]) -> Iterator[LogEntry]:
    """Every statement of a capture. Raises ``ScenarioError`` naming file and line of what is none."""
    kinds = {path: _kind_of(path) for path in paths}
    for path, kind in kinds.items():
        first = paths[0]
        if kind != kinds[first]:
            raise ScenarioError(
                f"{path}: {kind}, and {first} is {kinds[first]}; allowed: the files of one server's capture"
            )
    yield from _KINDS[kinds[paths[0]]](paths)


def _kind_of(path: Path) -> str:
    """Which kind of capture a file is, by its beginning; raises ``ScenarioError``."""
    with opened(path, errors="replace") as file:
        head = file.read(_HEAD)
    if "\0" in head:
        raise ScenarioError(f"{path}: a binary file; allowed: a log, or events that were exported: {XEL}")
    if head.startswith("{"):
        return _PGLOG_JSON
    first = head.lstrip().partition("\n")[0]
    columns = {each.strip(' "\r').lower() for each in first.split(delimiter_of(first))}
    if first.startswith("<") or "event_data" in columns:
        raise ScenarioError(f"{path}: Extended Events as XML; allowed: as CSV: {XEL}")
    if columns >= _SLOW_LOG_COLUMNS:
        return _SLOW_LOG
    return _XE_CSV if {"name", "timestamp"} <= columns else _PGLOG
