"""Lists the SQL dialects of sql-mix, one module per kind of server."""

from __future__ import annotations

from ...databases.servers.contract import MSSQL, MYSQL
from . import mariadb, postgresql, tsql
from .contract import MixSql


def mix_sql(kind: str, schema: str, *, native: bool) -> MixSql:
    """Return the statements for a kind of server.

    Args:
        kind: kind of the server.
        schema: quoted name of the schema.
        native: whether the server is accessed by its own library.
    """
    if kind == MSSQL:
        return tsql.mix_sql(schema)
    if kind == MYSQL:
        return mariadb.mix_sql(schema)
    return postgresql.mix_sql(schema, copies=native)
