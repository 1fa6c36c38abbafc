"""A PostgreSQL database by its own library."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import psycopg
from psycopg import sql

from ...addresses import place
from ...contract import Endpoint
from ...databases.postgresql import PIN, UNPIN, Connection, connect_or_explain, first_line, looking, refused
from ...databases.schema import LOCK, unlock
from ...databases.schema import MARKER as OWNED
from ...errors import ScenarioError
from ...fastpath.postgresql import FastConnection
from ..lexer import ScriptError
from ..params import ValuesParams
from ..scope import Text, Value, literal, parameter
from .contract import MARKER, VERSION
from .refusals import another_run, no_values, not_a_copy

_COMMENT = """SELECT shobj_description(oid, 'pg_database'), current_database()
    FROM pg_database WHERE datname = current_database()"""
_TABLES = """SELECT format('%%I.%%I', nspname, relname) FROM pg_class
    JOIN pg_namespace space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'm', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema')
        AND nspname !~ '^pg_' AND coalesce(obj_description(space.oid, 'pg_namespace'), '') <> %s
    ORDER BY 1 LIMIT 4"""
_NO_TIMEOUTS = """SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_session_timeout')"""
_SETTINGS = """SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
    'shared_buffers', 'synchronous_commit', 'fsync', 'full_page_writes', 'max_connections', 'max_wal_size',
    'checkpoint_timeout', 'track_io_timing', 'wal_level', 'data_checksums', 'server_version')"""
# Every so many-th of the column's values, in their order, so that frequent ones stay frequent.
_SAMPLE = """SELECT value::text FROM (
    SELECT {column} AS value, row_number() OVER (ORDER BY {column}) AS at, count(*) OVER () AS rows
    FROM {table} WHERE {column} IS NOT NULL) ranked
    WHERE rows <= %(sample)s OR at * %(sample)s / rows > (at - 1) * %(sample)s / rows ORDER BY at"""
_NUMERIC = """SELECT typcategory = 'N' FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=)
    (SELECT pg_catalog.pg_typeof({column})::oid FROM {table} WHERE {column} IS NOT NULL LIMIT 1)"""


class _Connection(FastConnection):
    """A ``TextConnection``."""

    def roll_back(self) -> None:
        """See ``TextConnection``."""
        if self.in_transaction:
            self.query("ROLLBACK")


class NativeCopy:
    """A ``Copy``; see there, and ``copy_of``."""

    blocks = False

    def __init__(self, endpoint: Endpoint, name: str, *, empty_will_do: bool) -> None:
        self._name = name
        self._endpoint = endpoint
        self._empty_will_do = empty_will_do
        self._holder: Connection | None = None

    def check(self) -> dict[str, Any]:
        """See ``Copy``."""
        with looking(self._endpoint, self._name) as connection:
            try:
                self._may_be_changed(connection)
                settings: dict[str, str] = dict(connection.execute(_SETTINGS).fetchall())
            except psycopg.Error as error:
                raise refused(self._endpoint, error) from error
        warnings = [
            f"{place(self._endpoint)}: {name} is off, so a commit does not wait for the disk"
            for name in ("fsync", "synchronous_commit")
            if settings.get(name) == "off"
        ]
        version = settings.pop("server_version", None)
        return {"server": "postgresql", "version": version, "settings": settings, "warnings": warnings}

    def hold(self) -> None:
        """See ``Copy``."""
        self._held()

    def run_file(self, file: str, text: str, *, mark: bool) -> None:
        """See ``Copy``."""
        connection = self._held()
        try:
            connection.execute(PIN)
            if mark and not self._is_marked(connection):
                connection.execute(self._mark(connection))
            connection.execute(UNPIN)
            connection.execute(text.encode())
        except psycopg.Error as error:
            raise self._failed(f"{file} could not be run to its end", error) from error

    def column(self, name: str, values: ValuesParams) -> list[Value]:
        """See ``Copy``."""
        *table, column = str(values.column).split(".")
        names = {"column": sql.Identifier(column), "table": sql.Identifier(*table)}
        with nullcontext(self._holder) if self._holder else self._connect() as connection:
            try:
                connection.execute(UNPIN)  # the table's name is the user's
                numeric = connection.execute(sql.SQL(_NUMERIC).format(**names)).fetchone()
                sampled = connection.execute(sql.SQL(_SAMPLE).format(**names), {"sample": values.sample})
                rows = sampled.fetchall()
            except psycopg.Error as error:
                said = error.diag.message_primary or str(error)
                raise ScriptError(
                    f"values.{name}: column {values.column!r} cannot be read: {said}"
                ) from error
        if not rows:
            raise no_values(name, values.column)
        bare = bool(numeric and numeric[0])
        return [text if bare else Text(text) for (text,) in rows]

    def connection(self, timeout_s: float) -> _Connection:
        """See ``Copy``."""
        return _Connection(
            self._endpoint,
            application=self._name,
            statement_timeout_s=timeout_s,
            greet=_as_it_comes,
            pinned=False,
        )

    def encoded(self, value: Value) -> bytes | None:
        """See ``Copy``: the server finds its type."""
        return parameter(value)

    def literal(self, value: Value) -> str:
        """See ``Copy``."""
        return literal(value)

    def translated(self, statement: str) -> str:
        """See ``Copy``."""
        return statement

    def release(self) -> None:
        """See ``Copy``."""
        if self._holder is not None:
            unlock(self._holder)
            self._holder.close()
            self._holder = None

    def _connect(self) -> Connection:
        """A connection for preparing, without time limits. Raises ``EndpointUnreachable``."""
        connection = connect_or_explain(self._endpoint, self._name)
        connection.execute(_NO_TIMEOUTS)
        return connection

    def _held(self) -> Connection:
        if self._holder is None:
            connection = self._connect()
            try:
                self._may_be_changed(connection)
                locked = connection.execute(LOCK, [self._name]).fetchone()
                if not (locked and locked[0]):
                    raise another_run(place(self._endpoint), self._name)
            except psycopg.Error as error:
                connection.close()
                raise self._failed("cannot be prepared", error) from error
            except ScenarioError:
                connection.close()
                raise
            self._holder = connection
        return self._holder

    def _failed(self, what: str, error: psycopg.Error) -> ScenarioError:
        return ScenarioError(f"{place(self._endpoint)}: {what}: {first_line(error)}")

    def _is_marked(self, connection: Connection) -> bool:
        found = connection.execute(_COMMENT).fetchone()
        return bool(found and (found[0] or "").startswith(VERSION))

    def _mark(self, connection: Connection) -> sql.Composed:
        found = connection.execute(_COMMENT).fetchone()
        name = str(found[1]) if found else ""
        return sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(MARKER))

    def _may_be_changed(self, connection: Connection) -> None:
        if self._is_marked(connection):
            return
        tables = [row[0] for row in connection.execute(_TABLES, [OWNED])]
        if self._empty_will_do and not tables:
            return
        database = str(connection.info.dbname)
        raise not_a_copy(
            place(self._endpoint), database, tables, self._mark(connection).as_string(connection)
        )


def _as_it_comes(_: Connection) -> None:
    """A session's connection is as the server gives it: what a script needs set, it sets."""
