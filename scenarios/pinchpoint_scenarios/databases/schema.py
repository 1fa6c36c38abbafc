"""A schema of our own in somebody's database: made with a marker, and dropped only with it."""

from __future__ import annotations

import select
import time
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from ..addresses import place, unreachable
from ..contract import Endpoint
from ..errors import ScenarioError
from .postgresql import Connection, connect_or_explain, first_line, looking, refused

MARKER = "pinchpoint.owned/1: made by a load test, which may empty and drop it"
"""The comment on a schema that says it is ours."""
LOCK = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(%s, 0))"
"""Keeps other runs of that name out until the connection ends, or ``UNLOCK``; one row: whether it did."""
UNLOCK = b"SELECT pg_catalog.pg_advisory_unlock_all()"
_UNLOCK_S = 5.0
_LONGEST_NAME_BYTES = 63  # PostgreSQL cuts longer names off silently (NAMEDATALEN - 1)

_FIND = """SELECT obj_description(oid, 'pg_namespace'), pg_has_role(nspowner, 'USAGE')
           FROM pg_namespace WHERE nspname = %s"""
_MAY_CREATE = "SELECT has_database_privilege(current_database(), 'CREATE'), current_user, current_database()"
# Making data takes as long as it takes, and who holds the schema idles for the length of a run.
_NO_TIMEOUTS = """SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_session_timeout')"""
_SETTINGS = """SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
               'shared_buffers', 'synchronous_commit', 'fsync', 'full_page_writes', 'max_connections',
               'max_wal_size', 'checkpoint_timeout', 'track_io_timing', 'wal_level', 'data_checksums')"""


