"""Access to a SQL server by the library that reaches it: psycopg and libpq, or an ODBC driver."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from ..addresses import place
from ..contract import Endpoint
from ..errors import EndpointUnreachable, ScenarioError
from .contract import Link, SqlConnection, TextConnection
from .servers import SERVERS
from .servers.contract import POSTGRESQL, ServerSql


class Access(ABC):
    """Access to the server of one endpoint.

    Args:
        endpoint: endpoint of the server.
        name: name of the connections on the server, if the server can show one.
        known_kind: kind of the server, one of ``servers.contract.KINDS``; None: it is queried.
    """

    error: ClassVar[type[Exception]]
    """The library's exception for failures."""
    native: ClassVar[bool] = False
    """Return whether the server has its own library instead of ODBC."""
    installed: ClassVar[bool] = True
    """Return whether this machine has a driver for such a server."""

    def __init__(self, endpoint: Endpoint, name: str, known_kind: str | None) -> None:
        self.endpoint = endpoint
        self.name = name
        self.known_kind = known_kind
        self.holder: Link | None = None
        """Connection with the lock that keeps other runs out."""

    @property
    def place(self) -> str:
        """Return the place of the server for a message: ``endpoint sql (127.0.0.1:5432)``."""
        return place(self.endpoint)

    @property
    def kind(self) -> str:
        """Return the kind of the server, one of ``servers.contract.KINDS``."""
        return self.known_kind or POSTGRESQL

    @property
    def database(self) -> str:
        """Return the database in the URL; empty: the default of the user."""
        return unquote(urlsplit(self.endpoint.url).path.strip("/"))

    @property
    def server(self) -> ServerSql:
        """Return the statements for this kind of server."""
        return SERVERS[self.kind]

    # ---- what each library does in its own way ---------------------------------------------------

    @abstractmethod
    def open(self, *, pinned: bool = True) -> Link:
        """Open a new connection. If it is pinned, names are those of the server itself (``ServerSql.pin``).

        Raises ``error``.
        """

    @abstractmethod
    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> SqlConnection:
        """Return a connection for the operations of a session. It is opened later.

        Args:
            timeout_s: time limit of a statement in seconds, applied by the server or the driver.
            ready: called with each new connection before its first use.
        """

    @abstractmethod
    def own_session(self, timeout_s: float) -> TextConnection:
        """Return a session's connection for statements of the user. Only its time limit is set."""

    def parse(self, link: Link, text: str) -> bool:
        """Let the server parse one statement without executing it.

        Returns False if the library cannot do this.

        Raises ``error``.
        """
        del link, text
        return False

    @abstractmethod
    def refused(self, error: Any) -> EndpointUnreachable:
        """Return the message for a login that the server or the driver refused."""

    @abstractmethod
    def message(self, error: Any) -> str:
        """Return the message of the server or the library as a sentence."""

    @abstractmethod
    def state(self, error: Any) -> str:
        """Return the SQLSTATE of an error; empty if it has none."""

    # ---- connections -----------------------------------------------------------------------------

    def reach(self) -> Link:
        """Open a new connection. Raises ``EndpointUnreachable`` with the cause and the remedy."""
        try:
            return self.open()
        except self.error as error:
            raise self.refused(error) from error

    @contextmanager
    def inspection(self) -> Iterator[Link]:
        """Return a connection for inspecting the server. Raises ``EndpointUnreachable``, or ``error``."""
        with contextlib.closing(self.reach()) as link:
            yield link

    def patient(self) -> Link:
        """Open a new connection without a time limit, for creating data.

        Raises ``EndpointUnreachable``, or ``error``.
        """
        link = self.reach()
        try:
            for statement in self.server.patient:
                link.execute(statement)
        except self.error:
            link.close()
            raise
        return link

    def pin(self, link: Link) -> None:
        """Resolve names only in the server's own schema, for internal statements."""
        for statement in self.server.pin:
            link.execute(statement)

    def unpin(self, link: Link) -> None:
        """Resolve names by the settings of the user and the database, for statements of the user."""
        for statement in self.server.unpin:
            link.execute(statement)

    # ---- the connection that keeps other runs out ------------------------------------------------

    def held(self) -> Link | None:
        """Return ``holder`` if it still works; otherwise None."""
        if self.holder is not None and not self.holder.alive():
            self.release()
        return self.holder

    @contextmanager
    def new_holder(self) -> Iterator[Link]:
        """Open a new connection for the lock that keeps other runs out.

        It is closed again after a failure.
        """
        link = self.patient()
        try:
            yield link
        except (self.error, ScenarioError):
            self.release()
            link.close()
            raise

    def take(self, link: Link, lock: str, busy: str) -> None:
        """Keep other runs with this name out until ``release``.

        Raises ``ScenarioError`` with ``busy`` if another run has the lock.
        """
        locked = link.execute(lock, (self.name,)).fetchone()
        if not (locked and yes(locked[0])):
            raise ScenarioError(
                f"{self.place}: {busy}; wait until it has ended, or give the scenario another name in "
                "the plan"
            )
        self.holder = link

    def release(self) -> None:
        """Release the lock for other runs. A second call does nothing."""
        if self.holder is not None:
            self.holder.release_locks(self.server.unlock)
            self.holder = None

    def check_writable(self, link: Link) -> None:
        """Raise ``ScenarioError`` if the server is read-only. Raises ``error``."""
        result = link.execute(self.server.read_only).fetchone() if self.server.read_only else None
        if result and result[0]:
            raise ScenarioError(
                f"{self.place}: {result[0]}: it takes no writes; name the server that does in farm.yaml"
            )

    # ---- what it says of itself ------------------------------------------------------------------

    def facts(self, link: Link) -> dict[str, Any]:
        """Return version, settings, and warnings about settings.

        Raises ``error``, and ``ScenarioError`` for an unsupported version.
        """
        server = self.server
        version = link.execute(server.version).fetchone()
        if version and (why := server.too_old(str(version[0]))):
            raise ScenarioError(f"{self.place}: {why}")
        rows = link.execute(server.settings).fetchall()
        settings = {str(name): str(value) for name, value in rows if value is not None}
        return {
            "server": server.name,
            "version": str(version[0]) if version else None,
            "settings": settings,
            "warnings": [
                f"{self.place}: {name} is {settings[name]}, so a commit does not wait for the disk"
                for name, durable in server.durable.items()
                if settings.get(name, "") not in durable | {""}
            ],
        }


def yes(value: Any) -> bool:
    """Return the truth value that a server returned, in the form of any driver."""
    return str(value).lower() in {"1", "t", "true"}
