"""Creates, marks, locks and drops the schema of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..addresses import unreachable
from ..contract import Endpoint
from ..errors import ScenarioError
from .access import yes
from .contract import Link, SqlConnection
from .reach import access_to
from .servers import SERVERS
from .servers.contract import Asked

MARKER = "pinchpoint.owned/1: made by a load test, which may empty and drop it"
"""The mark of schemas that Pinchpoint created."""


class OwnedSchema:
    """The schema ``pinchpoint_<scenario>`` (of MariaDB and MySQL: the database), locked by one run at a time.

    Args:
        endpoint: endpoint of the server.
        scenario: name of the scenario in the plan.
        tables: tables that the schema may contain. No other table is ever dropped.

    Raises:
        ScenarioError: the URL contains something that is not allowed, or the scenario's name is too long.
    """

    def __init__(self, endpoint: Endpoint, scenario: str, tables: tuple[str, ...]) -> None:
        self.name = f"pinchpoint_{scenario}"
        self.access = access = access_to(endpoint, self.name)
        self._tables = tables
        kinds = [access.known_kind] if access.known_kind else list(SERVERS)
        longest = min(SERVERS[kind].longest_name for kind in kinds)
        if len(self.name.encode()) > longest:
            raise ScenarioError(
                f"scenario {scenario!r}: its schema would be named {self.name!r}, which is longer than the "
                f"{longest} bytes the server allows; give the scenario a shorter name"
            )

    @property
    def place(self) -> str:
        """Return the place of the schema for a message: ``endpoint sql (127.0.0.1:5432)``."""
        return self.access.place

    @property
    def quoted(self) -> str:
        """Return the name of the schema, quoted for its server."""
        return self.access.server.quoted(self.name)

    # ---- what is there ---------------------------------------------------------------------------

    def check(self, isolation: str) -> dict[str, Any]:
        """Return version, settings and rights. Raises if the schema could not be created. Changes nothing."""
        with self.access.inspection() as link:
            try:
                self.access.check_writable(link)
                there = self._is_ours(link)
                self._has_isolation(link, isolation)
                facts = self.access.facts(link)
            except self.access.error as error:
                raise self.access.refused(error) from error
        may = "the schema is there and ours" if there else "may make its schema"
        return facts | {"rights": [may]}

    def free_bytes(self, link: Link) -> int | None:
        """Return the free bytes at the server's data; None if the server or this user cannot report them."""
        server = self.access.server
        if not server.free:
            return None
        try:
            result = link.execute(server.free).fetchone()
        except self.access.error:
            return None
        return server.free_bytes(*result) if result else None

    # ---- created, locked, dropped ----------------------------------------------------------------

    def hold(self) -> Link:
        """Return a connection inside the schema that keeps other runs out until ``release``.

        The schema is created if needed.

        Raises ``ScenarioError`` if Pinchpoint did not create the schema, or if another run uses it.
        """
        access, server = self.access, self.access.server
        if held := access.held():
            return held
        try:
            with access.new_holder() as link:
                access.take(link, server.lock, f"another run is using schema {self.name!r}")
                if not self._is_ours(link):
                    with link.transaction():
                        for statement in server.create:
                            link.execute(self._filled(statement))
                self.enter(link)
        except access.error as error:
            raise self.failed(error) from error
        return link

    def release(self) -> None:
        """Release the lock for other runs. A second call does nothing."""
        self.access.release()

    def drop(self) -> None:
        """Drop the tables of the scenario and the schema, if they exist, and never another object."""
        access, server = self.access, self.access.server
        if not access.installed:
            return
        with access.inspection() as looking:
            if looking.execute(server.find, (self.name,)).fetchone() is None:
                return
        link = self.hold()
        try:
            self.drop_tables(link)
            if not server.depends and (left := self._others(link)):
                raise self._kept(left)
            for statement in server.drop:
                link.execute(self._filled(statement))
        except access.error as error:
            if server.depends and access.state(error) == server.depends:
                raise self._kept(self._others(link) or [access.message(error)]) from error
            raise self.failed(error) from error

    def drop_tables(self, link: Link) -> None:
        """Drop the tables of the scenario, if they exist."""
        quoted = self.access.server.quoted
        names = ", ".join(f"{self.quoted}.{quoted(table)}" for table in self._tables)
        link.execute(self.access.server.drop_tables.format(tables=names))

    def failed(self, error: Exception) -> ScenarioError:
        """Return the message for an internal statement that failed while creating or removing data."""
        return ScenarioError(
            f"{self.place}: schema {self.name!r} could not be prepared or removed: "
            f"{self.access.message(error)}; see the server's log, then run again"
        )

    # ---- further connections ---------------------------------------------------------------------

    def connect(self) -> Link:
        """Open a further connection inside the schema for creating data, beside the one with the lock.

        Raises ``EndpointUnreachable`` with the cause and the remedy, or ``Access.error``.
        """
        link = self.access.patient()
        try:
            self.enter(link)
        except self.access.error:
            link.close()
            raise
        return link

    def session(self, timeout_s: float, isolation: str, ready: Callable[[Link], None]) -> SqlConnection:
        """Return a connection for the operations of a session. It is opened later.

        Args:
            timeout_s: time limit of a statement in seconds, applied by the server or the driver.
            isolation: isolation level of every transaction.
            ready: called with each new connection, inside the schema, before its first use.
        """

        def inside(link: Link) -> None:
            self.enter(link)
            _ask(link, self.access.server.isolation[isolation])
            ready(link)

        return self.access.session(timeout_s, inside)

    def enter(self, link: Link) -> None:
        """Let a connection resolve names only in the schema."""
        asked = self.access.server.enter
        _ask(link, [(self._filled(text), tuple(map(self._filled, given))) for text, given in asked])

    # ---- what is asked ---------------------------------------------------------------------------

    def _filled(self, statement: str) -> str:
        return statement.format(schema=self.quoted, name=self.name.replace("'", "''"), marker=MARKER)

    def _others(self, link: Link) -> list[str]:
        rows = link.execute(self.access.server.others, (self.name,)).fetchall()
        return sorted(str(row[0]) for row in rows)

    def _kept(self, left: list[str]) -> ScenarioError:
        return ScenarioError(
            f"{self.place}: schema {self.name!r} was kept: something that is not Pinchpoint's lies in it or "
            f"depends on it ({', '.join(left)}); move that, then drop the schema"
        )

    def _is_ours(self, link: Link) -> bool:
        """Return whether the schema exists and belongs to Pinchpoint. Raises if it cannot."""
        server = self.access.server
        result = link.execute(server.find, (self.name,)).fetchone()
        if result is not None:
            mark, owned = result
            if mark != MARKER or not yes(owned):
                why = "was not made by Pinchpoint" if mark != MARKER else "belongs to another user"
                raise ScenarioError(
                    f"{self.place}: schema {self.name!r} is there already and {why}; rename or drop it, or "
                    "give the scenario another name in the plan"
                )
            return True
        row = link.execute(self._filled(server.may_create)).fetchone()
        if row and not yes(row[0]):
            _, user, database = row
            raise unreachable(
                self.access.endpoint,
                f"user {user!r} may not create a schema in database {database!r}",
                f"run: {server.grant.format(user=user, database=database)}",
            )
        return False

    def _has_isolation(self, link: Link, level: str) -> None:
        """Raises if the server lacks snapshot isolation, which is optional on this kind of server."""
        server = self.access.server
        if level != "snapshot" or not server.snapshot_on:
            return
        row = link.execute(server.snapshot_off).fetchone() if server.snapshot_off else None
        why = "the database does not allow it" if row and yes(row[0]) else ""
        try:
            _ask(link, server.isolation[level])
        except self.access.error as error:
            why = self.access.message(error)
        if why:
            remedy = server.snapshot_on.format(database=self.access.database)
            raise ScenarioError(f"{self.place}: isolation {level} is not available: {why}; {remedy}")


def _ask(link: Link, asked: Iterable[Asked]) -> None:
    for statement, parameters in asked:
        link.execute(statement, parameters)
