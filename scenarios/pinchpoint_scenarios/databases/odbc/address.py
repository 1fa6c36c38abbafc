"""Parses the URL of an ODBC endpoint, builds its connection string, and finds its driver."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pinchpoint_collectors.common.names import unknown
from pinchpoint_collectors.common.odbc import INSTALL_SQLSERVER_DRIVER, quoted, sqlserver_driver

from ...addresses import place, unreachable
from ...contract import Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ..servers.contract import KINDS, MSSQL, MYSQL, POSTGRESQL

SCHEMES: Mapping[str, str | None] = {
    "mssql+odbc": MSSQL,
    "mysql+odbc": MYSQL,
    "mariadb+odbc": MYSQL,
    "postgresql+odbc": POSTGRESQL,
    "odbc": None,
}
"""Scheme of an endpoint's URL -> kind of server; None: the data source defines the kind."""

_IN_THE_URL = {
    **dict.fromkeys(("uid", "user", "username"), "the user before the '@'"),
    **dict.fromkeys(("pwd", "password", "passwd"), "the password before the '@', after a ':'"),
    **dict.fromkeys(("server", "servername", "address", "addr", "port"), "host and port after the '@'"),
    **dict.fromkeys(("database", "db"), "the database after the '/'"),
}
"""ODBC keywords that have a place in the URL. A password there is hidden in every message."""
_OURS = ("dsn", "dialect", "driver")


def is_odbc(url: str) -> bool:
    """Return whether a URL belongs to an ODBC endpoint."""
    return url.partition("://")[0] in SCHEMES


class AddressError(ScenarioError):
    """The URL is invalid or incomplete. The message never shows a password.

    Attributes:
        cause: what is wrong.
        remedy: what is allowed.
    """

    def __init__(self, endpoint: Endpoint, cause: str, remedy: str) -> None:
        super().__init__(f"{place(endpoint)}: {cause}; {remedy}")
        self.cause = cause
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class OdbcAddress:
    """The parts of a URL.

    Attributes:
        kind: one of ``KINDS``; None: the kind is queried.
        host: name of the host; empty if the data source defines it.
        port: port; None: the default of the driver.
        database: name of the database; empty: the default of the user.
        user: name of the user; None: not given.
        password: password; None: not given.
        dsn: name of a data source of the system; empty: none.
        driver: name or path of the driver; empty: the first installed one.
        options: other keywords of the query, unchanged.
    """

    kind: str | None
    host: str
    port: int | None
    database: str
    user: str | None
    password: str | None = field(repr=False)
    dsn: str
    driver: str
    options: Mapping[str, str]

    def option(self, name: str) -> str | None:
        """Return the value of a keyword in any letter case; None if it is missing."""
        return next((value for key, value in self.options.items() if key.lower() == name.lower()), None)


