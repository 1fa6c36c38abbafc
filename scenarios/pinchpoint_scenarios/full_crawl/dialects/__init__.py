"""The SQL of the crawl database, one file per kind of server."""

from __future__ import annotations

from ...contract import Endpoint
from ...errors import ScenarioError
from . import postgresql, tsql
from .contract import TABLES, CrawlSql

__all__ = ["DIALECTS", "TABLES", "CrawlSql", "crawl_sql"]

DIALECTS: dict[str, CrawlSql] = {"postgresql": postgresql.SQL, "mssql": tsql.SQL}
"""Kind of server -> its statements."""
_SCHEMES = {"postgresql": "postgresql", "postgres": "postgresql", "mssql+odbc": "mssql", "mssql": "mssql"}
"""Scheme of an endpoint's URL -> kind of server."""
_DRIVEN = frozenset({"postgresql"})


def crawl_sql(endpoint: Endpoint) -> CrawlSql:
    """The statements for an endpoint; raises ``ScenarioError`` where a crawl cannot run there."""
    scheme = endpoint.url.partition("://")[0]
    server = _SCHEMES.get(scheme)
    if server not in _DRIVEN:
        known = "its crawl database is not yet driven" if server else "no crawl database is known for it"
        raise ScenarioError(
            f"endpoint {endpoint.name}: the scheme {scheme!r}: {known}; allowed: postgresql://, "
            "a PostgreSQL database for the crawl's queue and log"
        )
    return DIALECTS[server]
