"""sql-mix in PostgreSQL's SQL. Names are looked up in the scenario's own schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

import psycopg
from psycopg import sql

from ...databases.postgresql import Connection
from ..operations import DATA, HOT, LOG

STATEMENTS: dict[str, LiteralString] = {
    "log_append": "INSERT INTO log (session, sequence, payload) VALUES ($1, $2, $3)",
    "data_update": "UPDATE data SET version = version + 1, changed = now() WHERE id = $1",
    "point_read": "SELECT version, payload FROM data WHERE id = $1",
    # The application's thinking is slept through in the server, once the row is locked (RETURNING comes
    # after the change): no CPU, exact, and not dependent on how soon a busy client goes on, which would make
    # the generator part of what is measured.
    "hot_row_update": "UPDATE hot SET version = version + 1, changed = now() WHERE id = $1"
    " RETURNING pg_sleep($2::float8)",
}
"""Operation -> its statement."""

BYTES_PER_ROW = 2048  # four rows to a page, see _DATA
_CACHE_MULTIPLE = 2  # twice the cache: at most half of the reads can be answered from it
_LARGEST_BYTES = 256 * 2**20  # so that loading it stays a matter of seconds
_BATCH_ROWS = 8192

_LOG = """CREATE TABLE log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session int NOT NULL, sequence int NOT NULL,
    at timestamptz NOT NULL DEFAULT now(), payload bytea NOT NULL)"""

_HOT = "CREATE TABLE hot (id int PRIMARY KEY, version bigint NOT NULL, changed timestamptz NOT NULL)"
_FILL_HOT = "INSERT INTO hot SELECT id, 0, now() FROM generate_series(1, %s::int) id"

# Half of each page is left free, so that an updated row stays in its page: one update dirties one page.
_DATA = """CREATE TABLE data (
    id bigint PRIMARY KEY, version int NOT NULL, changed timestamptz NOT NULL,
    payload bytea STORAGE PLAIN NOT NULL) WITH (fillfactor = 50)"""

# Digests, because storage that compresses or deduplicates would make nothing of a repeated byte.
_FILL = """INSERT INTO data SELECT id, 0, now(), (
    SELECT string_agg(sha512(convert_to(id || ':' || part, 'UTF8')), ''::bytea)
    FROM generate_series(1, 14) part)
    FROM generate_series(%s::bigint, %s::bigint) id"""

_INTACT = "SELECT obj_description(to_regclass('data'), 'pg_class'), pg_relation_size(to_regclass('data'))"
_CACHE = """SELECT setting::bigint * current_setting('block_size')::bigint
    FROM pg_settings WHERE name = 'shared_buffers'"""


def data_rows(connection: Connection, scale: float) -> int:
    """Rows of a data table of twice the server's buffer cache, at most 256 MiB, times ``scale``."""
    found = connection.execute(_CACHE).fetchone()
    cache_bytes: int = found[0] if found else 0
    return max(1, round(scale * min(_CACHE_MULTIPLE * cache_bytes, _LARGEST_BYTES) / BYTES_PER_ROW))


def count_rows(connection: Connection) -> int:
    """Rows of the data table as it was loaded: their ids run from 1 to this."""
    found = connection.execute("SELECT max(id) FROM data").fetchone()
    return int(found[0] or 0) if found else 0


def make_tables(
    connection: Connection,
    tables: frozenset[str],
    rows: int,
    hot_rows: int,
    progress: Callable[[str], None],
) -> None:
    """Make the log and hot tables anew, and the data table unless it is there as an earlier run loaded it."""
    if LOG in tables:
        connection.execute("DROP TABLE IF EXISTS log")
        connection.execute(_LOG)
    if HOT in tables:
        with connection.transaction():
            connection.execute("DROP TABLE IF EXISTS hot")
            connection.execute(_HOT)
            connection.execute(_FILL_HOT, [hot_rows])
    if DATA in tables and not _intact(connection, rows):
        _load(connection, rows, progress)


def _label(rows: int) -> str:
    return f"pinchpoint.data/1 rows={rows}"


def _intact(connection: Connection, rows: int) -> bool:
    """Whether the table was loaded to its end with as many rows, and earlier runs have not bloated it."""
    found = connection.execute(_INTACT).fetchone()
    return found is not None and found[0] == _label(rows) and found[1] < 2 * rows * BYTES_PER_ROW + 2**20


def _load(connection: Connection, rows: int, progress: Callable[[str], None]) -> None:
    """Load on the server, in one transaction: the label that says "complete" comes with the last row."""
    with connection.transaction():
        connection.execute("DROP TABLE IF EXISTS data")
        connection.execute(_DATA)
        for first in range(1, rows + 1, _BATCH_ROWS):
            progress(f"loading the data table: {100 * (first - 1) // rows} % of {rows} rows")
            connection.execute(_FILL, [first, min(rows, first + _BATCH_ROWS - 1)])
        connection.execute(sql.SQL("COMMENT ON TABLE data IS {}").format(sql.Literal(_label(rows))))
    try:
        connection.execute("VACUUM (ANALYZE) data")  # else autovacuum does it in the middle of the measuring
    except psycopg.errors.LockNotAvailable:
        progress("the data table is being vacuumed by the server itself")
    progress(f"loaded the data table: {rows} rows")
