"""A copy on SQL Server. None has run these statements yet: the tests parse them."""

from __future__ import annotations

import re

from ....databases.odbc.servers.tsql import SQL as SERVER
from ...scope import Text, Value, literal
from .contract import CopySql

_GO = re.compile(r"^[ \t]*go[ \t]*;?[ \t]*(?:--[^\n]*)?\r?$", re.IGNORECASE | re.MULTILINE)


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"N{literal(value)}" if isinstance(value, Text) else literal(value)


def _batches(text: str) -> list[str]:
    """The batches between lines of GO, which is no statement but the tools'."""
    return [each for each in _GO.split(text) if each.strip()]


SQL = CopySql(
    find="""SELECT DB_NAME(), (SELECT CAST(p.value AS nvarchar(400)) FROM sys.extended_properties AS p
            WHERE p.class = 0 AND p.name = N'pinchpoint'),
        CASE WHEN DB_ID() <= 4 THEN 1 ELSE 0 END""",
    tables="""SELECT TOP (4) QUOTENAME(s.name) + '.' + QUOTENAME(t.name) AS name FROM sys.tables AS t
        JOIN sys.schemas AS s ON s.schema_id = t.schema_id
        WHERE t.is_ms_shipped = 0 AND NOT EXISTS (SELECT 1 FROM sys.extended_properties AS p
            WHERE p.class = 3 AND p.major_id = s.schema_id AND p.minor_id = 0 AND p.name = N'pinchpoint'
                AND CAST(p.value AS nvarchar(400)) = N'{owned}')
        ORDER BY name""",
    mark="EXEC sp_addextendedproperty @name = N'pinchpoint', @value = N'{marker}'",
    lock=SERVER.lock,
    sample="""SELECT v FROM (
        SELECT {column} AS v, ROW_NUMBER() OVER (ORDER BY {column}) AS n, COUNT_BIG(*) OVER () AS total
        FROM {table} WHERE {column} IS NOT NULL) AS ranked
        WHERE total <= $1 OR n * $1 / total > (n - 1) * $1 / total ORDER BY n""",
    literal=_literal,
    batches=_batches,
    begins={},
)
"""The statements of ``CopySql``."""
