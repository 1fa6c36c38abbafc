"""sql-mix on PostgreSQL by its ODBC driver: the same statements, bulk loads by arrays of parameters."""

from __future__ import annotations

from ....databases.contract import LoadingConnection
from ...operations import BULK, DATA, HOT, LOG, Drawn
from ..contract import OdbcMixSql, Saying
from . import loading, tables
from .operations import COMMON, keep_below

_BULK_LOAD = "INSERT INTO bulk (session, load, payload) VALUES ($1::int4, $2::int4, $3::bytea)"


def _bulk_load(connection: LoadingConnection, drawn: Drawn) -> int:
    bound_bytes, rows = drawn
    keep_below(connection, bound_bytes)
    return connection.insert_many(_BULK_LOAD, rows).rowcount


def as_rows(drawn: Drawn) -> Drawn:
    """A bulk load's rows of parameters."""
    bound_bytes, session, load, payloads = drawn
    return bound_bytes, [(session, load, payload) for payload in payloads]


def mix_sql(schema: str) -> OdbcMixSql:
    """The statements; names are found by the search path.

    Args:
        schema: the quoted name of the schema.
    """
    del schema
    made = {name: (f"DROP TABLE IF EXISTS {name}", tables.MAKE[name]) for name in (LOG, BULK, HOT)}
    return OdbcMixSql(
        make={**made, DATA: ("DROP TABLE IF EXISTS data", loading.DATA)},
        fill_hot=tables.FILL_HOT,
        cache_bytes=loading.CACHE,
        may_know_cache="",
        data_there="""SELECT obj_description(to_regclass('data'), 'pg_class'),
            pg_table_size(to_regclass('data')),
            CASE WHEN to_regclass('data_pkey') IS NULL THEN 0 ELSE 1 END""",
        data_count="SELECT count(*), min(id), max(id) FROM data",
        data_fill=loading.FILL,
        fill_fast=("SET synchronous_commit = off",),
        data_complete=(
            "ALTER TABLE data ADD PRIMARY KEY (id)",
            "VACUUM (ANALYZE) data",
            "COMMENT ON TABLE data IS '{label}'",
        ),
        spill=(tables.WORK_MEM.replace("$1", f"{{bytes}} / {tables.SPILL_FACTOR}"),),
        sayings={**COMMON, "bulk_load": Saying(_bulk_load, as_rows)},
    )
