"""A server behind ODBC: its kind, connections to it, what it says of itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyodbc

from ...contract import Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ..access import Access
from ..contract import Link
from ..servers import kind_of
from ..servers.contract import KINDS
from .address import parse
from .connection import OdbcConnection, OdbcTextConnection
from .failures import message, refused, state
from .link import OdbcLink, found_driver, open_link


class OdbcAccess(Access):
    """An endpoint whose URL is one of ODBC's.

    Args:
        endpoint: it.
        name: see ``Access``.
        own_sql: see ``access_to``.

    Raises:
        ScenarioError: the URL says something that is not allowed.
    """

    error = pyodbc.Error

    def __init__(self, endpoint: Endpoint, name: str, *, own_sql: bool = False) -> None:
        self._address = parse(endpoint)
        self._own_sql = own_sql
        super().__init__(endpoint, name, self._address.kind)

    @property
    def kind(self) -> str:
        """The server's kind; the server is asked where the URL does not say it.

        Raises ``EndpointUnreachable`` where it does not answer then.
        """
        if self.known_kind is None:
            try:
                link = self._new()
            except pyodbc.Error as error:
                raise self.refused(error) from error
            with contextlib.closing(link):
                name = link.server
            self.known_kind = kind_of(name)
            if self.known_kind is None:
                raise ScenarioError(
                    f"{self.place}: the server calls itself {name!r}; allowed are SQL Server, MariaDB, "
                    f"MySQL and PostgreSQL, or whatever speaks like one: &dialect={'|'.join(KINDS)}"
                )
        return self.known_kind

    def open(self, *, pinned: bool = True) -> OdbcLink:
        link = self._new()
        try:
            if pinned:
                self.pin(link)
        except BaseException:
            link.close()
            raise
        return link

    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> OdbcConnection:

        def opened() -> OdbcLink:
            return self._bound(self.open(), timeout_s, self.server.greet, ready)

        return OdbcConnection(self.kind, opened)

    def own_session(self, timeout_s: float) -> OdbcTextConnection:

        def opened() -> OdbcLink:
            return self._bound(self._new(), timeout_s, (), lambda _: None)

        return OdbcTextConnection(self.kind, self.server, opened)

    def refused(self, error: pyodbc.Error) -> EndpointUnreachable:
        return refused(self.endpoint, error, self.known_kind or KINDS[0], self._address)

    def message(self, error: pyodbc.Error) -> str:
        return message(error, self.known_kind)

    def state(self, error: pyodbc.Error) -> str:
        return state(error)

    def facts(self, link: Link) -> dict[str, Any]:
        """The URL's parts with driver and files."""
        driver = found_driver(self.endpoint, self._address)
        shown = driver.shown if driver else f"data source {self._address.dsn}"
        library = link.library if isinstance(link, OdbcLink) else ""
        try:
            rows = link.execute(self.server.files).fetchall()
        except pyodbc.ProgrammingError:
            rows = None  # this user may not know
        files = None if rows is None else {str(what): str(path) for what, path in rows}
        return {**super().facts(link), "driver": f"{shown}, {library}", "files": files}

    def _bound(
        self, link: OdbcLink, timeout_s: float, greeting: tuple[str, ...], ready: Callable[[Link], None]
    ) -> OdbcLink:
        """A new connection whose statements the server, or the driver, gives up after so long."""
        try:
            if self.server.driver_times_out:
                link.limit(timeout_s)
            for statement, parameters in self.server.bound(self.name, timeout_s):
                link.execute(statement, parameters)
            for statement in greeting:
                link.execute(statement)
            ready(link)
        except pyodbc.Error:
            link.close()
            raise
        return link

    def _new(self) -> OdbcLink:
        driver = found_driver(self.endpoint, self._address)
        return open_link(self._address, driver, self.name, own_sql=self._own_sql)
