"""Files of a capture as text, and what kind of capture they are."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ..errors import ScenarioError
from ..sql_script.values import delimiter_of

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
LOST = "\N{REPLACEMENT CHARACTER}"
"""What stands for a letter that could not be read."""
_LONGEST_FIELD = 2**28
"""Characters of a field of a CSV file: a statement may be long."""
_HEAD = 4096

PGLOG, PGLOG_JSON = "a PostgreSQL log as CSV", "a PostgreSQL log as JSON"
XE_CSV = "Extended Events as CSV"
SLOW_LOG = "an export of mysql.slow_log"
_SLOW_LOG_COLUMNS = {"start_time", "query_time", "thread_id", "db", "sql_text"}
_XEL = "Management Studio exports the events of a .xel file as CSV"


@contextmanager
def opened(path: Path, *, errors: str = "strict", newline: str = "") -> Iterator[TextIO]:
    """The file as text: UTF-8, or UTF-16 where it says so; breaks as they are. Raises ``ScenarioError``.

    Args:
        path: the file.
        errors: what is done about bytes that are no text (``open``).
        newline: what ends a line: this alone, or, where it is empty, whatever may.
    """
    try:
        with path.open("rb") as binary:
            head = binary.read(4)
        encoding = next((name for bom, name in _BOMS if head.startswith(bom)), "utf-8")
        if head[:1] != b"\0" == head[1:2]:
            encoding = "utf-16-le"  # Windows' tools leave its mark out
        with path.open(newline=newline, encoding=encoding, errors=errors) as file:
            yield file
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path}: no text in UTF-8 or UTF-16 (byte {error.start}: {error.reason}); allowed: a log, or "
            f"events that were exported: {_XEL}"
        ) from error
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def csv_rows(file: Iterable[str], path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the line it ends in; raises ``ScenarioError``."""
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(file, delimiter=delimiter)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise ScenarioError(f"{path}:{rows.line_num}: no CSV ({error})") from error


def kind_of(path: Path) -> str:
    """Which kind of capture a file is, by its beginning; raises ``ScenarioError``."""
    with opened(path, errors="replace") as file:
        head = file.read(_HEAD)
    if "\0" in head:
        raise ScenarioError(f"{path}: a binary file; allowed: a log, or events that were exported: {_XEL}")
    if head.startswith("{"):
        return PGLOG_JSON
    first = head.lstrip().partition("\n")[0]
    columns = {each.strip(' "\r').lower() for each in first.split(delimiter_of(first))}
    if first.startswith("<") or "event_data" in columns:
        raise ScenarioError(f"{path}: Extended Events as XML; allowed: as CSV: {_XEL}")
    if columns >= _SLOW_LOG_COLUMNS:
        return SLOW_LOG
    return XE_CSV if {"name", "timestamp"} <= columns else PGLOG