class OwnedSchema:
    """The schema ``pinchpoint_<scenario>``, held by one run at a time.

    Args:
        endpoint: the database's endpoint.
        scenario: the scenario's name in the plan.
        tables: the tables it may hold; nothing else in it is ever dropped.
    """

    def __init__(self, endpoint: Endpoint, scenario: str, tables: tuple[str, ...]) -> None:
        self.name = f"pinchpoint_{scenario}"
        self._endpoint = endpoint
        self._tables = tables
        self._holder: Connection | None = None
        if len(self.name.encode()) > _LONGEST_NAME_BYTES:
            raise ScenarioError(
                f"scenario {scenario!r}: its schema would be named {self.name!r}, which is longer than the "
                f"{_LONGEST_NAME_BYTES} bytes PostgreSQL allows; give the scenario a shorter name"
            )

    @property
    def place(self) -> str:
        """Where it lies, for a sentence: ``endpoint sql (127.0.0.1:5432)``."""
        return place(self._endpoint)

    def check(self) -> dict[str, Any]:
        """Version and settings of the server; raises where the schema could not be made. Changes nothing."""
        with looking(self._endpoint, self.name) as connection:
            try:
                self._may_be_ours(connection)
                settings: dict[str, str] = dict(connection.execute(_SETTINGS).fetchall())
                version = connection.execute("SELECT current_setting('server_version')").fetchone()
            except psycopg.Error as error:
                raise refused(self._endpoint, error) from error
        warnings = [
            f"{self.place}: {name} is off, so a commit does not wait for the disk"
            for name in ("fsync", "synchronous_commit")
            if settings.get(name) == "off"
        ]
        return {
            "server": "postgresql",
            "version": version[0] if version else None,
            "settings": settings,
            "warnings": warnings,
        }

    def hold(self) -> Connection:
        """A connection inside the schema, made if need be, that keeps other runs out until ``release``.

        Raises ``ScenarioError`` where the schema is somebody else's, or another run uses it.
        """
        if self._holder is not None and _alive(self._holder):
            return self._holder
        self.release()
        self._holder = connection = connect_or_explain(self._endpoint, self.name)
        try:
            self._enter(connection)
        except psycopg.Error as error:
            self.release()
            raise self.failed(error) from error
        except ScenarioError:
            self.release()
            raise
        return connection

    def connect(self) -> Connection:
        """One more connection inside the schema, for making data, beside the one that holds it.

        Raises ``EndpointUnreachable`` with the cause and the remedy, or ``psycopg.Error``.
        """
        connection = connect_or_explain(self._endpoint, self.name)
        try:
            connection.execute(_NO_TIMEOUTS)
            self.enter(connection)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def failed(self, error: psycopg.Error) -> ScenarioError:
        """The sentence for a statement of ours that failed while data was made or removed."""
        return ScenarioError(
            f"{self.place}: schema {self.name!r} could not be prepared or removed: "
            f"{first_line(error)}; see the server's log, then run again"
        )

    def drop(self) -> None:
        """Drop our tables and the schema; nothing where it is not there. Never touches what is not ours."""
        with looking(self._endpoint, self.name) as connection:
            if connection.execute(_FIND, [self.name]).fetchone() is None:
                return
        connection = self.hold()
        try:
            self.drop_tables(connection)
            connection.execute(sql.SQL("DROP SCHEMA {} RESTRICT").format(sql.Identifier(self.name)))
        except psycopg.errors.DependentObjectsStillExist as error:
            raise ScenarioError(
                f"{self.place}: schema {self.name!r} was kept: something that is not Pinchpoint's "
                f"lies in it or depends on it ({error.diag.message_detail}); move that, then drop the schema"
            ) from error
        except psycopg.Error as error:
            raise self.failed(error) from error

    def drop_tables(self, connection: Connection) -> None:
        """Drop our tables, as far as they are there."""
        names = sql.SQL(", ").join(sql.Identifier(self.name, table) for table in self._tables)
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {} RESTRICT").format(names))

    def release(self) -> None:
        """Let other runs in, from now on. Safe to call twice."""
        if self._holder is not None:
            unlock(self._holder)
            self._holder.close()
            self._holder = None

    def enter(self, connection: Connection) -> None:
        """Make the schema the only one in which ``connection`` looks names up."""
        path = sql.Identifier(self.name).as_string(connection)
        connection.execute("SELECT pg_catalog.set_config('search_path', %s, false)", [path])

    def _enter(self, connection: Connection) -> None:
        connection.execute(_NO_TIMEOUTS)
        locked = connection.execute(LOCK, [self.name]).fetchone()
        if not (locked and locked[0]):
            raise ScenarioError(
                f"{self.place}: another run is using schema {self.name!r}; wait until it has "
                "ended, or give the scenario another name in the plan"
            )
        if not self._may_be_ours(connection):
            schema = sql.Identifier(self.name)
            with connection.transaction():
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
                connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, sql.Literal(MARKER)))
        self.enter(connection)

    def _may_be_ours(self, connection: Connection) -> bool:
        """Whether the schema is there already and ours; raises where it cannot become ours."""
        found = connection.execute(_FIND, [self.name]).fetchone()
        if found is not None:
            comment, owned = found
            if comment != MARKER or not owned:
                why = "was not made by Pinchpoint" if comment != MARKER else "belongs to another user"
                raise ScenarioError(
                    f"{self.place}: schema {self.name!r} is there already and {why}; "
                    "rename or drop it, or give the scenario another name in the plan"
                )
            return True
        may = connection.execute(_MAY_CREATE).fetchone()
        if may and not may[0]:
            raise unreachable(
                self._endpoint,
                f"user {may[1]!r} may not create a schema in database {may[2]!r}",
                f'run: GRANT CREATE ON DATABASE "{may[2]}" TO "{may[1]}"',
            )
        return False


def unlock(connection: Connection) -> None:
    """Give up the locks of a connection that is about to be closed, if the server confirms that in time.

    A server notices that a connection has closed when it gets to it, so the next run is let in sooner.
    A server that does not answer within ``_UNLOCK_S`` frees them when it sees the close.
    """
    link, until_s = connection.pgconn, time.monotonic() + _UNLOCK_S
    with suppress(psycopg.Error, OSError, ValueError):  # the connection is lost, and its locks with it
        link.send_query(UNLOCK)
        while link.is_busy() and (left_s := until_s - time.monotonic()) > 0:
            if select.select([link.socket], [], [], left_s)[0]:
                link.consume_input()


def _alive(connection: Connection) -> bool:
    try:
        connection.execute("SELECT")
    except psycopg.OperationalError:
        return False
    return True
