"""A connection to a MariaDB or MySQL under load: it never waits for long, and comes back by itself."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.cursors import DictCursor

from pinchpoint_collectors.databases.base import RefusedError
from pinchpoint_collectors.databases.connection import SharedConnection
from pinchpoint_collectors.databases.mariadb_sql import greeting
from pinchpoint_collectors.errors import CollectorError

CONNECT_S = 3
ANSWER_S = 3
"""After so long we give the server up: one that is frozen keeps its connections and no promise."""
APPLICATION = "pinchpoint-collector"
PORT = 3306

_LOST = (2006, 2013, 2014, 2055)
"""Error numbers after which a connection is of no use (CR_SERVER_GONE_ERROR, CR_SERVER_LOST, ...)."""


class Server(SharedConnection["pymysql.Connection[DictCursor]", Mapping[str, Any]]):
    """One server, for any number of threads.

    Args:
        where: how messages name it; without secrets.
        url: its address; ``?tls=true`` and ``tls_ca=FILE`` ask for TLS, ``unix_socket=PATH`` for a socket.
        user: in place of the URL's, if given.
        password: likewise.
    """

    def __init__(self, where: str, url: str, user: str | None, password: str | None) -> None:
        super().__init__()
        self._where = where
        self._to = _arguments(where, url, user, password)
        self._greeting: tuple[str, ...] = ()

    @property
    def session(self) -> int | None:
        """The number of our session; None where there is no connection now."""
        connection = self._connection
        return None if connection is None else int(connection.thread_id())

    def _ask(self, connection: pymysql.Connection[DictCursor], statement: str) -> list[Mapping[str, Any]]:
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return [{name: _text(value) for name, value in row.items()} for row in cursor.fetchall()]
        except (pymysql.Error, OSError) as error:
            number = error.args[0] if error.args else None
            if not isinstance(number, int) or number in _LOST or number < 1000:
                self._drop()
            raise self._failed(error) from error

    def _connect(self) -> pymysql.Connection[DictCursor]:
        try:
            connection = pymysql.connect(
                **self._to,
                connect_timeout=CONNECT_S,
                read_timeout=ANSWER_S,
                write_timeout=ANSWER_S,
                autocommit=True,
                charset="utf8mb4",
                use_unicode=False,
                cursorclass=DictCursor,
                program_name=APPLICATION,
            )
        except (pymysql.Error, OSError, RuntimeError) as error:
            # RuntimeError: a way to log in whose library is not installed.
            raise self._failed(error) from error
        self._connection = connection
        version = str(connection.get_server_info())
        for statement in greeting("mariadb" if "mariadb" in version.lower() else "mysql"):
            self._ask(connection, statement)
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            # Its own farewell would wait for a server that is gone.
            connection._force_close()

    def _failed(self, error: Exception) -> CollectorError:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else None
        said = str(error.args[-1] if error.args else error).strip().partition("\n")[0] or type(error).__name__
        if "timed out" in said:
            said = f"nothing came back within {ANSWER_S} s"
        kind = RefusedError if number in _REFUSED else CollectorError
        remedy = _REMEDIES.get(number or 0) or next(
            (remedy for words, remedy in _WORDS.items() if words in said.lower()), ""
        )
        return kind(f"{self._where}: {said}{remedy and f'; {remedy}'}")


def _text(value: Any) -> Any:
    """Text as text, whatever bytes are in it: the list of sessions shows statements, which may hold any."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


_REFUSED = (1044, 1054, 1109, 1142, 1143, 1146, 1193, 1227)
"""Access denied to a table or command, and unknown columns, tables, variables."""

_REMEDIES = {
    1040: "raise max_connections, or use fewer users: a collector needs one connection",
    1044: "grant it, or correct the url in farm.yaml",
    1045: "correct user and password in farm.yaml",
    1049: "correct the url in farm.yaml",
    1130: "allow the user to come from this host: CREATE USER 'watcher'@'%' ...",
    1227: "grant it: GRANT PROCESS ON *.* TO the user",
    1698: "correct user and password in farm.yaml",
}
"""The server's error number -> what to do."""

_WORDS = {
    "refused": "start the server, or correct host and port in farm.yaml",
    "name or service": "correct the host name in farm.yaml",
    "not known": "correct the host name in farm.yaml",
    "nothing came back": "check the server, the address and the firewalls between",
    "'cryptography' package": "run: pip install cryptography, or say ?tls=true in the url",
    "'pynacl' package": "run: pip install PyNaCl",
    "certificate": "say tls_ca=FILE in the url, with the authority's certificates",
    "ssl": "the server offers no TLS: allow it there, or leave tls out of the url",
}


def _arguments(where: str, url: str, user: str | None, password: str | None) -> dict[str, Any]:
    """What the library connects with. Raises ``CollectorError`` without a piece of the password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORT
        asked = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    except ValueError as error:
        raise CollectorError(f"{where}: the url cannot be read; correct it in farm.yaml") from error
    found: dict[str, Any] = {
        "user": user or unquote(parts.username or ""),
        "password": password or unquote(parts.password or ""),
    }
    if "unix_socket" in asked:
        return {**found, "unix_socket": asked["unix_socket"]}
    if "tls_ca" in asked or asked.get("tls", "").lower() in {"true", "1", "yes"}:
        try:
            found["ssl"] = ssl.create_default_context(cafile=asked.get("tls_ca"))
        except OSError as error:
            raise CollectorError(
                f"{where}: tls_ca={asked.get('tls_ca')}: {error.strerror or error}; name a file of "
                "certificates (PEM)"
            ) from error
    return {**found, "host": host or "127.0.0.1", "port": port}
