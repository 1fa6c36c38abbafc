"""A connection to a PostgreSQL under load: it never waits for long, and comes back by itself."""

from __future__ import annotations

from typing import TypeVar

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.types.string import TextLoader

from pinchpoint_collectors.databases.connection import SharedConnection
from pinchpoint_collectors.databases.postgres_sql import APPLICATION
from pinchpoint_collectors.errors import CollectorError

CONNECT_S = 3
STATEMENT_S = 2
"""After so long the server gives a statement of ours up."""
ANSWER_S = 3.0
"""After so long we give the server up: one that is frozen keeps its connections and no promise."""

_SETTINGS = " ".join(
    f"-c {setting}"
    for setting in (
        f"statement_timeout={STATEMENT_S}s",
        "lock_timeout=500ms",
        "search_path=pg_catalog,pg_temp",
        "default_transaction_read_only=on",
        "jit=off",
        "timezone=UTC",
    )
)
"""What our session asks for as it begins, and never by a statement.

A pooler that gives its servers' sessions to one client after the other would hand on what a statement has
set: the load, or the farm's own users, would be refused their writes and cut off after two seconds.
"""

_PIN = "SET LOCAL search_path = pg_catalog, pg_temp"
"""Names are the server's own: others may have made functions and operators of the same names elsewhere, which
would run as our role. Behind a pooler that takes no settings each statement has a transaction with it."""

RV = TypeVar("RV")


class _Impatient(psycopg.Connection[DictRow]):
    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Every wait for the server, psycopg's own ones included, ends after ``ANSWER_S``."""
        return super().wait(gen, interval, ANSWER_S if timeout is None else timeout)


class _Text(TextLoader):
    def load(self, data: Buffer) -> str:
        """Of a database in SQL_ASCII, too, which hands out the bytes somebody once put in.

        psycopg leaves those as they are. Asked for UTF-8, the server refuses the rows that have others.
        """
        text = super().load(data)
        return text if isinstance(text, str) else str(text, "utf-8", "replace")


class Server(SharedConnection[_Impatient, DictRow]):
    """One PostgreSQL server, for any number of threads.

    Args:
        where: how messages name it; without secrets.
        url: its address.
        user: in place of the URL's, if given.
        password: likewise.
    """

    def __init__(self, where: str, url: str, user: str | None, password: str | None) -> None:
        super().__init__()
        self._where = where
        self._url = url
        self._pinned = True
        self._login = {key: value for key, value in (("user", user), ("password", password)) if value}

    def _ask(self, connection: _Impatient, statement: str) -> list[DictRow]:
        try:
            if self._pinned:
                return connection.execute(statement.encode()).fetchall()
            with connection.transaction():
                connection.execute(_PIN)
                return connection.execute(statement.encode()).fetchall()
        except psycopg.Error as error:
            lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
            if lost or connection.closed:
                self._drop()
            raise self._failed(error) from error

    def _connect(self) -> _Impatient:
        try:
            connection = self._open()
        except psycopg.Error as error:
            raise self._failed(error) from error
        for kind in ("text", "name"):
            connection.adapters.register_loader(kind, _Text)
        self._connection = connection
        (row,) = self._ask(connection, "SELECT pg_catalog.pg_backend_pid() AS pid")
        if row["pid"] != connection.info.backend_pid:
            # It is a pooler that answers: the next statement may meet a session that has prepared nothing.
            connection.prepare_threshold = None
            self._pinned = False  # it may have let the settings go
        return connection

    def _open(self) -> _Impatient:
        try:
            self._pinned = True
            return self._open_with(_SETTINGS)
        except psycopg.OperationalError as error:
            if "unsupported startup parameter" not in str(error):
                raise
            self._pinned = False
            return self._open_with("")  # a pooler's words; our own patience and what we ask do without them

    def _open_with(self, settings: str) -> _Impatient:
        given = conninfo_to_dict(self._url).get("options") or ""
        options = {"options": f"{given} {settings}".strip()} if settings else {}
        return _Impatient.connect(
            make_conninfo(self._url, **self._login, **options),
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=CONNECT_S,
            application_name=APPLICATION,
        )

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _failed(self, error: psycopg.Error) -> CollectorError:
        said = (error.diag.message_primary or str(error)).strip().partition("\n")[0] or type(error).__name__
        if isinstance(error, psycopg.errors.QueryCanceled):
            said = f"it did not answer within {STATEMENT_S} s"
        elif "wait timeout expired" in said:
            said = f"nothing came back within {ANSWER_S:.0f} s"
        return CollectorError(f"{self._where}: {said}{_remedy(said)}")


_CERTIFICATE = (
    "name the authority that issued it (?sslrootcert=FILE), or accept any certificate (?sslmode=require)"
)


def _remedy(said: str) -> str:
    remedies = {
        "certificate verify failed": _CERTIFICATE,
        "root certificate file": _CERTIFICATE,
        "starting up": "wait until it accepts connections",
        "password authentication failed": "correct user and password in farm.yaml",
        "no password supplied": "give user and password in farm.yaml",
        "does not exist": "correct the url in farm.yaml",
        "connection refused": "start the server, or correct host and port in farm.yaml",
        "pg_hba.conf": "add a rule for this role and client there",
        "connection slots": "raise max_connections, or use fewer users: collectors need one connection",
        "too many": "raise max_connections, or use fewer users: collectors need one connection",
        "timeout expired": "check the address and the firewalls between",
        "resolve": "correct the host name in farm.yaml",
    }
    found = next((remedy for words, remedy in remedies.items() if words in said.lower()), None)
    return f"; {found}" if found else ""
