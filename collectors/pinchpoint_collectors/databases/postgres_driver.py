"""A connection to a PostgreSQL server by psycopg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar
from urllib.parse import urlsplit

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.types.string import TextLoader

from pinchpoint_collectors.databases.base import APPLICATION, CONNECT_S, ServerConnection
from pinchpoint_collectors.errors import CollectorError

STATEMENT_S = 2
"""Time limit of the server for one of the collector's statements in seconds."""

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
"""Settings of the collector's session, sent when it connects and never by a statement.

A pooler passes a server session with its settings from one client to the next: the load or the farm's users
would get read-only sessions and timeouts of two seconds.
"""

_PIN = "SET LOCAL search_path = pg_catalog, pg_temp"
"""Setting with which only the server's own functions and operators are used. A user may have created others
of the same name, which would run with the rights of the collector's role. Behind a pooler that accepts no
settings, each statement sets this in its own transaction."""

_CERTIFICATE = (
    "name the authority that issued it (?sslrootcert=FILE), or accept any certificate (?sslmode=require)"
)
_CONNECTIONS = "raise max_connections, or use fewer users: collectors need one connection"

RV = TypeVar("RV")


class _TimeLimitedConnection(psycopg.Connection[DictRow]):
    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for the server. Every wait, including those of psycopg, ends after ``answer_s``."""
        return super().wait(gen, interval, PostgresServerConnection.answer_s if timeout is None else timeout)


class _Text(TextLoader):
    def load(self, data: Buffer) -> str:
        """Decode text, also that of a database in SQL_ASCII, which returns the stored bytes.

        psycopg returns such bytes undecoded. With the client encoding UTF-8, the server refuses rows with
        other bytes.
        """
        text = super().load(data)
        return text if isinstance(text, str) else str(text, "utf-8", "replace")


class PostgresServerConnection(ServerConnection[_TimeLimitedConnection, str, list[DictRow]]):
    """A connection by psycopg."""

    failures = (psycopg.Error,)
    remedies: ClassVar[Mapping[str, str]] = {
        "certificate verify failed": _CERTIFICATE,
        "root certificate file": _CERTIFICATE,
        "starting up": "wait until it accepts connections",
        "password authentication failed": "correct user and password in farm.yaml",
        "no password supplied": "give user and password in farm.yaml",
        "does not exist": "correct the url in farm.yaml",
        "pg_hba.conf": "add a rule for this role and client there",
        "connection slots": _CONNECTIONS,
        "too many": _CONNECTIONS,
        "timeout expired": "check the address and the firewalls between",
        "resolve": "correct the host name in farm.yaml",
    }
    _takes_settings = True

    def _open(self) -> _TimeLimitedConnection:
        try:
            connection = self._open_with(_SETTINGS)
            self._takes_settings = True
        except psycopg.OperationalError as error:
            if "unsupported startup parameter" not in str(error):
                raise
            self._takes_settings = False
            connection = self._open_with("")  # the server is a pooler that accepts no settings
        for kind in ("text", "name"):
            connection.adapters.register_loader(kind, _Text)
        return connection

    def _open_with(self, settings: str) -> _TimeLimitedConnection:
        target = self.target
        login = {key: of for key, of in (("user", target.user), ("password", target.password)) if of}
        conninfo = {**conninfo_to_dict(target.url), **login}
        if target.address is not None:  # replaces every host of the URL, in its authority or its query
            place = urlsplit(f"//{target.address}")
            conninfo |= {"host": place.hostname, "hostaddr": None, "port": place.port or 5432}
        if settings:
            conninfo["options"] = f"{conninfo.get('options') or ''} {settings}".strip()
        return _TimeLimitedConnection.connect(
            make_conninfo("", **conninfo),
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=CONNECT_S,
            application_name=APPLICATION,
        )

    def _greet(self, link: _TimeLimitedConnection) -> None:
        (row,) = self._run(link, "SELECT pg_catalog.pg_backend_pid() AS pid")
        if row["pid"] != link.info.backend_pid:
            # A pooler answered: the next statement may get another session without these prepared statements.
            link.prepare_threshold = None
            self._takes_settings = False  # a pooler may have ignored the settings

    def _run(self, link: _TimeLimitedConnection, question: str) -> list[DictRow]:
        if self._takes_settings:
            return link.execute(question.encode()).fetchall()
        with link.transaction():
            link.execute(_PIN)
            return link.execute(question.encode()).fetchall()

    def _close(self, link: _TimeLimitedConnection) -> None:
        link.close()

    def _is_lost(self, link: _TimeLimitedConnection, error: Exception) -> bool:
        lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
        return lost or link.closed

    def _explain(self, error: Exception) -> CollectorError:
        primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        text = primary or str(error).strip() or type(error).__name__
        if isinstance(error, psycopg.errors.QueryCanceled):
            text = f"it did not answer within {STATEMENT_S} s"
        elif "wait timeout expired" in text:
            text = self.no_answer
        return self.error(text)
