"""A schema of our own behind ODBC: made with a mark, held by one run, dropped only with the mark."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyodbc

from ...addresses import unreachable
from ...contract import Endpoint
from ...errors import ScenarioError
from ..schema import MARKER
from .connection import OdbcConnection
from .endpoint import OdbcEndpoint
from .failures import refused, said
from .link import OdbcLink
from .servers import SERVERS


class OdbcSchema(OdbcEndpoint):
    """The schema ``pinchpoint_<scenario>`` (of MariaDB and MySQL: the database), held by one run at a time.

    Args:
        endpoint: the server's endpoint.
        scenario: the scenario's name in the plan.
        tables: the tables it may hold; nothing else in it is ever dropped.

    Raises:
        ScenarioError: the URL says something that is not allowed, or the scenario's name is too long.
    """

    def __init__(self, endpoint: Endpoint, scenario: str, tables: tuple[str, ...]) -> None:
        super().__init__(endpoint, f"pinchpoint_{scenario}")
        self._tables = tables
        longest = min(server.longest_name for kind, server in SERVERS.items() if self._kind in (kind, None))
        if len(self.name.encode()) > longest:
            raise ScenarioError(
                f"scenario {scenario!r}: its schema would be named {self.name!r}, which is longer than the "
                f"{longest} bytes the server allows; give the scenario a shorter name"
            )

    @property
    def quoted(self) -> str:
        """Its name as its server wants it written."""
        return self.server.quoted(self.name)

    # ---- connections -----------------------------------------------------------------------------

    def connect(self) -> OdbcLink:
        """One more connection inside the schema, for making data, beside the one that holds it.

        Raises ``EndpointUnreachable``, or ``pyodbc.Error``.
        """
        link = self.patient()
        try:
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
        server = self.server

        def open_and_greet() -> OdbcLink:
            link = self._open()
            try:
                self.bound(link, timeout_s)
                for statement in server.greet:
                    link.execute(statement)
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
                facts = self.facts(link)
            except pyodbc.Error as error:
                raise refused(self._endpoint, error, self.kind) from error
        may = "the schema is there and ours" if there else "may make its schema"
        return facts | {"rights": [may]}

    def hold(self) -> OdbcLink:
        """A connection inside the schema, made if need be, that keeps other runs out until ``release``.

        Raises ``ScenarioError`` where the schema is somebody else's, or another run uses it.
        """
        if held := self._held():
            return held
        self._holder = link = self.reach()
        try:
            self._take(link)
        except pyodbc.Error as error:
            self.release()
            raise self.failed(error) from error
        except ScenarioError:
            self.release()
            raise
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
