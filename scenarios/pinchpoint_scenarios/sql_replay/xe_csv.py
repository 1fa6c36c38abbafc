"""Extended Events as Management Studio exports them: CSV with a column for each field and action.

``name`` and ``timestamp`` are among them; columns may lie in any order.
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

_NAME, _TIME, _UTC = "name", "timestamp", "timestamp (utc)"
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
        # The local time has an hour twice a year.
        time = fields.get(_UTC) or fields.get(_TIME, "")
        yield Event(f"{path}:{line}", fields.get(_NAME, ""), time, fields)
