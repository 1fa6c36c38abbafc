"""Statements of sql-mix for PostgreSQL, by its own library and by ODBC, in the scenario's own schema."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, LiteralString

from ...databases.contract import CopyingConnection, LoadingConnection, SqlConnection
from ..operations import BULK, DATA, HOT, LOG, Drawn
from .contract import MixSql, SqlOperation, as_rows, counting, keep_below, lock_contend, statement

# Payloads are random, because compressing them would take all of a large row's CPU time. Storage is altered
# afterwards, because CREATE TABLE accepts it only from PostgreSQL 16 on.
_MAKE = {
    LOG: """CREATE TABLE log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session int NOT NULL, sequence int NOT NULL,
    at timestamptz NOT NULL DEFAULT now(), payload bytea NOT NULL);
    ALTER TABLE log ALTER COLUMN payload SET STORAGE EXTERNAL""",
    BULK: """CREATE TABLE bulk (session int NOT NULL, load int NOT NULL, payload bytea NOT NULL);
    ALTER TABLE bulk ALTER COLUMN payload SET STORAGE EXTERNAL""",
    HOT: "CREATE TABLE hot (id int PRIMARY KEY, version bigint NOT NULL, changed timestamptz NOT NULL)",
    # Half of each page stays free, so that an updated row stays in its page and one update dirties one page.
    DATA: """CREATE TABLE data (
    id bigint NOT NULL, version int NOT NULL, changed timestamptz NOT NULL,
    payload bytea NOT NULL) WITH (fillfactor = 50);
    ALTER TABLE data ALTER COLUMN payload SET STORAGE PLAIN""",
}

# Digests are used, because compression or deduplication of the storage would remove repeated bytes.
_FILL = """INSERT INTO data SELECT id, 0, now(), (
    SELECT string_agg(sha512(convert_to(id || ':' || part, 'UTF8')), ''::bytea)
    FROM generate_series(1, 14) part)
    FROM generate_series($1::bigint, $2::bigint) id"""

_WORK_MEM = """SELECT set_config('work_mem',
    least(pg_size_bytes(current_setting('work_mem')), greatest(65536, $1::int8)) / 1024 || 'kB', false)"""
_SPILL_FACTOR = 8
"""Share of the sorted data that a spilling session may keep in memory."""


_BULK = (
    "SELECT pg_total_relation_size('bulk')",
    "LOCK TABLE bulk IN ACCESS EXCLUSIVE MODE",
    "TRUNCATE bulk",
)
"""Statements for the size and the lock of the bulk table, and for emptying it."""


def _copy(connection: CopyingConnection, drawn: Drawn) -> int:
    bound_bytes, content = drawn
    keep_below(connection, bound_bytes, *_BULK)
    return connection.copy("COPY bulk (session, load, payload) FROM STDIN (FORMAT binary)", content).rowcount


def _insert(connection: LoadingConnection, drawn: Drawn) -> int:
    bound_bytes, rows = drawn
    keep_below(connection, bound_bytes, *_BULK)
    statement = "INSERT INTO bulk (session, load, payload) VALUES ($1::int4, $2::int4, $3::bytea)"
    return connection.insert_many(statement, rows).rowcount


def _as_binary_copy(drawn: Drawn) -> Drawn:
    """Return the rows in COPY's binary format, with three fields each (PostgreSQL manual, COPY)."""
    bound_bytes, session, load, payloads = drawn
    head = struct.pack(">hiiiii", 3, 4, session, 4, load, len(payloads[0]))
    rows = b"".join([head + payload for payload in payloads])
    return bound_bytes, b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows + b"\xff\xff"


# The think time of the application is a sleep on the server after the row is locked (RETURNING follows the
# change). It costs no CPU, is exact, and does not depend on how soon a busy client continues, which would
# make the generator part of the measurement.
_HOLD: LiteralString = """UPDATE hot SET version = version + 1, changed = now() WHERE id = $1::int4
    RETURNING pg_sleep($2::float8)"""

_COMMON: Mapping[str, SqlOperation[SqlConnection]] = {
    "log_append": SqlOperation(
        statement("INSERT INTO log (session, sequence, payload) VALUES ($1::int4, $2::int4, $3::bytea)")
    ),
    # All payloads are sent as one value and split on the server, so that drivers need no arrays.
    "log_batch": SqlOperation(
        statement("""INSERT INTO log (session, sequence, payload)
            SELECT $1::int4, $2::int4 + n, substring($5::bytea FROM n * $4::int4 + 1 FOR $4::int4)
            FROM generate_series(0, $3::int4 - 1) n""")
    ),
    "data_update": SqlOperation(
        statement("UPDATE data SET version = version + 1, changed = now() WHERE id = $1::int8")
    ),
    "point_read": SqlOperation(statement("SELECT version, payload FROM data WHERE id = $1::int8")),
    # The sum makes the server read the rows and not only the index. Like the rows of a report, they stay on
    # the server.
    "range_scan": SqlOperation(
        counting("SELECT count(*), sum(version) FROM data WHERE id BETWEEN $1::int8 AND $2::int8")
    ),
    # The rows are sorted by all of their bytes, so that the sort must keep the rows and write them out. There
    # are two columns, because PostgreSQL 18 does not count the memory of single sorted values (4 MiB counted
    # as 193 kB).
    "spill": SqlOperation(
        counting("""SELECT count(*), sum(n) FROM (
            SELECT n, repeat(md5(($1::int8 + n)::text), 32) COLLATE "C" AS row
            FROM generate_series(1, $2::int4) n ORDER BY 2) sorted""")
    ),
    "lock_contend": SqlOperation(lock_contend(_HOLD)),
}
"""Operation -> its statements with any library."""


def mix_sql(schema: str, *, copies: bool = False) -> MixSql:
    """Return the statements.

    Args:
        schema: quoted name of the schema.
        copies: whether the library sends rows as one stream (COPY); otherwise as parameter arrays.
    """
    del schema
    bulk_load: SqlOperation[Any] = (
        SqlOperation(_copy, _as_binary_copy) if copies else SqlOperation(_insert, as_rows)
    )
    return MixSql(
        make={name: (f"DROP TABLE IF EXISTS {name}", made) for name, made in _MAKE.items()},
        fill_hot="INSERT INTO hot SELECT id, 0, now() FROM generate_series(1, $1::int) id",
        cache_bytes="""SELECT setting::bigint * current_setting('block_size')::bigint
            FROM pg_settings WHERE name = 'shared_buffers'""",
        may_know_cache="",
        data_there="""SELECT obj_description(to_regclass('data'), 'pg_class'),
            pg_table_size(to_regclass('data'))""",
        data_has_key="SELECT to_regclass('data_pkey') IS NOT NULL",
        data_count="SELECT count(*), min(id), max(id) FROM data",
        data_last="SELECT max(id) FROM data",
        data_fill=_FILL,
        # The comment that marks the table as complete is written durably, with everything before it.
        fill_fast=("SET synchronous_commit = off",),
        data_key="ALTER TABLE data ADD PRIMARY KEY (id)",
        data_settle="VACUUM (ANALYZE) data",
        data_label="COMMENT ON TABLE data IS '{label}'",
        spill=lambda size_bytes: ((_WORK_MEM, (size_bytes // _SPILL_FACTOR,)),),
        sayings={**_COMMON, "bulk_load": bulk_load},
    )
