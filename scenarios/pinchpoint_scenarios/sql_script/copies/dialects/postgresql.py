"""A copy on PostgreSQL, by ODBC: the same mark and the same lock as by its own library."""

from __future__ import annotations

from ....databases.odbc.servers.postgresql import SQL as SERVER
from ...scope import literal
from .contract import CopySql

SQL = CopySql(
    find="""SELECT current_database()::text, shobj_description(oid, 'pg_database'), 0
        FROM pg_database WHERE datname = current_database()""",
    tables="""SELECT format('%I.%I', nspname, relname)::text FROM pg_class
        JOIN pg_namespace space ON space.oid = relnamespace
        WHERE relkind IN ('r', 'p', 'm', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema')
            AND nspname !~ '^pg_' AND coalesce(obj_description(space.oid, 'pg_namespace'), '') <> '{owned}'
        ORDER BY 1 LIMIT 4""",
    mark="COMMENT ON DATABASE {database} IS '{marker}'",
    lock=SERVER.lock,
    sample="""SELECT v FROM (
        SELECT {column} AS v, row_number() OVER (ORDER BY {column}) AS n, count(*) OVER () AS total
        FROM {table} WHERE {column} IS NOT NULL) ranked
        WHERE total <= $1::int8 OR n * $1::int8 / total > (n - 1) * $1::int8 / total ORDER BY n""",
    literal=literal,
    batches=lambda text: [text],
    begins={},
)
"""The statements of ``CopySql``."""
