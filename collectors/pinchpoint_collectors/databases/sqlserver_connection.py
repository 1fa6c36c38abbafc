"""A connection to a SQL Server under load, over ODBC: it never waits for long, and comes back by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyodbc

from pinchpoint_collectors.databases.base import RefusedError
from pinchpoint_collectors.databases.connection import SharedConnection
from pinchpoint_collectors.databases.sqlserver_sql import GREETING
from pinchpoint_collectors.errors import CollectorError

CONNECT_S = 3
ANSWER_S = 3
"""After so long we give a statement up."""
APPLICATION = "pinchpoint-collector"
PORT = 1433

DRIVERS = ("ODBC Driver 18 for SQL Server", "ODBC Driver 17 for SQL Server", "FreeTDS")
"""Those that fit, the first that is installed."""
_FREE = "FreeTDS"

_PASSED_ON = (
    *("ApplicationIntent", "Authentication", "Encrypt", "HostNameInCertificate", "MultiSubnetFailover"),
    *("ServerCertificate", "TDS_Version", "Trusted_Connection", "TrustServerCertificate"),
)
"""Keys of a connection string that a URL may hold after its ``?``, in any case."""

_FOREWORDS = re.compile(r"^(?:\[[^\]]*\]\s*)+")
_AFTERWORDS = re.compile(r"(?:\s*\((?:SQL\w+|\d+)\))+$")


class Server(SharedConnection[pyodbc.Connection, Mapping[str, Any]]):
    """One server, for any number of threads.

    Args:
        where: how messages name it; without secrets.
        url: its address: ``mssql+odbc://USER:PASSWORD@HOST:PORT/DATABASE?Encrypt=yes``.
        user: in place of the URL's, if given.
        password: likewise.
    """

    def __init__(self, where: str, url: str, user: str | None, password: str | None) -> None:
        super().__init__()
        self._where = where
        self.driver = driver(where, url)
        self._to = connection_string(where, url, user, password, self.driver)

    def _ask(self, connection: pyodbc.Connection, statement: str) -> list[Mapping[str, Any]]:
        try:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()] if names else []
        except pyodbc.Error as error:
            failed = self._failed(error)
            if not isinstance(failed, RefusedError):
                self._drop()
            raise failed from error

    def _connect(self) -> pyodbc.Connection:
        try:
            connection = pyodbc.connect(self._to, autocommit=True, timeout=CONNECT_S)
            connection.timeout = ANSWER_S
        except pyodbc.Error as error:
            raise self._failed(error) from error
        self._connection = connection
        self._ask(connection, GREETING)
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                connection.close()
            except pyodbc.Error:
                return  # it was lost already: that is why it is dropped

    def _failed(self, error: pyodbc.Error) -> CollectorError:
        state, said = said_by(error)
        kind = RefusedError if state.startswith("42") else CollectorError
        remedy = _REMEDIES.get(state) or next(
            (remedy for words, remedy in _WORDS.items() if words in said.lower()), ""
        )
        return kind(f"{self._where}: {said}{remedy and f'; {remedy}'}")


_REMEDIES = {
    "28000": "correct user and password in farm.yaml",
    "IM002": "correct the driver in farm.yaml, or install it",
    "HYT00": "check the server, the address and the firewalls between",
    "HYT01": "check the server, the address and the firewalls between",
}
"""ODBC's state -> what to do."""

_WORDS = {
    "certificate": "install its authority's certificate, or say ?TrustServerCertificate=yes in the url",
    "ssl": "check the server's certificate, or say ?Encrypt=no in the url",
    "cannot open database": "correct the database in the url in farm.yaml",
    "permission was denied": "grant it: GRANT VIEW SERVER STATE TO the login",
    "refused": "start the server, or correct host and port in farm.yaml",
    "unable to connect": "start the server, or correct host and port in farm.yaml",
    "network-related": "start the server, or correct host and port in farm.yaml",
}


def said_by(error: BaseException) -> tuple[str, str]:
    """(ODBC's state, the first sentence without the names of who passed it on)."""
    state = str(error.args[0]) if error.args else ""
    text = str(error.args[1] if len(error.args) > 1 else error).strip().partition("\n")[0].partition(";")[0]
    text = _AFTERWORDS.sub("", _FOREWORDS.sub("", text)).strip().rstrip(".")
    return state, text or type(error).__name__


def driver(where: str, url: str) -> str:
    """The driver's name or file: the URL's, else the first that is installed. Raises ``CollectorError``."""
    asked = dict(_options(where, url)).get("driver")
    if asked:
        return asked
    there = pyodbc.drivers()
    found = next((name for name in DRIVERS if name in there), None) or _shipped()
    if found is None:
        raise CollectorError(
            f"{where}: no ODBC driver for SQL Server is installed; found {', '.join(there) or 'none'}; "
            "install Microsoft's (msodbcsql18, or pip install mssql-python-odbc) or FreeTDS (Debian: tdsodbc)"
        )
    return found


def _shipped() -> str | None:
    """Microsoft's driver, where the package mssql-python-odbc brings it."""
    spec = find_spec("mssql_python_odbc")
    folders = spec.submodule_search_locations if spec else None
    files = sorted(Path(folders[0]).glob("libs/**/libmsodbcsql-18*.so*")) if folders else []
    return str(files[0]) if files else None


def connection_string(where: str, url: str, user: str | None, password: str | None, with_driver: str) -> str:
    """What ODBC connects with. Raises ``CollectorError`` without a piece of the password."""
    options = _options(where, url)
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or PORT
    free = _FREE.lower() in with_driver.lower() or "tdsodbc" in with_driver.lower()
    place = {"Server": host, "Port": str(port)} if free else {"Server": f"tcp:{host},{port}"}
    login = {"UID": user or unquote(parts.username or ""), "PWD": password or unquote(parts.password or "")}
    known = {name.lower(): name for name in _PASSED_ON}
    given = {known[key]: value for key, value in options if key in known}
    pieces = {
        "Driver": with_driver,
        **place,
        "Database": unquote(parts.path.strip("/")) or "master",
        **{key: value for key, value in login.items() if value},
        "APP": APPLICATION,
        **given,
    }
    return ";".join(f"{key}={braced(value) if key != 'Server' else value}" for key, value in pieces.items())


def braced(value: str) -> str:
    """A value of a connection string; with a special character in it, it stands in braces.

    Of braces in it those that close are doubled (ODBC, "SQLDriverConnect").
    """
    if value == value.strip() and not set(value) & set("[]{}(),;?*=!@"):
        return value
    return "{" + value.replace("}", "}}") + "}"


def _options(where: str, url: str) -> list[tuple[str, str]]:
    """What the URL says after its ``?``, keys in lower case."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise CollectorError(f"{where}: the url cannot be read; correct it in farm.yaml") from error
    return [(key.lower(), value) for key, value in parse_qsl(parts.query)]
