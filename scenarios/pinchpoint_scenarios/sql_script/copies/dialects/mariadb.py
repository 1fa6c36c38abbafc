"""A copy on MariaDB or MySQL, where a table's comment marks a database: MySQL's databases have none."""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from ....databases.odbc.servers.mariadb import MARK_TABLE
from ...scope import Text, Value, literal
from .contract import CopySql


def _literal(value: Value) -> str:
    return literal(Text(value.replace("\\", "\\\\"))) if isinstance(value, Text) else literal(value)


SQL = CopySql(
    find=f"""SELECT DATABASE(), (SELECT TABLE_COMMENT FROM information_schema.TABLES
            WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{MARK_TABLE}'),
        CASE WHEN DATABASE() IN ('mysql', 'information_schema', 'performance_schema', 'sys')
            THEN 1 ELSE 0 END""",
    tables=f"""SELECT TABLE_NAME FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME <> '{MARK_TABLE}'
        UNION ALL SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
        UNION ALL SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()
        ORDER BY 1 LIMIT 4""",
    mark=f"CREATE TABLE {{database}}.{MARK_TABLE} (nothing int) COMMENT = '{{marker}}'",
    lock="SELECT GET_LOCK(MD5(CONCAT($1, '@', DATABASE())), 0)",  # a lock is the whole server's
    sample="""SELECT v FROM (
        SELECT {column} AS v, ROW_NUMBER() OVER (ORDER BY {column}) AS n, COUNT(*) OVER () AS total
        FROM {table} WHERE {column} IS NOT NULL) ranked
        WHERE total <= $1 OR n * $1 DIV total > (n - 1) * $1 DIV total ORDER BY n""",
    literal=_literal,
    batches=lambda text: [text],
    begins={"BEGIN TRANSACTION": "START TRANSACTION"},
)
"""The statements of ``CopySql``."""
