"""Extended Events as CSV: rows of ``sys.fn_xe_file_target_read_file``, or what Management Studio exports.

The first have a column ``event_data`` with an event's XML; the second a column for each field and action,
``name`` and ``timestamp`` first (Export to, CSV File). Columns may lie in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

from ..errors import ScenarioError
from ..sql_script.values import delimiter_of
from .files import csv_rows
from .xe_event import Event
from .xe_xml import xml_events

_DATA, _NAME, _TIME, _UTC = "event_data", "name", "timestamp", "timestamp (utc)"
_NULL = "NULL"


def csv_events(file: TextIO, path: Path) -> Iterator[Event]:
    """The events of a file with a header. Raises ``ScenarioError`` naming file and line."""
    first = file.readline()
    rows = csv_rows(chain([first], file), path, delimiter_of(first))
    _, header = next(rows, (0, []))
    columns = [column.strip().lower() for column in header]
    for line, row in rows:
        if not row:
            continue
        if len(row) != len(columns):
            raise ScenarioError(
                f"{path}:{line}: {len(row)} columns; allowed: {len(columns)}, as in the header"
            )
        fields = {column: value for column, value in zip(columns, row, strict=True) if value != _NULL}
        if _DATA in fields:
            # A row's lines end where its last one does; the XML's own breaks are most of them.
            begins = line - sum(value.count("\n") for value in row)
            yield from xml_events([fields[_DATA]], str(path), begins)
        else:
            # The local time has an hour twice a year.
            time = fields.get(_UTC) or fields.get(_TIME, "")
            yield Event(f"{path}:{line}", fields.get(_NAME, ""), time, fields)
