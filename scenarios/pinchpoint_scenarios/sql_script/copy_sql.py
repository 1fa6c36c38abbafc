"""What is asked of a database that a user's own statements may change, in the words of each kind of server.

No SQL Server has run its statements yet: the tests parse them.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..databases.servers import SERVERS
from ..databases.servers.contract import MSSQL, MYSQL, POSTGRESQL
from ..databases.servers.mariadb import MARK_TABLE
from ..sql_text import first_word
from .scope import Text, Value, literal


@dataclass(frozen=True, slots=True)
class CopySql:
    """The statements for one kind of server.

    ``$1`` is a parameter; a truth value is whatever ``access.yes`` knows. A text with braces is filled in
    first: ``{database}``, ``{table}`` and ``{column}`` are quoted names, ``{marker}`` is the mark of a copy,
    ``{owned}`` that of what is Pinchpoint's own.

    Attributes:
        find: one row: the database's mark (null: it has none), its name (null: the connection is in none).
        tables: at most four names of tables that are not Pinchpoint's own.
        mark: marks the database.
        lock: ``$1``: a name; one row: whether this connection has it now, to its end.
        sample: ``$1``: so many at most; rows: values of the column, evenly taken from all in their order, so
            that frequent ones stay frequent.
        numeric: one row: whether the column holds numbers, where ``sample`` gives them as texts; empty: the
            values say it.
        literal: a value as it is put into a statement's text.
        batches: a file of SQL as the texts it is sent in.
        prepare: what has the server prepare a statement, and execute nothing; None: it cannot be asked
            about this one.
        of_the_server: the server's own databases, which are nobody's copy.
        begins: how another server's driver began a transaction -> how it is begun here.
    """

    find: str
    tables: str
    mark: str
    lock: str
    sample: str
    numeric: str = ""
    literal: Callable[[Value], str] = literal
    batches: Callable[[str], list[str]] = lambda text: [text]
    prepare: Callable[[str], str | None] = lambda _: None
    of_the_server: frozenset[str] = frozenset()
    begins: Mapping[str, str] = field(default_factory=dict)


# ---- MariaDB and MySQL: a table's comment marks a database, for MySQL's databases have none ---------------


def _mariadb_literal(value: Value) -> str:
    return literal(Text(value.replace("\\", "\\\\"))) if isinstance(value, Text) else literal(value)


_MARIADB = CopySql(
    find=f"""SELECT (SELECT TABLE_COMMENT FROM information_schema.TABLES
            WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{MARK_TABLE}'), DATABASE()""",
    of_the_server=frozenset({"mysql", "information_schema", "performance_schema", "sys"}),
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
    literal=_mariadb_literal,
    prepare=lambda text: f"PREPARE pinchpoint_check FROM {_mariadb_literal(Text(text))}",
    begins={"BEGIN TRANSACTION": "START TRANSACTION"},
)


# ---- PostgreSQL -------------------------------------------------------------------------------------------

_PREPARED = {"select", "insert", "update", "delete", "merge", "values", "with", "table"}
"""The first words of what PREPARE takes; the protocol takes any statement, and ODBC has no way to it."""


def _postgresql_prepare(text: str) -> str | None:
    known = first_word(text) in _PREPARED
    return f"PREPARE pinchpoint_check AS {text}\n; DEALLOCATE pinchpoint_check" if known else None


_POSTGRESQL = CopySql(
    find="""SELECT shobj_description(oid, 'pg_database'), current_database()
        FROM pg_database WHERE datname = current_database()""",
    tables="""SELECT format('%I.%I', nspname, relname) FROM pg_class
        JOIN pg_namespace space ON space.oid = relnamespace
        WHERE relkind IN ('r', 'p', 'm', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema')
            AND nspname !~ '^pg_' AND coalesce(obj_description(space.oid, 'pg_namespace'), '') <> '{owned}'
        ORDER BY 1 LIMIT 4""",
    mark="COMMENT ON DATABASE {database} IS '{marker}'",
    lock=SERVERS[POSTGRESQL].lock,
    prepare=_postgresql_prepare,
    numeric="""SELECT typcategory = 'N' FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=)
        (SELECT pg_catalog.pg_typeof({column})::oid FROM {table} WHERE {column} IS NOT NULL LIMIT 1)""",
    sample="""SELECT value::text FROM (
        SELECT {column} AS value, row_number() OVER (ORDER BY {column}) AS at, count(*) OVER () AS rows
        FROM {table} WHERE {column} IS NOT NULL) ranked
        WHERE rows <= $1 OR at * $1 / rows > (at - 1) * $1 / rows ORDER BY at""",
)


# ---- SQL Server -------------------------------------------------------------------------------------------

_GO = re.compile(r"^[ \t]*go[ \t]*;?[ \t]*(?:--[^\n]*)?\r?$", re.IGNORECASE | re.MULTILINE)


def _tsql_literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"N{literal(value)}" if isinstance(value, Text) else literal(value)


def _batches(text: str) -> list[str]:
    """The batches between lines of GO, which is no statement but the tools'."""
    return [each for each in _GO.split(text) if each.strip()]


_TSQL = CopySql(
    find="""SELECT (SELECT CAST(p.value AS nvarchar(400)) FROM sys.extended_properties AS p
            WHERE p.class = 0 AND p.name = N'pinchpoint'), DB_NAME()""",
    of_the_server=frozenset({"master", "tempdb", "model", "msdb"}),
    tables="""SELECT TOP (4) QUOTENAME(s.name) + '.' + QUOTENAME(t.name) AS name FROM sys.tables AS t
        JOIN sys.schemas AS s ON s.schema_id = t.schema_id
        WHERE t.is_ms_shipped = 0 AND NOT EXISTS (SELECT 1 FROM sys.extended_properties AS p
            WHERE p.class = 3 AND p.major_id = s.schema_id AND p.minor_id = 0 AND p.name = N'pinchpoint'
                AND CAST(p.value AS nvarchar(400)) = N'{owned}')
        ORDER BY name""",
    mark="EXEC sp_addextendedproperty @name = N'pinchpoint', @value = N'{marker}'",
    lock=SERVERS[MSSQL].lock,
    sample="""SELECT v FROM (
        SELECT {column} AS v, ROW_NUMBER() OVER (ORDER BY {column}) AS n, COUNT_BIG(*) OVER () AS total
        FROM {table} WHERE {column} IS NOT NULL) AS ranked
        WHERE total <= $1 OR n * $1 / total > (n - 1) * $1 / total ORDER BY n""",
    literal=_tsql_literal,
    batches=_batches,
)

DIALECTS: Mapping[str, CopySql] = {MSSQL: _TSQL, MYSQL: _MARIADB, POSTGRESQL: _POSTGRESQL}
"""Kind of server -> its statements."""
