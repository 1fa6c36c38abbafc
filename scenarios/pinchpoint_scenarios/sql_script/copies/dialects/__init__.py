"""What differs between kinds of servers behind ODBC: one file each."""

from __future__ import annotations

from collections.abc import Mapping

from ....databases.odbc.address import MSSQL, MYSQL, POSTGRESQL
from . import mariadb, postgresql, tsql
from .contract import CopySql

DIALECTS: Mapping[str, CopySql] = {MSSQL: tsql.SQL, MYSQL: mariadb.SQL, POSTGRESQL: postgresql.SQL}
"""Kind of server -> its statements."""