def parse(endpoint: Endpoint) -> OdbcAddress:
    """Parse the URL of an ODBC endpoint.

    The form is ``SCHEME://USER:PASSWORD@HOST:PORT/DATABASE?KEYWORD=VALUE&...`` or
    ``odbc://USER:PASSWORD@/DATABASE?dsn=NAME``. Special characters are percent-encoded (``HOST%5CINSTANCE``).

    Raises:
        AddressError: a keyword is not allowed in its place, or is missing.
    """
    parts = urlsplit(endpoint.url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    ours = {key.lower(): value for key, value in given.items() if key.lower() in _OURS}
    options = {key: value for key, value in given.items() if key.lower() not in _OURS}
    for key in options:
        if where := _IN_THE_URL.get(key.lower()):
            raise AddressError(endpoint, f"the keyword {key} in the url's query", f"write {where}")
    kind = SCHEMES[parts.scheme]
    dialect = ours.get("dialect")
    if dialect is not None and dialect not in KINDS:
        cause, _, remedy = unknown("dialect", dialect, KINDS).partition("; ")
        raise AddressError(endpoint, cause, remedy)
    if kind is None and not ours.get("dsn"):
        raise AddressError(endpoint, "an odbc:// url without a data source", "write odbc:///?dsn=NAME")
    if kind is not None and not parts.hostname and not ours.get("dsn"):
        raise AddressError(endpoint, "a url without a host", f"write {parts.scheme}://HOST/DATABASE")
    try:
        port = parts.port
    except ValueError as error:
        raise AddressError(endpoint, "a wrong port", "a port is a number up to 65535") from error
    login, _, _ = parts.netloc.rpartition("@")
    user, has_password, password = login.partition(":")
    return OdbcAddress(
        kind=kind or dialect,
        host=unquote(_host(parts)),
        port=port,
        database=unquote(parts.path.strip("/")),
        user=unquote(user) or endpoint.options.get("user"),
        password=unquote(password) if has_password else endpoint.options.get("password"),
        dsn=ours.get("dsn", ""),
        driver=ours.get("driver", ""),
        options=options,
    )


def _host(parts: SplitResult) -> str:
    """Return the host unchanged, because the name of an instance may have capitals."""
    host, place = parts.hostname or "", parts.netloc.rpartition("@")[2]
    at = place.lower().find(host.lower())
    return place[at : at + len(host)]


def connection_string(keywords: Mapping[str, str]) -> str:
    """Return ``KEYWORD=value;...``, with values quoted if ODBC needs it (SQLDriverConnect, "Comments")."""
    return "".join(f"{key}={quoted(value)};" for key, value in keywords.items())


MICROSOFT = "microsoft"
FREETDS = "freetds"
MARIADB = "mariadb"
_FAMILIES = (
    (FREETDS, re.compile(r"freetds|tdsodbc", re.IGNORECASE)),
    (MICROSOFT, re.compile(r"sql server|msodbcsql|sqlncli|sqlsrv", re.IGNORECASE)),
    (MARIADB, re.compile(r"maria|maodbc", re.IGNORECASE)),
    (MYSQL, re.compile(r"mysql|myodbc", re.IGNORECASE)),
    (POSTGRESQL, re.compile(r"postgres|psqlodbc", re.IGNORECASE)),
)
"""Family of drivers -> names of its drivers and libraries."""

_REGISTERED = {
    MYSQL: (
        r"MariaDB Unicode",
        r"MariaDB ODBC ([\d.]+) Driver",
        r"MariaDB.*",
        r"MySQL ODBC ([\d.]+) .*",
        r"MySQL.*",
    ),
    POSTGRESQL: (r"PostgreSQL Unicode.*", r"psqlODBC.*", r"PostgreSQL.*"),
}
"""Kind of server -> registered names of its drivers, the best first."""
_PACKAGES = {
    MSSQL: INSTALL_SQLSERVER_DRIVER,
    MYSQL: "install one (Debian and Ubuntu: apt-get install odbc-mariadb)",
    POSTGRESQL: "install one (Debian and Ubuntu: apt-get install odbc-postgresql)",
}
_SHOWN = {MSSQL: "SQL Server", MYSQL: "MariaDB or MySQL", POSTGRESQL: "PostgreSQL"}


class NoDriver(Exception):  # noqa: N818 - an answer: there is none, and what to install
    """No driver for this kind of server is installed. ``remedy`` names one to install."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause = cause
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class OdbcDriver:
    """An installed ODBC driver.

    Attributes:
        keyword: value of ``DRIVER=``: the registered name, or the path of the library.
        family: ``MICROSOFT``, ``FREETDS``, ...; empty: unknown.
        shown: driver and its location as text.
    """

    keyword: str
    family: str
    shown: str


def find(address: OdbcAddress, registered: Sequence[str]) -> OdbcDriver | None:
    """Return the driver for an address: the named driver, or else the best one.

    Returns None if a data source names the driver.

    For SQL Server the best driver is Microsoft's, from the system or from the wheel ``mssql-python-odbc``, or
    else FreeTDS.

    Args:
        address: address of the endpoint.
        registered: names in the system's odbcinst.ini (``pyodbc.drivers()``).

    Raises:
        NoDriver: no driver is installed.
    """
    if address.driver:
        return OdbcDriver(address.driver, family_of(address.driver), address.driver)
    if address.dsn:
        return None
    kind = address.kind or ""
    if kind == MSSQL:
        if result := sqlserver_driver(registered):
            return OdbcDriver(result.keyword, family_of(result.keyword), result.shown)
    elif name := _best(registered, _REGISTERED[kind]):
        return OdbcDriver(name, family_of(name), f"{name} (the system's)")
    have = ", ".join(registered) or "none"
    raise NoDriver(
        f"no ODBC driver for {_SHOWN[kind]} is installed here (registered: {have})", _PACKAGES[kind]
    )


def family_of(name: str) -> str:
    """Return the family of a driver by its name or library; empty: unknown."""
    return next((family for family, pattern in _FAMILIES if pattern.search(name)), "")


def no_manager(endpoint: Endpoint, error: ImportError) -> EndpointUnreachable:
    """Return the sentence for a machine on which pyodbc cannot be imported."""
    why = unreachable(
        endpoint,
        f"ODBC's driver manager cannot be loaded on this machine ({error})",
        "install it (Debian and Ubuntu: apt-get install unixodbc)",
    )
    why.__cause__ = error
    return why


def _best(registered: Sequence[str], patterns: Sequence[str]) -> str | None:
    for pattern in patterns:
        fitting = [name for name in registered if re.fullmatch(pattern, name, re.IGNORECASE)]
        if fitting:
            return max(fitting, key=_version)
    return None


def _version(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", name)))
