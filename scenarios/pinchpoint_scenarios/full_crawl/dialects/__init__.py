"""Lists the SQL of the crawl database, one module per kind of server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...contract import Endpoint
from ...databases.odbc.address import SCHEMES
from ...databases.servers.contract import MSSQL, MYSQL, POSTGRESQL
from ...errors import ScenarioError
from . import mariadb, postgresql, tsql
from .contract import NEXT, OURS, TABLES, CrawlSql, within

__all__ = ["DIALECTS", "NEXT", "OURS", "TABLES", "CrawlSql", "by_odbc", "known", "too_old", "within"]

DIALECTS: dict[str, CrawlSql] = {POSTGRESQL: postgresql.SQL, MSSQL: tsql.SQL, MYSQL: mariadb.SQL}
"""Kind of server -> its statements."""
_BY_ODBC = frozenset({MYSQL, MSSQL})
_LEAST_LEVEL = 140
"""Compatibility level of SQL Server 2017. OPENJSON needs level 130, and STRING_AGG needs this version."""
_LEAST_MARIADB = 10, 6
_ALLOWED = (
    "postgresql://, mysql+odbc:// (MariaDB 10.6 and later), or mssql+odbc:// (SQL Server 2017 and later), "
    "for the crawl's queue and log"
)


def known(endpoint: Endpoint) -> None:
    """Raises ``ScenarioError`` if the URL of an endpoint shows that a crawl cannot use it."""
    scheme = endpoint.url.partition("://")[0]
    if scheme in ("postgresql", "postgres"):
        return
    if scheme not in SCHEMES:
        raise ScenarioError(
            f"endpoint {endpoint.name}: the scheme {scheme!r}: no crawl database is known for it; allowed: "
            f"{_ALLOWED}"
        )
    kind = SCHEMES[scheme]
    if kind is not None:  # otherwise the data source defines it
        by_odbc(endpoint, kind)


def by_odbc(endpoint: Endpoint, kind: str) -> CrawlSql:
    """Return the statements for a kind of server over ODBC.

    Raises ``ScenarioError`` for an unsupported kind.
    """
    if kind not in _BY_ODBC:
        raise ScenarioError(
            f"endpoint {endpoint.name}: a crawl database on a server of kind {kind} is not driven by ODBC; "
            f"allowed: {_ALLOWED}"
        )
    return DIALECTS[kind]


def too_old(kind: str, facts: Mapping[str, Any]) -> str:
    """Return why a server over ODBC, described by ``check``, cannot have a crawl database; "" if it can."""
    if kind == MSSQL:
        level = int(facts["settings"].get("compatibility_level", _LEAST_LEVEL))
        if level >= _LEAST_LEVEL:
            return ""
        return (
            f"the database's compatibility level is {level}; a crawl database needs {_LEAST_LEVEL} (SQL "
            f"Server 2017) or later: ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = {_LEAST_LEVEL}"
        )
    version = str(facts["version"])
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if "mariadb" in version.lower() and numbers >= _LEAST_MARIADB:
        return ""
    return f"the server is {version}, which cannot hold a crawl database; allowed: {_ALLOWED}"
