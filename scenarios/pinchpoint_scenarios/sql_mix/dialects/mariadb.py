"""Statements of sql-mix for MariaDB and MySQL (InnoDB). Tests use MariaDB; MySQL has not been tested.

Rows of the data table are clustered by id. They have 2,000 bytes, so that the table is as large as on other
servers with the same rows. Eight rows fill a page of 16 KiB, which an operation reads or dirties.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from ...databases.contract import LoadingConnection
from ...databases.servers.contract import Asked
from ..operations import BULK, DATA, DATA_PAYLOAD_BYTES, HOT, LOG, Drawn
from .contract import MixSql, SqlOperation, as_rows, counting, lock_contend, number, statement

_FILLER_BYTES = 944
_DIGEST_BYTES = 64
# the smallest sort buffer is 1 KiB; a session that spills has an eighth of the size that it sorts
_SPILL_FACTOR = 8
_ROW_OVERHEAD_BYTES = 40  # header, key and two numbers of a bulk row, and its share of a page

_DIGITS = " UNION ALL SELECT ".join(["SELECT 0 AS digit", *map(str, range(1, 10))])
# Numbers from 0 are generated in blocks of a hundred: no table of the server is needed, and recursion is
# short.
_NUMBERS = f"""(WITH RECURSIVE block (number) AS (
        SELECT 0 UNION ALL
        SELECT number + 1 FROM block WHERE (number + 1) * 100 < CAST($count AS SIGNED))
    SELECT block.number * 100 + tens.digit * 10 + ones.digit AS n
    FROM block CROSS JOIN ({_DIGITS}) tens CROSS JOIN ({_DIGITS}) ones
    WHERE block.number * 100 + tens.digit * 10 + ones.digit < CAST($count AS SIGNED)) numbers"""


def _numbers(count: str) -> str:
    return _NUMBERS.replace("$count", count)


def _digests(length: int, part: str) -> str:
    """Return SQL for a number of incompressible bytes by ``id``. RANDOM_BYTES is new in MariaDB 10.10."""
    hashed = ", ".join(
        f"SHA2(CONCAT(id, '{part}{number}'), 512)" for number in range(-(-length // _DIGEST_BYTES))
    )
    return f"LEFT(UNHEX(CONCAT({hashed})), {length})"


_TABLES = {
    LOG: """CREATE TABLE log (
        id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, session int NOT NULL, sequence int NOT NULL,
        at datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), payload longblob NOT NULL)
        ENGINE = InnoDB""",
    BULK: """CREATE TABLE bulk (
        id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, session int NOT NULL, `load` int NOT NULL,
        payload longblob NOT NULL) ENGINE = InnoDB""",
    HOT: """CREATE TABLE hot (
        id int NOT NULL PRIMARY KEY, version bigint NOT NULL, changed datetime(6) NOT NULL)
        ENGINE = InnoDB""",
    DATA: f"""CREATE TABLE data (
        id bigint NOT NULL PRIMARY KEY, version int NOT NULL, changed datetime(6) NOT NULL,
        payload varbinary({DATA_PAYLOAD_BYTES}) NOT NULL, filler varbinary({_FILLER_BYTES}) NOT NULL)
        ENGINE = InnoDB""",
}

# The pause is part of the expression of the row, so that the row is already locked.
_HOLD = """UPDATE hot SET version = version + 1 + SLEEP(CAST($2 AS DOUBLE)), changed = NOW(6)
    WHERE id = CAST($1 AS SIGNED)"""
_LAST_KEY = "SELECT COALESCE(MAX(id), 0) FROM bulk"
_BULK_LOAD = "INSERT INTO bulk (session, `load`, payload) VALUES ($1, $2, $3)"


def _bulk_load(connection: LoadingConnection, drawn: Drawn) -> int:
    bound_bytes, rows = drawn
    # The table sizes of the server are estimates, up to a day old, so rows are counted by their keys.
    most = bound_bytes // (len(rows[0][2]) + _ROW_OVERHEAD_BYTES)
    if number(connection, _LAST_KEY) > most:
        connection.execute("SELECT GET_LOCK(CONCAT(DATABASE(), '.bulk'), 30)")
        try:
            # Another session that saw the size and got the lock first has emptied the table.
            if number(connection, _LAST_KEY) > most:
                connection.execute("TRUNCATE TABLE bulk")
        finally:
            connection.execute("SELECT RELEASE_LOCK(CONCAT(DATABASE(), '.bulk'))")
    return connection.insert_many(_BULK_LOAD, rows).rowcount


_SAYINGS: dict[str, SqlOperation[LoadingConnection]] = {
    "log_append": SqlOperation(statement("INSERT INTO log (session, sequence, payload) VALUES ($1, $2, $3)")),
    "log_batch": SqlOperation(
        statement(f"""INSERT INTO log (session, sequence, payload)
            SELECT CAST($1 AS SIGNED), CAST($2 AS SIGNED) + n,
                SUBSTRING(whole.content, n * CAST($4 AS SIGNED) + 1, CAST($4 AS SIGNED))
            FROM {_numbers("$3")} CROSS JOIN (SELECT CAST($5 AS BINARY) AS content) whole""")
    ),
    "data_update": SqlOperation(
        statement("UPDATE data SET version = version + 1, changed = NOW(6) WHERE id = CAST($1 AS SIGNED)")
    ),
    "bulk_load": SqlOperation(_bulk_load, as_rows),
    "point_read": SqlOperation(statement("SELECT version, payload FROM data WHERE id = CAST($1 AS SIGNED)")),
    "range_scan": SqlOperation(
        counting("""SELECT COUNT(*), SUM(version) FROM data
            WHERE id BETWEEN CAST($1 AS SIGNED) AND CAST($2 AS SIGNED)""")
    ),
    # Without LIMIT an inner ORDER BY would be ignored.
    "spill": SqlOperation(
        counting(f"""SELECT COUNT(*), SUM(n) FROM (
            SELECT n, REPEAT(MD5(CAST($1 AS SIGNED) + n), 32) AS content FROM {_numbers("$2")}
            ORDER BY content LIMIT 18446744073709551615) sorted""")
    ),
    "lock_contend": SqlOperation(lock_contend(_HOLD)),
}


def _spill(size_bytes: int) -> tuple[Asked, ...]:
    least = f"LEAST(@@sort_buffer_size, GREATEST(65536, {size_bytes} DIV {_SPILL_FACTOR}))"
    return ((f"SET SESSION sort_buffer_size = {least}", ()),)


_SQL = MixSql(
    make={name: (f"DROP TABLE IF EXISTS {name}", made) for name, made in _TABLES.items()},
    fill_hot=f"INSERT INTO hot SELECT n + 1, 0, NOW(6) FROM {_numbers('$1')}",
    cache_bytes="SELECT @@innodb_buffer_pool_size",
    may_know_cache="",
    data_there="""SELECT MAX(TABLE_COMMENT), MAX(DATA_LENGTH) FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'data'""",
    data_has_key="""SELECT COUNT(*) > 0 FROM information_schema.STATISTICS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'data' AND INDEX_NAME = 'PRIMARY'""",
    data_count="SELECT COUNT(*), MIN(id), MAX(id) FROM data",
    data_last="SELECT MAX(id) FROM data",
    data_fill=f"""INSERT INTO data (id, version, changed, payload, filler)
        SELECT id, 0, NOW(6), {_digests(DATA_PAYLOAD_BYTES, "p")}, {_digests(_FILLER_BYTES, "f")}
        FROM (SELECT CAST($1 AS SIGNED) + n AS id FROM {_numbers("($2 - $1 + 1)")}) made ORDER BY id""",
    fill_fast=(),
    data_key="",
    data_settle="ANALYZE TABLE data",
    data_label="ALTER TABLE data COMMENT = '{label}'",
    spill=_spill,
    sayings=_SAYINGS,
)


def mix_sql(schema: str) -> MixSql:
    """Return the statements. Names are resolved in the current database.

    Args:
        schema: quoted name of the schema.
    """
    del schema
    return _SQL
