"""How each operation is said to PostgreSQL."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString

from ....databases.contract import SqlConnection
from ...operations import Drawn

Run = Callable[[SqlConnection, Drawn], int]
"""Does one operation with the values that were drawn for it: how many rows it found or made."""


@dataclass(frozen=True, slots=True)
class Saying:
    """How one operation is done.

    Attributes:
        run: does it, as one transaction.
        encode: puts the values into the form they travel in, before the clock is taken; None: they are.
    """

    run: Run
    encode: Callable[[Drawn], Drawn] | None = None


def _statement(text: LiteralString) -> Run:
    """One statement: its row count."""
    return lambda connection, drawn: connection.execute(text, drawn).rowcount


def _counting(text: LiteralString) -> Run:
    """One query whose only row begins with the number of rows it went through."""

    def run(connection: SqlConnection, drawn: Drawn) -> int:
        found = connection.execute(text, drawn).fetchone()
        return int(found[0]) if found else 0

    return run


def _lock_contend(connection: SqlConnection, drawn: Drawn) -> int:
    *rows, hold_s = drawn
    if len(rows) == 1:
        return connection.execute(_HOLD, drawn).rowcount
    with connection.transaction():
        return sum(connection.execute(_HOLD, (row, hold_s)).rowcount for row in rows)


def _bulk_load(connection: SqlConnection, drawn: Drawn) -> int:
    bound_bytes, content = drawn
    if _bulk_bytes(connection) > bound_bytes:
        with connection.transaction():
            connection.execute("LOCK TABLE bulk IN ACCESS EXCLUSIVE MODE")
            # Whoever else saw it grow so large, and had the lock before us, has emptied it.
            if _bulk_bytes(connection) > bound_bytes:
                connection.execute("TRUNCATE bulk")
    return connection.copy("COPY bulk (session, load, payload) FROM STDIN (FORMAT binary)", content).rowcount


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

SAYINGS = {
    "log_append": Saying(
        _statement("INSERT INTO log (session, sequence, payload) VALUES ($1::int4, $2::int4, $3::bytea)")
    ),
    # One value of all payloads, cut up on the server: drivers need not know arrays.
    "log_batch": Saying(
        _statement("""INSERT INTO log (session, sequence, payload)
            SELECT $1::int4, $2::int4 + n, substring($5::bytea FROM n * $4::int4 + 1 FOR $4::int4)
            FROM generate_series(0, $3::int4 - 1) n""")
    ),
    "data_update": Saying(
        _statement("UPDATE data SET version = version + 1, changed = now() WHERE id = $1::int8")
    ),
    "bulk_load": Saying(_bulk_load, _as_binary_copy),
    "point_read": Saying(_statement("SELECT version, payload FROM data WHERE id = $1::int8")),
    # The sum makes it read the rows, not the index alone. They stay on the server, as a report's do.
    "range_scan": Saying(
        _counting("SELECT count(*), sum(version) FROM data WHERE id BETWEEN $1::int8 AND $2::int8")
    ),
    # Sorted by all of each row, byte by byte: the sort must keep the rows, and write them out. Two columns:
    # PostgreSQL 18 does not count the memory of single values it sorts (4 MiB passed for 193 kB).
    "spill": Saying(
        _counting("""SELECT count(*), sum(n) FROM (
            SELECT n, repeat(md5(($1::int8 + n)::text), 32) COLLATE "C" AS row
            FROM generate_series(1, $2::int4) n ORDER BY 2) sorted""")
    ),
    "lock_contend": Saying(_lock_contend),
}
"""Operation -> how it is done."""
