"""A connection to a SQL Server over ODBC by pyodbc."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

import pyodbc

from pinchpoint_collectors.common.odbc import (
    INSTALL_SQLSERVER_DRIVER,
    freetds_encryption,
    is_freetds,
    quoted,
    sqlserver_driver,
)
from pinchpoint_collectors.databases.base import APPLICATION, CONNECT_S, DatabaseTarget, Row, ServerConnection
from pinchpoint_collectors.databases.sqlserver import GREETING
from pinchpoint_collectors.errors import CollectorError

PORT = 1433

_PASSED_ON = (
    *("ApplicationIntent", "Authentication", "Encrypt", "HostNameInCertificate", "MultiSubnetFailover"),
    *("ServerCertificate", "TDS_Version", "Trusted_Connection", "TrustServerCertificate"),
)
"""Keys of a connection string that a URL may have after its ``?``, in any letter case."""

_FOREWORDS = re.compile(r"^(?:\[[^\]]*\]\s*)+")
_AFTERWORDS = re.compile(r"(?:\s*\((?:SQL\w+|\d+)\))+$")


_REMEDIES = {
    "28000": "correct user and password in farm.yaml",
    "IM002": "correct the driver in farm.yaml, or install it",
    "HYT00": "check the server, the address and the firewalls between",
    "HYT01": "check the server, the address and the firewalls between",
}
"""ODBC state -> remedy."""
_REFUSED = "42"
"""Begins of the ODBC states for unknown and forbidden statements."""


class SqlServerConnection(ServerConnection[pyodbc.Connection, str, list[Row]]):
    """A connection by ODBC. URL: ``mssql+odbc://USER:PASSWORD@HOST:PORT/DATABASE?Encrypt=yes``."""

    failures = (pyodbc.Error,)
    remedies: ClassVar[Mapping[str, str]] = {
        "certificate": "install its authority's certificate, or say ?TrustServerCertificate=yes in the url",
        "ssl": "check the server's certificate, or say ?Encrypt=no in the url",
        "cannot open database": "correct the database in the url in farm.yaml",
        "permission was denied": "grant it: GRANT VIEW SERVER STATE TO the login",
        "unable to connect": "start the server, or correct host and port in farm.yaml",
        "network-related": "start the server, or correct host and port in farm.yaml",
    }

    def _open(self) -> pyodbc.Connection:
        connection = pyodbc.connect(connection_string(self.target), autocommit=True, timeout=CONNECT_S)
        connection.timeout = round(self.answer_s)
        return connection

    def _greet(self, link: pyodbc.Connection) -> None:
        self._run(link, GREETING)

    def _run(self, link: pyodbc.Connection, question: str) -> list[Row]:
        cursor = link.execute(question)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()] if names else []

    def _close(self, link: pyodbc.Connection) -> None:
        try:
            link.close()
        except pyodbc.Error:
            return  # the connection was lost before, so it is closed

    def _is_lost(self, link: pyodbc.Connection, error: Exception) -> bool:  # noqa: ARG002
        return not said_by(error)[0].startswith(_REFUSED)

    def _explain(self, error: Exception) -> CollectorError:
        state, answer = said_by(error)
        if self._link is None and (host := urlsplit(self.target.own_url).hostname) and _has_no_address(host):
            # FreeTDS reports this with its message for an unreachable server: "Adaptive Server is
            # unavailable".
            return self.error("the host name cannot be resolved", "correct the host name in farm.yaml")
        return self.error(answer, _REMEDIES.get(state), refused=state.startswith(_REFUSED))


def _has_no_address(host: str) -> bool:
    try:
        socket.getaddrinfo(host.partition("\\")[0], None)
    except (socket.gaierror, UnicodeError):
        return True
    return False


def said_by(error: BaseException) -> tuple[str, str]:
    """Return the ODBC state, and the first sentence without the names of driver layers."""
    state = str(error.args[0]) if error.args else ""
    text = str(error.args[1] if len(error.args) > 1 else error).strip().partition("\n")[0].partition(";")[0]
    text = _AFTERWORDS.sub("", _FOREWORDS.sub("", text)).strip().rstrip(".")
    return state, text or type(error).__name__


def driver(target: DatabaseTarget) -> str:
    """Return the name or file of the driver: from the URL, or else the first installed one.

    Raises ``CollectorError``.
    """
    asked = dict(_options(target)).get("driver")
    if asked:
        return asked
    registered = pyodbc.drivers()
    result = sqlserver_driver(registered)
    if result is None:
        others = ", ".join(registered) or "none"
        raise CollectorError(
            f"{target.where}: no ODBC driver for SQL Server is installed; found {others}; "
            f"{INSTALL_SQLSERVER_DRIVER}"
        )
    return result.keyword


def connection_string(target: DatabaseTarget) -> str:
    """Return the ODBC connection string. Raises ``CollectorError`` without any part of the password."""
    options = _options(target)
    with_driver = driver(target)
    parts = urlsplit(target.own_url)
    host, port = parts.hostname or "127.0.0.1", parts.port or PORT
    freetds = is_freetds(with_driver)
    place = {"Server": host, "Port": str(port)} if freetds else {"Server": f"tcp:{host},{port}"}
    login = dict(zip(("UID", "PWD"), target.login, strict=True))
    known = {name.lower(): name for name in _PASSED_ON}
    given = {known[key]: value for key, value in options if key in known}
    pieces = {
        "Driver": with_driver,
        **place,
        "Database": unquote(parts.path.strip("/")) or "master",
        **{key: value for key, value in login.items() if value},
        "APP": APPLICATION,
        **given,
        **(freetds_encryption(given.get("Encrypt")) if freetds else {}),
    }
    return ";".join(f"{key}={quoted(value) if key != 'Server' else value}" for key, value in pieces.items())


def _options(target: DatabaseTarget) -> list[tuple[str, str]]:
    """Return the options of the URL after its ``?``, with keys in lower case."""
    try:
        parts = urlsplit(target.own_url)
        _ = parts.port
    except ValueError as error:
        raise CollectorError(f"{target.where}: the url cannot be read; correct it in farm.yaml") from error
    return [(key.lower(), value) for key, value in parse_qsl(parts.query)]
