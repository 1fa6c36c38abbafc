"""A schema of our own behind ODBC: made with a mark, held by one run, dropped only with the mark."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyodbc

from ...addresses import place, unreachable
from ...contract import Endpoint
from ...errors import ScenarioError
from ..schema import MARKER
from .address import KINDS, parse
from .connection import OdbcConnection
from .failures import refused, said
from .link import OdbcLink, found_driver, open_link
from .servers import SERVERS, kind_of
from .servers.contract import ServerSql


class OdbcSchema:
    """The schema ``pinchpoint_<scenario>`` (of MariaDB and MySQL: the database), held by one run at a time.

    Args:
        endpoint: the server's endpoint.
        scenario: the scenario's name in the plan.
        tables: the tables it may hold; nothing else in it is ever dropped.

    Raises:
        ScenarioError: the URL says something that is not allowed, or the scenario's name is too long.
    """

    def __init__(self, endpoint: Endpoint, scenario: str, tables: tuple[str, ...]) -> None:
        self.name = f"pinchpoint_{scenario}"
        self._endpoint = endpoint
        self._address = parse(endpoint)
        self._tables = tables
        self._holder: OdbcLink | None = None
        self._kind = self._address.kind
        longest = min(server.longest_name for kind, server in SERVERS.items() if self._kind in (kind, None))
        if len(self.name.encode()) > longest:
            raise ScenarioError(
                f"scenario {scenario!r}: its schema would be named {self.name!r}, which is longer than the "
                f"{longest} bytes the server allows; give the scenario a shorter name"
            )

    @property
    def place(self) -> str:
        """Where it lies, for a sentence: ``endpoint sql (127.0.0.1:1433)``."""
        return place(self._endpoint)

    @property
    def kind(self) -> str:
        """The server's kind, one of ``address.KINDS``; the server is asked where the URL does not say it.

        Raises ``EndpointUnreachable`` where it does not answer then.
        """
        if self._kind is None:
            with contextlib.closing(self.reach()) as link:
                name = link.server
            self._kind = kind_of(name)
            if self._kind is None:
                raise ScenarioError(
                    f"{self.place}: the server calls itself {name!r}; allowed are SQL Server, MariaDB, "
                    f"MySQL and PostgreSQL, or whatever speaks like one: &dialect={'|'.join(KINDS)}"
                )
        return self._kind

    @property
    def server(self) -> ServerSql:
        """What its kind of server is asked."""
        return SERVERS[self.kind]

    @property
    def quoted(self) -> str:
        """Its name as its server wants it written."""
        return self.server.quoted(self.name)

    # ---- connections -----------------------------------------------------------------------------

    def reach(self) -> OdbcLink:
        """A new connection to the server; raises ``EndpointUnreachable`` with the cause and the remedy."""
        driver = found_driver(self._endpoint, self._address)
        try:
            return open_link(self._address, driver, self.name)
        except pyodbc.Error as error:
            raise refused(self._endpoint, error, self._kind or KINDS[0]) from error

    def connect(self) -> OdbcLink:
        """One more connection inside the schema, for making data, beside the one that holds it.

        Raises ``EndpointUnreachable``, or ``pyodbc.Error``.
        """
        link = self.reach()
        try:
            for statement in self.server.patient:
                link.execute(statement)
            self._enter(link)
        except pyodbc.Error:
            link.close()
            raise
        return link

    def session(self, timeout_s: float, isolation: str, ready: Callable[[OdbcLink], None]) -> OdbcConnection:
        """A connection that does a session's operations; not opened yet.

        Args:
            timeout_s: after so long the server, or the driver, gives a statement up.
            isolation: the isolation level of every transaction.
            ready: called with each new connection, inside the schema, before it is used.
        """
        server, driver = self.server, found_driver(self._endpoint, self._address)

        def open_and_greet() -> OdbcLink:
            link = open_link(self._address, driver, self.name)
            try:
                if server.driver_times_out:
                    link.limit(timeout_s)
                for statement, parameters in server.greet(self.name, timeout_s):
                    link.execute(statement, parameters)
                self._enter(link)
                for statement in server.isolation[isolation]:
                    link.execute(statement)
                ready(link)
            except pyodbc.Error:
                link.close()
                raise
            return link

        return OdbcConnection(self.kind, open_and_greet)

    # ---- what is there ---------------------------------------------------------------------------

    def check(self, isolation: str) -> dict[str, Any]:
        """Driver, version, settings, files and rights; raises where the schema could not be made.

        Changes nothing.
        """
        with contextlib.closing(self.reach()) as link:
            try:
                there = self._may_be_ours(link)
                self._isolation_is_to_be_had(link, isolation)
                facts = self._facts(link)
            except pyodbc.Error as error:
                raise refused(self._endpoint, error, self.kind) from error
        may = "the schema is there and ours" if there else "may make its schema"
        return facts | {"rights": [may]}

    def hold(self) -> OdbcLink:
        """A connection inside the schema, made if need be, that keeps other runs out until ``release``.

        Raises ``ScenarioError`` where the schema is somebody else's, or another run uses it.
        """
        if self._holder is not None and _alive(self._holder):
            return self._holder
        self.release()
        link = self.reach()
        try:
            self._take(link)
        except pyodbc.Error as error:
            link.close()
            raise self.failed(error) from error
        except ScenarioError:
            link.close()
            raise
        self._holder = link
        return link

    def failed(self, error: pyodbc.Error) -> ScenarioError:
        """The sentence for a statement of ours that failed while data was made or removed."""
        return ScenarioError(
            f"{self.place}: schema {self.name!r} could not be prepared or removed: {said(error).text}; see "
            "the server's log, then run again"
        )

    def drop(self) -> None:
        """Drop our tables and the schema; nothing where it is not there. Never touches what is not ours."""
        with contextlib.closing(self.reach()) as link:
            if link.execute(self.server.find, (self.name,)).fetchone() is None:
                return
        link = self.hold()
        try:
            self.drop_tables(link)
            left = [str(row[0]) for row in link.execute(self.server.others, (self.name,)).fetchall()]
            if left:
                raise ScenarioError(
                    f"{self.place}: schema {self.name!r} was kept: something that is not Pinchpoint's lies "
                    f"in it ({', '.join(sorted(left))}); move that, then drop the schema"
                )
            for statement in self.server.drop:
                link.execute(self._filled(statement))
        except pyodbc.Error as error:
            raise self.failed(error) from error

    def drop_tables(self, link: OdbcLink) -> None:
        """Drop our tables, as far as they are there."""
        for table in self._tables:
            link.execute(self.server.drop_table.format(table=f"{self.quoted}.{self.server.quoted(table)}"))

    def free_bytes(self, link: OdbcLink) -> int | None:
        """Bytes free where the server's data goes; None where it, or this user, cannot know."""
        if not self.server.free:
            return None
        try:
            found = link.execute(self.server.free).fetchone()
        except pyodbc.ProgrammingError:
            return None
        return int(found[0]) if found and found[0] is not None else None

    def release(self) -> None:
        """Let other runs in. Safe to call twice."""
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def _take(self, link: OdbcLink) -> None:
        for statement in self.server.patient:
            link.execute(statement)
        locked = link.execute(self.server.lock, (self.name,)).fetchone()
        if not (locked and locked[0] == 1):
            raise ScenarioError(
                f"{self.place}: another run is using schema {self.name!r}; wait until it has ended, or give "
                "the scenario another name in the plan"
            )
        if not self._may_be_ours(link):
            with link.transaction():
                for statement in self.server.create:
                    link.execute(self._filled(statement))
        self._enter(link)

    def _enter(self, link: OdbcLink) -> None:
        for statement in self.server.enter:
            link.execute(self._filled(statement))

    def _filled(self, statement: str) -> str:
        return statement.format(schema=self.quoted, name=self.name.replace("'", "''"), marker=MARKER)

    def _may_be_ours(self, link: OdbcLink) -> bool:
        """Whether the schema is there already and ours; raises where it cannot become ours."""
        found = link.execute(self.server.find, (self.name,)).fetchone()
        if found is not None:
            mark, owned = found
            if mark != MARKER or not owned:
                why = "was not made by Pinchpoint" if mark != MARKER else "belongs to another user"
                raise ScenarioError(
                    f"{self.place}: schema {self.name!r} is there already and {why}; rename or drop it, or "
                    "give the scenario another name in the plan"
                )
            return True
        row = link.execute(self._filled(self.server.may_create)).fetchone()
        if row and not row[0]:
            _, user, database = row
            raise unreachable(
                self._endpoint,
                f"user {user!r} may not create a schema in database {database!r}",
                f"run: {self.server.grant.format(user=user, database=database)}",
            )
        return False

    def _isolation_is_to_be_had(self, link: OdbcLink, level: str) -> None:
        server = self.server
        row = (
            link.execute(server.snapshot_off).fetchone()
            if level == "snapshot" and server.snapshot_off
            else None
        )
        why = "the database does not allow it" if row and row[0] else ""
        try:
            for statement in server.isolation[level]:
                link.execute(statement)
        except pyodbc.Error as error:
            why = said(error).text
        if why:
            database = self._address.database
            raise ScenarioError(
                f"{self.place}: isolation {level} is not to be had: {why}; "
                f"{server.snapshot_on.format(database=database) or 'choose another in the plan'}"
            )

    def _facts(self, link: OdbcLink) -> dict[str, Any]:
        server, driver = self.server, found_driver(self._endpoint, self._address)
        version = link.execute(server.version).fetchone()
        settings = {str(name): str(value) for name, value in link.execute(server.settings).fetchall()}
        shown = driver.shown if driver else f"data source {self._address.dsn}"
        return {
            "server": server.name,
            "version": str(version[0]) if version else None,
            "driver": f"{shown}, {link.library}",
            "settings": settings,
            "files": _rows_if_allowed(link, server.files),
            "warnings": [
                f"{self.place}: {name} is {settings[name]}, so a commit does not wait for the disk"
                for name, durable in server.durable.items()
                if settings.get(name, "") not in durable | {""}
            ],
        }


def _rows_if_allowed(link: OdbcLink, statement: str) -> dict[str, str] | None:
    """What for -> path; None where this user may not know."""
    try:
        return {str(what): str(path) for what, path in link.execute(statement).fetchall()}
    except pyodbc.ProgrammingError:
        return None


def _alive(link: OdbcLink) -> bool:
    try:
        link.execute("SELECT 1")
    except pyodbc.Error:
        return False
    return True
