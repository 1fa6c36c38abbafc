"""A server behind ODBC: its kind, connections to it, what it says of itself."""

from __future__ import annotations

import contextlib
from typing import Any

import pyodbc

from ...addresses import place
from ...contract import Endpoint
from ...errors import ScenarioError
from .address import KINDS, parse
from .failures import refused
from .link import OdbcLink, found_driver, open_link
from .servers import SERVERS, kind_of
from .servers.contract import ServerSql


class OdbcEndpoint:
    """An endpoint whose URL is one of ODBC's.

    Args:
        endpoint: it.
        name: what the server shows for our connections, where the driver can tell it.
        own_sql: whether they run texts of the user's own.

    Raises:
        ScenarioError: the URL says something that is not allowed.
    """

    def __init__(self, endpoint: Endpoint, name: str, *, own_sql: bool = False) -> None:
        self.name = name
        self._endpoint = endpoint
        self._address = parse(endpoint)
        self._own_sql = own_sql
        self._kind = self._address.kind
        self._holder: OdbcLink | None = None

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
            try:
                link = self._new()
            except pyodbc.Error as error:
                raise refused(self._endpoint, error, KINDS[0]) from error
            with contextlib.closing(link):
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

    def reach(self) -> OdbcLink:
        """A new connection to the server; raises ``EndpointUnreachable`` with the cause and the remedy."""
        try:
            return self._open()
        except pyodbc.Error as error:
            raise refused(self._endpoint, error, self._kind or KINDS[0]) from error

    def patient(self) -> OdbcLink:
        """A new connection for making data, which takes as long as it takes.

        Raises ``EndpointUnreachable``, or ``pyodbc.Error``.
        """
        link = self.reach()
        try:
            for statement in self.server.patient:
                link.execute(statement)
        except pyodbc.Error:
            link.close()
            raise
        return link

    def bound(self, link: OdbcLink, timeout_s: float) -> None:
        """Have the server, or the driver, give the connection's statements up after so long."""
        if self.server.driver_times_out:
            link.limit(timeout_s)
        for statement, parameters in self.server.bound(self.name, timeout_s):
            link.execute(statement, parameters)

    def release(self) -> None:
        """Let other runs in, from now on. Safe to call twice."""
        if self._holder is not None:
            if self.server.unlock:
                # A server notices that a connection has closed when it gets to it; a lost one frees its own.
                with contextlib.suppress(pyodbc.Error):
                    self._holder.execute(self.server.unlock)
            self._holder.close()
            self._holder = None

    def facts(self, link: OdbcLink) -> dict[str, Any]:
        """Driver, version, settings, files, and warnings of settings; raises ``pyodbc.Error``."""
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

    def _open(self, *, pinned: bool = True) -> OdbcLink:
        """A new connection; names on it are the server's own (``ServerSql.pin``). Raises ``pyodbc.Error``."""
        link = self._new()
        try:
            if pinned:
                self._pin(link)
        except BaseException:
            link.close()
            raise
        return link

    def _pin(self, link: OdbcLink) -> None:
        for statement in self.server.pin:
            link.execute(statement)

    def _unpin(self, link: OdbcLink) -> None:
        """For texts of the user's own."""
        for statement in self.server.unpin:
            link.execute(statement)

    def _new(self) -> OdbcLink:
        driver = found_driver(self._endpoint, self._address)
        return open_link(self._address, driver, self.name, own_sql=self._own_sql)

    def _held(self) -> OdbcLink | None:
        """The connection that keeps other runs out, where there is one and it still works."""
        if self._holder is not None and not _alive(self._holder):
            self.release()
        return self._holder


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
