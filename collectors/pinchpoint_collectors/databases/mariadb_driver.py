"""A connection to a MariaDB or MySQL server by PyMySQL."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pymysql
from pymysql.cursors import DictCursor

from pinchpoint_collectors.databases.base import APPLICATION, CONNECT_S, Row, ServerConnection
from pinchpoint_collectors.databases.mariadb import greeting
from pinchpoint_collectors.errors import CollectorError

PORT = 3306

_LOST = (2006, 2013, 2014, 2055)
"""Error numbers after which a connection can no longer be used (CR_SERVER_GONE_ERROR, CR_SERVER_LOST,
...)."""

_REFUSED = (1044, 1054, 1109, 1142, 1143, 1146, 1193, 1227)
"""Error numbers for denied access to a table or command, and for unknown columns, tables, variables."""

_REMEDIES = {
    1040: "raise max_connections, or use fewer users: a collector needs one connection",
    1044: "grant it, or correct the url in farm.yaml",
    1045: "correct user and password in farm.yaml",
    1049: "correct the url in farm.yaml",
    1130: "allow the user to come from this host: CREATE USER 'watcher'@'%' ...",
    1227: "grant it: GRANT PROCESS ON *.* TO the user",
    1698: "correct user and password in farm.yaml",
}
"""Error number of the server -> remedy."""


class MariaDbServerConnection(ServerConnection["pymysql.Connection[DictCursor]", str, list[Row]]):
    """A connection by PyMySQL.

    In the URL, ``?tls=true`` and ``tls_ca=FILE`` request TLS, ``unix_socket=PATH`` a socket.
    """

    # RuntimeError: the library for this login method is not installed.
    failures = (pymysql.Error, OSError, RuntimeError)
    remedies: ClassVar[Mapping[str, str]] = {
        "not known": "correct the host name in farm.yaml",
        "'cryptography' package": "run: pip install cryptography, or say ?tls=true in the url",
        "'pynacl' package": "run: pip install PyNaCl",
        "certificate": "say tls_ca=FILE in the url, with the authority's certificates",
        "ssl": "the server offers no TLS: allow it there, or leave tls out of the url",
    }

    def _open(self) -> pymysql.Connection[DictCursor]:
        return pymysql.connect(
            **self._place(),
            connect_timeout=CONNECT_S,
            read_timeout=self.answer_s,
            write_timeout=self.answer_s,
            autocommit=True,
            charset="utf8mb4",
            use_unicode=False,
            cursorclass=DictCursor,
            program_name=APPLICATION,
        )

    def _place(self) -> dict[str, Any]:
        """Return address and user of the server.

        Raises ``CollectorError`` without any part of the password.
        """
        try:
            parts = urlsplit(self.target.own_url)
            host, port = parts.hostname, parts.port or PORT
            asked = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        except ValueError as error:
            raise self.error("the url cannot be read", "correct it in farm.yaml") from error
        result: dict[str, Any] = dict(zip(("user", "password"), self.target.login, strict=True))
        if "unix_socket" in asked:
            return {**result, "unix_socket": asked["unix_socket"]}
        if "tls_ca" in asked or asked.get("tls", "").lower() in {"true", "1", "yes"}:
            try:
                result["ssl"] = ssl.create_default_context(cafile=asked.get("tls_ca"))
            except OSError as error:
                text = f"tls_ca={asked.get('tls_ca')}: {error.strerror or error}"
                raise self.error(text, "name a file of certificates (PEM)") from error
        return {**result, "host": host or "127.0.0.1", "port": port}

    def _greet(self, link: pymysql.Connection[DictCursor]) -> None:
        self.session = int(link.thread_id())
        version = str(link.get_server_info())
        for statement in greeting("mariadb" if "mariadb" in version.lower() else "mysql"):
            self._run(link, statement)

    def _run(self, link: pymysql.Connection[DictCursor], question: str) -> list[Row]:
        with link.cursor() as cursor:
            cursor.execute(question)
            return [{name: _text(value) for name, value in row.items()} for row in cursor.fetchall()]

    def _close(self, link: pymysql.Connection[DictCursor]) -> None:
        link._force_close()  # the library's own end of a session would wait for a server that is gone

    def _is_lost(self, link: pymysql.Connection[DictCursor], error: Exception) -> bool:  # noqa: ARG002
        number = _number(error)
        return number is None or number in _LOST or number < 1000

    def _explain(self, error: Exception) -> CollectorError:
        number = _number(error)
        answer = (str(error.args[-1]) if error.args else "") or type(error).__name__
        if "timed out" in answer.partition("\n")[0]:
            answer = self.no_answer
        return self.error(answer, _REMEDIES.get(number or 0), refused=number in _REFUSED)


def _number(error: Exception) -> int | None:
    """Return the error number of the server or the library; None for other errors."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


def _text(value: Any) -> Any:
    """Decode text with any bytes, because the list of sessions contains statements with any bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
