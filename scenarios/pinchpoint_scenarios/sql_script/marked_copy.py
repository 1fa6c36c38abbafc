"""Checks that a database is a marked copy before statements of the user run in it.

Each kind of server has its own statements for this check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..addresses import unreachable
from ..contract import Endpoint
from ..databases.access import Access, yes
from ..databases.contract import Link, TextConnection, plain
from ..databases.odbc.address import SCHEMES
from ..databases.reach import MissingAccess, access_to
from ..databases.schema import MARKER as OWNED
from ..databases.servers import SERVERS
from ..databases.servers.contract import MSSQL, MYSQL, POSTGRESQL
from ..databases.servers.mariadb import MARK_TABLE
from ..errors import ScenarioError
from ..sql_text import first_word
from .lexer import ScriptError
from .scope import GeneratedText, Value, literal, parameter, spelt
from .values import ValuesParams

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it


@dataclass(frozen=True, slots=True)
class CopySql:
    """The statements for one kind of server.

    ``$1`` is a parameter. Truth values are those that ``access.yes`` accepts. Names in braces are replaced
    first: ``{database}``, ``{table}`` and ``{column}`` are quoted names, ``{marker}`` is the mark of a copy,
    and ``{owned}`` the mark of Pinchpoint's own objects.

    Attributes:
        find: query for one row: the mark of the database (null: none), and its name (null: no database is
            selected).
        tables: query for at most four names of tables that are not Pinchpoint's own.
        mark: statement that marks the database.
        lock: query with ``$1``, a name, for one row: whether this connection has the lock now, until its end.
        sample: query with ``$1``, the largest number, for values of the column. They are taken evenly in
            sorted order, so that frequent values stay frequent.
        numeric: query for one row: whether the column has numbers, if ``sample`` returns texts; empty: the
            values show it.
        literal: returns a value as text within a statement.
        batches: returns the texts in which a SQL file is sent.
        prepare: lets the server prepare a statement without executing it; None: not possible for a statement.
        of_the_server: databases of the server itself, which are never a copy.
        begins: begin of a transaction on another server -> the same on this server.
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
    return (
        literal(GeneratedText(value.replace("\\", "\\\\")))
        if isinstance(value, GeneratedText)
        else literal(value)
    )


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
    lock="SELECT GET_LOCK(MD5(CONCAT($1, '@', DATABASE())), 0)",  # a lock applies to the whole server
    sample="""SELECT v FROM (
        SELECT {column} AS v, ROW_NUMBER() OVER (ORDER BY {column}) AS n, COUNT(*) OVER () AS total
        FROM {table} WHERE {column} IS NOT NULL) ranked
        WHERE total <= $1 OR n * $1 DIV total > (n - 1) * $1 DIV total ORDER BY n""",
    literal=_mariadb_literal,
    prepare=lambda text: f"PREPARE pinchpoint_check FROM {_mariadb_literal(GeneratedText(text))}",
    begins={"BEGIN TRANSACTION": "START TRANSACTION"},
)


# ---- PostgreSQL -------------------------------------------------------------------------------------------

_PREPARED = {"select", "insert", "update", "delete", "merge", "values", "with", "table"}
"""First words of statements that PREPARE accepts. The protocol accepts any statement, but ODBC has no access
to it."""


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
    return f"N{literal(value)}" if isinstance(value, GeneratedText) else literal(value)


def _batches(text: str) -> list[str]:
    """Return the batches between lines of GO, which is no statement but a command of tools."""
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


SYNTAX = ("42601", "42000")
"""SQLSTATEs of PostgreSQL, MariaDB and MySQL for syntax errors."""
MARKER = "pinchpoint.copy/1: a copy for load tests, which may change and lose what it holds"
"""Mark of a database that may be written to. Text after the version is for people."""
_VERSION = MARKER.partition(":")[0]
_SHOWN = 3
_NATIVE = ("postgresql", "postgres")


