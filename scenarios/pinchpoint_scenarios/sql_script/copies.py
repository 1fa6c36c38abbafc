"""Whose database is it: a user's own statements run in a marked copy only, or where nothing can be lost."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from ..addresses import place, unreachable
from ..contract import Endpoint
from ..databases.postgresql import Connection, connect_or_explain, first_line, refused
from ..databases.schema import MARKER as OWNED
from ..errors import ScenarioError

MARKER = "pinchpoint.copy/1: a copy for load tests, which may change and lose what it holds"
"""The comment on a database that says it may be written to. What follows the version is for people."""
_VERSION = MARKER.partition(":")[0]

_COMMENT = """SELECT shobj_description(oid, 'pg_database'), current_database()
    FROM pg_database WHERE datname = current_database()"""
_TABLES = """SELECT format('%%I.%%I', nspname, relname) FROM pg_class
    JOIN pg_namespace space ON space.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'm', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema')
        AND nspname !~ '^pg_' AND coalesce(obj_description(space.oid, 'pg_namespace'), '') <> %s
    ORDER BY 1 LIMIT 4"""
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_NO_TIMEOUTS = """SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_session_timeout')"""
_SETTINGS = """SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
    'shared_buffers', 'synchronous_commit', 'fsync', 'full_page_writes', 'max_connections', 'max_wal_size',
    'checkpoint_timeout', 'track_io_timing', 'wal_level', 'data_checksums', 'server_version')"""
_SCHEMES = ("postgresql", "postgres")


class Copy:
    """A database that statements of the user's own may change.

    Args:
        endpoint: the database's endpoint.
        name: what the server shows for our connections (``application_name``), and what a run holds.
        empty_will_do: a database without any table but Pinchpoint's own needs no mark.
    """

    def __init__(self, endpoint: Endpoint, name: str, *, empty_will_do: bool) -> None:
        self.name = name
        self._endpoint = endpoint
        self._empty_will_do = empty_will_do
        self._holder: Connection | None = None

    def check(self) -> dict[str, Any]:
        """Version and settings of the server; raises where its database is not to be written to."""
        with self.connect() as connection:
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

    def connect(self) -> Connection:
        """A connection for preparing, without time limits. Raises ``EndpointUnreachable``."""
        scheme = self._endpoint.url.partition("://")[0]
        if scheme not in _SCHEMES:
            raise unreachable(
                self._endpoint,
                f"scripts and captures run on PostgreSQL only, and this is {scheme}://",
                "give a postgresql:// url in farm.yaml",
            )
        connection = connect_or_explain(self._endpoint, self.name)
        connection.execute(_NO_TIMEOUTS)
        return connection

    def hold(self) -> Connection:
        """A connection that keeps other runs of this name out until ``release``; checks the mark again."""
        if self._holder is None:
            connection = self.connect()
            try:
                self._may_be_changed(connection)
                self._lock(connection)
            except psycopg.Error as error:
                connection.close()
                raise self.failed("cannot be prepared", error) from error
            except ScenarioError:
                connection.close()
                raise
            self._holder = connection
        return self._holder

    def mark(self, connection: Connection) -> None:
        """Say on a database that nothing could be lost in that it is ours to change, before it is filled."""
        _, name = self._comment(connection)
        connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(MARKER))
        )

    def release(self) -> None:
        """Let other runs in. Safe to call twice."""
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def failed(self, what: str, error: psycopg.Error) -> ScenarioError:
        """The sentence for a statement that failed while data was made or removed."""
        return ScenarioError(f"{place(self._endpoint)}: {what}: {first_line(error)}")

    def is_marked(self, connection: Connection) -> bool:
        """Whether somebody has said that this database may be changed."""
        comment, _ = self._comment(connection)
        return (comment or "").startswith(_VERSION)

    def _comment(self, connection: Connection) -> tuple[str | None, str]:
        found = connection.execute(_COMMENT).fetchone()
        return (found[0], str(found[1])) if found else (None, "")

    def _may_be_changed(self, connection: Connection) -> None:
        if self.is_marked(connection):
            return
        tables = [row[0] for row in connection.execute(_TABLES, [OWNED])]
        if self._empty_will_do and not tables:
            return
        _, name = self._comment(connection)
        shown = ", ".join(tables[:3]) + (", ..." if len(tables) > 3 else "")
        holds = f"holds {shown}" if tables else "is empty"
        command = sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(MARKER))
        raise ScenarioError(
            f"{place(self._endpoint)}: database {name!r} {holds} and is not marked as a copy that a load "
            f"test may change; nothing was started. If it is one, say so: {command.as_string(connection)}"
        )

    def _lock(self, connection: Connection) -> None:
        locked = connection.execute(_LOCK, [self.name]).fetchone()
        if not (locked and locked[0]):
            raise ScenarioError(
                f"{place(self._endpoint)}: another run of {self.name!r} is going on in this database; wait "
                "until it has ended, or give the scenario another name in the plan"
            )
