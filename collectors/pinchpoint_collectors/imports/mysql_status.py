"""Reads output of ``mysqladmin extended-status -i 10`` (``-r``), or repeated ``SHOW GLOBAL STATUS``.

The output has no times, so the server's ``Uptime`` gives the intervals. With ``-r`` all tables except the
first contain differences, also of ``Uptime``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.exporters.databases import figures
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import LastLine
from pinchpoint_collectors.imports.times import begin_of
from pinchpoint_collectors.record import Sample

_FIRST = re.compile(r"[\ufeff\s+-]*\|?\s*Variable_name\s*[|\t]\s*Value\b")
_ROW = re.compile(r"\|?\s*(?P<name>\w+)\s*[|\t]\s*(?P<value>\S*)\s*\|?\s*")
_HEADER, _UPTIME = "variable_name", "uptime"
_COUNTED = (_UPTIME, "questions", "bytes_sent")
"""Variables that only grow, unless the table contains differences."""


class MysqlStatus:
    """Import format ``mysql-status``."""

    name = "mysql-status"
    says = "MySQL's status, table by table (mysqladmin extended-status -i 10, or SHOW GLOBAL STATUS)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the names of its two columns."""
        return _FIRST.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per figure and table, except the first table (see ``Format.read``)."""
        tables = _tables(lines, facts)
        if len(tables) < 2:
            found = counted(len(tables), "table")
            raise ForeignFileError(
                f"it has {found} with Uptime, and they count since the start of the server; "
                "print it every few seconds: mysqladmin extended-status -i 10"
            )
        if any(tables[1].get(name, 0.0) < tables[0].get(name, 0.0) for name in _COUNTED):
            tables = list(itertools.accumulate(tables, _added))
        begin_s = begin_of(settings, facts).timestamp()
        facts.facts("")
        for before, after in itertools.pairwise(tables):
            interval_s = after[_UPTIME] - before[_UPTIME]
            time_ns = round((begin_s + after[_UPTIME] - tables[0][_UPTIME]) * 1e9)
            if interval_s <= 0:
                raise ForeignFileError(
                    "its Uptime goes back; split the file where the server was started again"
                )
            old, new = ({f"mysql_global_status_{name}": its[name] for name in its} for its in (before, after))
            for metric, instance, value in figures(old, new, interval_s):
                yield Sample(time_ns, interval_s, "", metric, instance, value, None)


def _tables(lines: Iterable[str], facts: FileFacts) -> list[dict[str, float]]:
    """Yield the numbers of each table with the server's uptime, which an incomplete last table may lack."""
    tables: list[dict[str, float]] = []
    for _, text in LastLine(facts).lines(lines):
        row = _ROW.fullmatch(text.strip("\ufeff\r\n"))
        if row is None:
            continue
        name = row["name"].casefold()
        if name == _HEADER:
            tables.append({})
        elif tables:
            try:
                tables[-1][name] = numerals.strict(row["value"])
            except ValueError:
                continue  # a variable with a text value
    return [table for table in tables if _UPTIME in table]


def _added(before: dict[str, float], more: dict[str, float]) -> dict[str, float]:
    return {name: before.get(name, 0.0) + value for name, value in more.items()}
