"""How each operation is said to PostgreSQL."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import LiteralString

from ....databases.contract import CopyingConnection, SqlConnection
from ...operations import Drawn
from ..contract import Saying, counting, statement


def _lock_contend(connection: SqlConnection, drawn: Drawn) -> int:
    *rows, hold_s = drawn
    if len(rows) == 1:
        return connection.execute(_HOLD, drawn).rowcount
    with connection.transaction():
        return sum(connection.execute(_HOLD, (row, hold_s)).rowcount for row in rows)


def _bulk_load(connection: CopyingConnection, drawn: Drawn) -> int:
    bound_bytes, content = drawn
    keep_below(connection, bound_bytes)
    return connection.copy("COPY bulk (session, load, payload) FROM STDIN (FORMAT binary)", content).rowcount


def keep_below(connection: SqlConnection, bound_bytes: int) -> None:
    """Empty the bulk table where it is larger than that."""
    if _bulk_bytes(connection) > bound_bytes:
        with connection.transaction():
            connection.execute("LOCK TABLE bulk IN ACCESS EXCLUSIVE MODE")
            # Whoever else saw it grow so large, and had the lock before us, has emptied it.
            if _bulk_bytes(connection) > bound_bytes:
                connection.execute("TRUNCATE bulk")


def _bulk_bytes(connection: SqlConnection) -> int:
    found = connection.execute("SELECT pg_total_relation_size('bulk')").fetchone()
    return int(found[0]) if found else 0


def _as_binary_copy(drawn: Drawn) -> Drawn:
    """The rows in COPY's binary format (PostgreSQL manual, COPY, "Binary Format"): three fields each."""
    bound_bytes, session, load, payloads = drawn
    head = struct.pack(">hiiiii", 3, 4, session, 4, load, len(payloads[0]))
    rows = b"".join([head + payload for payload in payloads])
    return bound_bytes, b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows + b"\xff\xff"


# The application's thinking is slept through in the server, once the row is locked (RETURNING comes after the
# change): no CPU, exact, and not dependent on how soon a busy client goes on, which would make the generator
# part of what is measured.
_HOLD: LiteralString = """UPDATE hot SET version = version + 1, changed = now() WHERE id = $1::int4
    RETURNING pg_sleep($2::float8)"""

COMMON: Mapping[str, Saying[SqlConnection]] = {
    "log_append": Saying(
        statement("INSERT INTO log (session, sequence, payload) VALUES ($1::int4, $2::int4, $3::bytea)")
    ),
    # One value of all payloads, cut up on the server: drivers need not know arrays.
    "log_batch": Saying(
        statement("""INSERT INTO log (session, sequence, payload)
            SELECT $1::int4, $2::int4 + n, substring($5::bytea FROM n * $4::int4 + 1 FOR $4::int4)
            FROM generate_series(0, $3::int4 - 1) n""")
    ),
    "data_update": Saying(
        statement("UPDATE data SET version = version + 1, changed = now() WHERE id = $1::int8")
    ),
    "point_read": Saying(statement("SELECT version, payload FROM data WHERE id = $1::int8")),
    # The sum makes it read the rows, not the index alone. They stay on the server, as a report's do.
    "range_scan": Saying(
        counting("SELECT count(*), sum(version) FROM data WHERE id BETWEEN $1::int8 AND $2::int8")
    ),
    # Sorted by all of each row, byte by byte: the sort must keep the rows, and write them out. Two columns:
    # PostgreSQL 18 does not count the memory of single values it sorts (4 MiB passed for 193 kB).
    "spill": Saying(
        counting("""SELECT count(*), sum(n) FROM (
            SELECT n, repeat(md5(($1::int8 + n)::text), 32) COLLATE "C" AS row
            FROM generate_series(1, $2::int4) n ORDER BY 2) sorted""")
    ),
    "lock_contend": Saying(_lock_contend),
}
"""Operation -> how it is done by any library."""
SAYINGS: Mapping[str, Saying[CopyingConnection]] = {
    **COMMON,
    "bulk_load": Saying(_bulk_load, _as_binary_copy),
}
"""Operation -> how it is done by PostgreSQL's own."""
