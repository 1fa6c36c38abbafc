"""PostgreSQL by its own library."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ..contract import Endpoint
from ..errors import EndpointUnreachable
from .access import Access
from .contract import Link, ReadableResult
from .libpq import FastConnection
from .postgresql import Connection, connect, first_line, refused
from .servers.contract import POSTGRESQL

_UNLOCK_S = 5.0
_INSPECTION_TIMEOUT = "SET LOCAL statement_timeout = '5s'"
"""In place of the role's own, which may be too short for a look at the catalogue."""
_LIMITS = """SELECT current_user, r.rolconnlimit, d.datname, d.datconnlimit,
    (SELECT reset_val || unit FROM pg_settings WHERE name = 'statement_timeout' AND reset_val <> '0'),
    pg_backend_pid()
    FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()"""


class NativeLink:
    """A ``Link`` by psycopg; raises ``psycopg.Error``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> ReadableResult:
        cursor = self._cursor.execute(statement.encode(), parameters or None)
        return ReadableResult(cursor.rowcount, cursor.fetchall() if cursor.description else ())

    def send(self, text: str) -> None:
        self._cursor.execute(text.encode())

    def parse(self, text: str) -> None:
        """Have the server parse one statement of any kind; nothing is executed."""
        answer = self._connection.pgconn.prepare(b"", text.encode())
        if answer.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(answer)

    def transaction(self) -> AbstractContextManager[Any]:
        return self._connection.transaction()

    def lists_as_texts(self) -> None:
        """The text as it is: libpq sends no length."""

    @property
    def server_process(self) -> int:
        """The number of the session's process as reported when the connection was opened."""
        return self._connection.info.backend_pid

    def alive(self) -> bool:
        try:
            self._connection.execute("SELECT")
        except psycopg.OperationalError:
            return False
        return True

    def let_go(self, unlock: str) -> None:
        link, until_s = self._connection.pgconn, time.monotonic() + _UNLOCK_S
        with suppress(psycopg.Error, OSError, ValueError):  # the connection is lost, and its locks with it
            link.send_query(unlock.encode())
            while link.is_busy() and (left_s := until_s - time.monotonic()) > 0:
                if select.select([link.socket], [], [], left_s)[0]:
                    link.consume_input()
        self.close()

    def close(self) -> None:
        self._connection.close()


class NativeAccess(Access):
    """By psycopg, and a session's statements by libpq itself."""

    error = psycopg.Error
    native = True

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        super().__init__(endpoint, name, POSTGRESQL)

    def open(self, *, pinned: bool = True) -> NativeLink:
        return NativeLink(connect(self.endpoint, self.name, pinned=pinned))

    @contextmanager
    def inspection(self) -> Iterator[NativeLink]:
        """Look within one transaction, which leaves no setting behind.

        A pooler may hand the server's session to the farm's own users next.
        """
        try:
            connection = connect(self.endpoint, self.name, pinned=False)
        except psycopg.Error as error:
            raise self.refused(error) from error
        with connection, connection.transaction():
            connection.execute(_INSPECTION_TIMEOUT)
            connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
            yield NativeLink(connection)

    @property
    def database(self) -> str:
        return str(conninfo_to_dict(self.endpoint.url).get("dbname") or "")

    def facts(self, link: Link) -> dict[str, Any]:
        """As of any server; warnings also of limits of the role, and of a pooler in front."""
        assert isinstance(link, NativeLink)  # noqa: S101 - for the type: it was opened here
        found = super().facts(link)
        row = link.execute(_LIMITS).fetchone()
        assert row is not None  # noqa: S101 - there is a role, and a database
        role, of_role, database, of_database, timeout, pid = row
        warnings = [
            f"{what} may have {limit} connections at once (CONNECTION LIMIT); a load needs one for each "
            "user, and one more"
            for what, limit in ((f"role {role}", of_role), (f"database {database}", of_database))
            if limit >= 0
        ]
        if timeout:
            warnings.append(
                f"statement_timeout is {timeout} for this role or database; the load has limits of its own "
                "in its place"
            )
        if pid != link.server_process:
            warnings.append(
                "a connection pooler answers in place of the server: the number of sessions at the server "
                "and their names are the pooler's, waiting for the pool counts as response time, and a "
                "session's settings may reach other clients; name the server, or use pool_mode = session"
            )
        found["warnings"] += [f"{self.place}: {why}" for why in warnings]
        return found

    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> FastConnection:
        return FastConnection(
            self.endpoint,
            application=self.name,
            statement_timeout_s=timeout_s,
            greet=lambda connection: ready(NativeLink(connection)),
        )

    def own_session(self, timeout_s: float) -> FastConnection:
        return FastConnection(
            self.endpoint,
            application=self.name,
            statement_timeout_s=timeout_s,
            greet=lambda _: None,
            pinned=False,
        )

    def parse(self, link: Link, text: str) -> bool:
        assert isinstance(link, NativeLink)  # noqa: S101 - for the type: it was opened here
        link.parse(text)
        return True

    def refused(self, error: psycopg.Error) -> EndpointUnreachable:
        return refused(self.endpoint, error)

    def message(self, error: psycopg.Error) -> str:
        return first_line(error)

    def state(self, error: psycopg.Error) -> str:
        return error.sqlstate or ""
