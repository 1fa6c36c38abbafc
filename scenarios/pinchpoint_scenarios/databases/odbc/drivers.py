"""Which ODBC driver speaks to a kind of server, and where it is found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint_collectors.common.odbc import wheel_library

from ...addresses import unreachable
from ...contract import Endpoint
from ...errors import EndpointUnreachable
from ..servers.contract import MSSQL, MYSQL, POSTGRESQL
from .address import OdbcAddress

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
"""Family of drivers -> what its names and libraries are called."""

_REGISTERED = {
    MSSQL: (r"ODBC Driver (\d+) for SQL Server",),
    MYSQL: (
        r"MariaDB Unicode",
        r"MariaDB ODBC ([\d.]+) Driver",
        r"MariaDB.*",
        r"MySQL ODBC ([\d.]+) .*",
        r"MySQL.*",
    ),
    POSTGRESQL: (r"PostgreSQL Unicode.*", r"psqlODBC.*", r"PostgreSQL.*"),
}
"""Kind of server -> the names its drivers are registered under, best first."""
_FREETDS_NAMES = (r"FreeTDS.*",)
_PACKAGES = {
    MSSQL: "install Microsoft's ODBC Driver 18, or `pip install 'pinchpoint-scenarios[microsoft-odbc]'`, "
    "or FreeTDS (Debian and Ubuntu: apt-get install tdsodbc)",
    MYSQL: "install one (Debian and Ubuntu: apt-get install odbc-mariadb)",
    POSTGRESQL: "install one (Debian and Ubuntu: apt-get install odbc-postgresql)",
}
_SHOWN = {MSSQL: "SQL Server", MYSQL: "MariaDB or MySQL", POSTGRESQL: "PostgreSQL"}


class NoDriver(Exception):  # noqa: N818 - an answer: there is none, and what to install
    """No driver for this kind of server is to be found; ``remedy`` is what to install."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause = cause
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver.

    Attributes:
        keyword: what stands after ``DRIVER=``: its registered name, or its library's path.
        family: ``MICROSOFT``, ``FREETDS``, ... ; empty: none that is known.
        shown: it, and where it was found, for a person.
    """

    keyword: str
    family: str
    shown: str


def find(address: OdbcAddress, registered: Sequence[str]) -> Driver | None:
    """The driver for an address: the one it names, else the best there is; None: a data source names it.

    SQL Server's is Microsoft's, from the system or from the wheel ``mssql-python-odbc``; else FreeTDS.

    Args:
        address: the endpoint's.
        registered: the names in the system's odbcinst.ini (``pyodbc.drivers()``).

    Raises:
        NoDriver: there is none.
    """
    if address.driver:
        return Driver(address.driver, family_of(address.driver), address.driver)
    if address.dsn:
        return None
    kind = address.kind or ""
    name = _best(registered, _REGISTERED[kind])
    if name:
        return Driver(name, family_of(name), f"{name} (the system's)")
    if kind == MSSQL:
        if library := wheel_library():
            return Driver(
                str(library), MICROSOFT, f"Microsoft's {library.name} (the wheel mssql-python-odbc's)"
            )
        if name := _best(registered, _FREETDS_NAMES):
            return Driver(name, FREETDS, f"{name} (the system's, for want of Microsoft's)")
    have = ", ".join(registered) or "none"
    raise NoDriver(
        f"no ODBC driver for {_SHOWN[kind]} is installed here (registered: {have})", _PACKAGES[kind]
    )


def family_of(name: str) -> str:
    """The family a driver belongs to, by its name or library; empty: none that is known."""
    return next((family for family, pattern in _FAMILIES if pattern.search(name)), "")


def no_manager(endpoint: Endpoint, error: ImportError) -> EndpointUnreachable:
    """The sentence for a machine on which pyodbc cannot be imported."""
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
