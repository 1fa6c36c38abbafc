"""A SQL server, and the library that reaches it: psycopg and libpq, or an ODBC driver."""

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
    """One endpoint's server.

    Args:
        endpoint: it.
        name: the name of our connections on the server, if it can show one.
        known_kind: its kind, one of ``servers.contract.KINDS``; None: to be queried.
    """

    error: ClassVar[type[Exception]]
    """The library's exception for failures."""
    native: ClassVar[bool] = False
    """Whether the server has its own library instead of ODBC."""
    installed: ClassVar[bool] = True
    """Whether this machine has a driver for such a server."""

    def __init__(self, endpoint: Endpoint, name: str, known_kind: str | None) -> None:
        self.endpoint = endpoint
        self.name = name
        self.known_kind = known_kind
        self.holder: Link | None = None
        """The connection with the lock that keeps other runs out."""

    @property
    def place(self) -> str:
        """The server's place, for a sentence: ``endpoint sql (127.0.0.1:5432)``."""
        return place(self.endpoint)

    @property
    def kind(self) -> str:
        """The server's kind, one of ``servers.contract.KINDS``."""
        return self.known_kind or POSTGRESQL

    @property
    def database(self) -> str:
        """The database in the URL; empty: the user's default."""
        return unquote(urlsplit(self.endpoint.url).path.strip("/"))

    @property
    def server(self) -> ServerSql:
        """The statements of its kind of server."""
        return SERVERS[self.kind]

    # ---- what each library does in its own way ---------------------------------------------------

    @abstractmethod
    def open(self, *, pinned: bool = True) -> Link:
        """A new connection; unless it is not pinned, names are the server's own (``ServerSql.pin``).

        Raises ``error``.
        """

    @abstractmethod
    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> SqlConnection:
        """A connection for a session's operations; not opened yet.

        Args:
            timeout_s: the time limit of a statement, by the server or the driver.
            ready: called with each new connection before its first use.
        """

    @abstractmethod
    def own_session(self, timeout_s: float) -> TextConnection:
        """A session's connection for the user's own statements, unchanged except for its time limit."""

    def parse(self, link: Link, text: str) -> bool:
        """Let the server parse one statement without executing it; False: the library cannot do this.

        Raises ``error``.
        """
        del link, text
        return False

    @abstractmethod
    def refused(self, error: Any) -> EndpointUnreachable:
        """The message for a login that the server or the driver refused."""

    @abstractmethod
    def message(self, error: Any) -> str:
        """The sentence of the server's or library's message."""

    @abstractmethod
    def state(self, error: Any) -> str:
        """The SQLSTATE of an error; empty without any."""

    # ---- connections -----------------------------------------------------------------------------

    def reach(self) -> Link:
        """A new connection; raises ``EndpointUnreachable`` with the cause and the remedy."""
        try:
            return self.open()
        except self.error as error:
            raise self.refused(error) from error

    @contextmanager
    def inspection(self) -> Iterator[Link]:
        """A connection for inspecting the server. Raises ``EndpointUnreachable``, or ``error``."""
        with contextlib.closing(self.reach()) as link:
            yield link

    def patient(self) -> Link:
        """A new connection without a time limit, for creating data.

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
        """Resolve names in the server's own schema only, for internal statements."""
        for statement in self.server.pin:
            link.execute(statement)

    def unpin(self, link: Link) -> None:
        """Resolve names as the user's and database's settings say, for the user's own statements."""
        for statement in self.server.unpin:
            link.execute(statement)

    # ---- the connection that keeps other runs out ------------------------------------------------

    def held(self) -> Link | None:
        """``holder``, if it still works."""
        if self.holder is not None and not self.holder.alive():
            self.release()
        return self.holder

    @contextmanager
    def new_holder(self) -> Iterator[Link]:
        """A new connection for the lock that keeps other runs out; closed again on failure."""
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
        """Release the lock for other runs. Safe to call twice."""
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
        """Version, settings, and warnings of settings.

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
    """A server's truth value in any driver's form."""
    return str(value).lower() in {"1", "t", "true"}
