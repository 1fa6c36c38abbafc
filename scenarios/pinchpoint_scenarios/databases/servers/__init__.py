"""Lists the kinds of servers, whose statements differ even before a table is created: a module per kind."""

from __future__ import annotations

from collections.abc import Mapping

from . import mariadb, postgresql, tsql
from .contract import MSSQL, MYSQL, POSTGRESQL, ServerSql

SERVERS: Mapping[str, ServerSql] = {MSSQL: tsql.SQL, MYSQL: mariadb.SQL, POSTGRESQL: postgresql.SQL}
"""Kind of server -> statements for it."""

_NAMES = {"microsoft sql server": MSSQL, "mariadb": MYSQL, "mysql": MYSQL, "postgresql": POSTGRESQL}


def kind_of(name: str) -> str | None:
    """Return the kind of a server with a name (``SQL_DBMS_NAME``); None: unknown."""
    return next((kind for known, kind in _NAMES.items() if known in name.lower()), None)
