"""The tables of sql-mix on PostgreSQL, and what a session sets before it works on them."""

from __future__ import annotations

import psycopg

from ....databases.postgresql import Connection
from ...operations import BULK, HOT, LOG

# Payloads are random: trying to compress them would be all that a large row's CPU time goes to. Storage is
# altered afterwards, as CREATE TABLE takes it from PostgreSQL 16 on only.
MAKE = {
    LOG: """CREATE TABLE log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session int NOT NULL, sequence int NOT NULL,
    at timestamptz NOT NULL DEFAULT now(), payload bytea NOT NULL);
    ALTER TABLE log ALTER COLUMN payload SET STORAGE EXTERNAL""",
    BULK: """CREATE TABLE bulk (session int NOT NULL, load int NOT NULL, payload bytea NOT NULL);
    ALTER TABLE bulk ALTER COLUMN payload SET STORAGE EXTERNAL""",
    HOT: "CREATE TABLE hot (id int PRIMARY KEY, version bigint NOT NULL, changed timestamptz NOT NULL)",
}
"""Table -> the statement that makes it."""
FILL_HOT = "INSERT INTO hot SELECT id, 0, now() FROM generate_series(1, $1::int) id"

WORK_MEM = """SELECT set_config('work_mem',
    least(pg_size_bytes(current_setting('work_mem')), greatest(65536, $1::int8)) / 1024 || 'kB', false)"""
SPILL_FACTOR = 8
"""A session that spills may keep at most so small a part of what it sorts in memory."""


def make_small(connection: Connection, tables: frozenset[str], hot_rows: int) -> None:
    """Make the log, bulk and hot tables that are needed anew: each starts as every run expects it."""
    for name, statement in MAKE.items():
        if name in tables:
            with connection.transaction():
                connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute(statement)
                if name == HOT:
                    psycopg.RawCursor(connection).execute(FILL_HOT, [hot_rows])


def set_isolation(connection: Connection, isolation: str) -> None:
    """Every transaction of this connection has this isolation level (``repeatable_read``)."""
    level = "repeatable read" if isolation == "snapshot" else isolation.replace("_", " ")
    connection.execute("SELECT set_config('default_transaction_isolation', %s, false)", [level])


def spill_beyond_memory(connection: Connection, spill_bytes: int) -> None:
    """A sort of ``spill_bytes`` does not fit into this connection's work memory, whatever the server's is."""
    psycopg.RawCursor(connection).execute(WORK_MEM, [spill_bytes // SPILL_FACTOR])
