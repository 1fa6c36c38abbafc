"""The SQL dialects of sql-mix, one file for each kind of server."""

from __future__ import annotations

from ...databases.servers.contract import MSSQL, MYSQL
from . import mariadb, postgresql, tsql
from .contract import MixSql


def mix_sql(kind: str, schema: str, *, native: bool) -> MixSql:
    """The statements for a kind of server.

    Args:
        kind: it.
        schema: the quoted name of the schema.
        native: whether it is reached by its own library.
    """
    if kind == MSSQL:
        return tsql.mix_sql(schema)
    if kind == MYSQL:
        return mariadb.mix_sql(schema)
    return postgresql.mix_sql(schema, copies=native)