class MarkedCopy:
    """The database of the user. It is marked as a copy, or empty if that suffices.

    If this machine cannot reach such a server, each use raises the reason.

    Args:
        endpoint: endpoint of the server.
        name: name of the connections on the server, and of the lock of the run.
        empty_will_do: whether a database without tables other than Pinchpoint's needs no mark.

    Raises:
        ScenarioError: the URL contains something that is not allowed.
    """

    def __init__(self, endpoint: Endpoint, name: str, *, empty_will_do: bool) -> None:
        self._access = _access(endpoint, name)
        self._empty_will_do = empty_will_do

    @property
    def blocks(self) -> bool:
        """Return whether its connections wait inside C code (``contract.Blocking``)."""
        return self._access.installed and not self._access.native

    def check(self) -> dict[str, Any]:
        """Return version and settings of the server. Raises if its database must not be written to."""
        with self._access.inspection() as link:
            try:
                self._access.check_writable(link)
                self._may_be_changed(link)
                return self._access.facts(link)
            except self._access.error as error:
                raise self._access.refused(error) from error

    def refusals(self, statements: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, bool]]:
        """Return the server's errors for statements that it cannot prepare. Nothing is executed.

        Args:
            statements: place of each statement for messages, and its possible texts. Only an error of all
                texts is an error of the statement.

        Yields:
            Returns the message, and whether the text itself is wrong. A missing table may be created later.
        """
        with closing(self._access.open(pinned=False)) as link:
            for place, texts in statements:
                lines = [self._refusal(link, text) for text in texts]
                if (
                    result := min(filter(None, lines), key=lambda one: one[1], default=None)
                    if all(lines)
                    else None
                ):
                    yield f"{place}: {result[0]}", result[1]

    def _refusal(self, link: Link, text: str) -> tuple[str, bool] | None:
        try:
            if not self._access.parse(link, text) and (asked := self._sql.prepare(text)):
                link.send(asked)
        except self._access.error as error:
            return self._access.message(error), self._access.state(error) in SYNTAX
        return None

    def hold(self) -> Link:
        """Keep other runs with this name out until ``release``. The mark is checked again."""
        access = self._access
        if held := access.held():
            return held
        try:
            with access.new_holder() as link:
                self._may_be_changed(link)
                access.take(
                    link, self._sql.lock, f"another run of {access.name!r} is going on in this database"
                )
        except access.error as error:
            raise self._failed("cannot be prepared", error) from error
        return link

    def run_file(self, file: str, text: str, *, mark: bool) -> None:
        """Run a SQL file while the database is locked: as one text, on SQL Server batch by batch.

        Args:
            file: name of the file for messages.
            text: contents of the file.
            mark: whether a database that was allowed because it was empty is marked first, so that the next
                run accepts its contents.

        Raises:
            ScenarioError: a statement failed.
        """
        link = self.hold()
        try:
            if mark:
                self._access.pin(link)
                database, marked = self._find(link)
                if not marked:
                    link.send(self._mark(database))
            self._access.unpin(link)
            for batch in self._sql.batches(text):
                link.send(batch)
        except self._access.error as error:
            raise self._failed(f"{file} could not be run to its end", error) from error

    def column(self, name: str, values: ValuesParams) -> list[Value]:
        """Return at most a number of values of a column, taken evenly in sorted order.

        Raises ``ScriptError``.
        """
        access, sql = self._access, self._sql
        *table, column = map(access.server.quoted, str(values.column).split("."))
        names = {"column": column, "table": ".".join(table)}
        with nullcontext(access.holder) if access.holder else closing(access.patient()) as link:
            try:
                access.unpin(link)  # the user gives the name of the table
                row = link.execute(sql.numeric.format(**names)).fetchone() if sql.numeric else None
                rows = link.execute(sql.sample.format(**names), (values.sample,)).fetchall()
            except access.error as error:
                raise ScriptError(
                    f"values.{name}: column {values.column!r} cannot be read: {access.message(error)}"
                ) from error
        if not rows:
            raise ScriptError(
                f"values.{name}: column {values.column!r} holds no value; fill the table, or give a range"
            )
        if sql.numeric:
            return [text if row and yes(row[0]) else GeneratedText(text) for (text,) in rows]
        return [_value(name, values, value) for (value,) in rows]

    def connection(self, timeout_s: float) -> TextConnection:
        """Return a session's connection, opened later. Only its name and its time limit are set."""
        return self._access.own_session(timeout_s)

    def encoded(self, value: Value) -> Any:
        """Return a parameter value. Only PostgreSQL determines the type of a text by itself."""
        if self._access.native:
            return parameter(value)
        if value is None or self._access.kind != POSTGRESQL:
            return int(value) if isinstance(value, bool) else value
        return spelt(value)

    def literal(self, value: Value) -> str:
        """Return a value as text within a statement."""
        return self._sql.literal(value)

    def translated(self, statement: str) -> str:
        """Return the begin of a transaction by a SQL Server driver in the words of this server."""
        return self._sql.begins.get(statement, statement)

    def release(self) -> None:
        """Release the lock for other runs. A second call does nothing."""
        self._access.release()

    @property
    def _sql(self) -> CopySql:
        return DIALECTS[self._access.kind]

    def _find(self, link: Link) -> tuple[str, bool]:
        """Return the name of the database, and whether it is marked as a copy."""
        mark, database = link.execute(self._sql.find).fetchone() or (None, None)
        if database is None:
            raise ScenarioError(
                f"{self._access.place}: the url names no database; write the copy's after the host, as in "
                "HOST/DATABASE"
            )
        return str(database), str(mark or "").startswith(_VERSION)

    def _may_be_changed(self, link: Link) -> None:
        place = self._access.place
        database, marked = self._find(link)
        if database.lower() in self._sql.of_the_server:
            raise ScenarioError(
                f"{place}: {database!r} is one of the server's own databases; write a copy's name after the "
                "host"
            )
        if marked:
            return
        tables = [str(row[0]) for row in link.execute(self._sql.tables.format(owned=OWNED)).fetchall()]
        if self._empty_will_do and not tables:
            return
        shown = ", ".join(tables[:_SHOWN]) + (", ..." if len(tables) > _SHOWN else "")
        holds = f"holds {shown}" if tables else "is empty"
        raise ScenarioError(
            f"{place}: database {database!r} {holds} and is not marked as a copy that a load test may "
            f"change; nothing was started. If it is one, say so: {self._mark(database)}"
        )

    def _mark(self, database: str) -> str:
        return self._sql.mark.format(database=self._access.server.quoted(database), marker=MARKER)

    def _failed(self, what: str, error: Exception) -> ScenarioError:
        return ScenarioError(f"{self._access.place}: {what}: {self._access.message(error)}")


def _access(endpoint: Endpoint, name: str) -> Access:
    scheme = endpoint.url.partition("://")[0]
    if scheme in (*_NATIVE, *SCHEMES):
        return access_to(endpoint, name, own_sql=True)
    why = unreachable(
        endpoint,
        f"scripts and captures run on no server of {scheme}://",
        f"give a url of postgresql://, {', '.join(f'{each}://' for each in SCHEMES)} in farm.yaml",
    )
    return MissingAccess(endpoint, name, why)


def _value(name: str, values: ValuesParams, found: Any) -> Value:
    """Return the value of a column: a number, or a text that becomes a literal."""
    if isinstance(found, bytes):
        raise ScriptError(
            f"values.{name}: column {values.column!r} holds bytes; allowed: numbers, text, dates and times"
        )
    value = plain(found)
    return GeneratedText(value) if isinstance(value, str) and not isinstance(found, Decimal) else value
