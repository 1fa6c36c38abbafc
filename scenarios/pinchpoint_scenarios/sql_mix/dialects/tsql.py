"""Statements of sql-mix for SQL Server (2016 and later). No server has run them yet; tests parse them."""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from ...databases.contract import LoadingConnection, SqlConnection
from ..operations import BULK, DATA, DATA_PAYLOAD_BYTES, HOT, LOG, Drawn
from .contract import MixSql, SqlOperation, as_rows, counting, keep_below, number, statement

_PAGE_BYTES = 8192
_DIGITS = f"(VALUES {', '.join(f'({digit})' for digit in range(16))})"
_LENGTH = 8  # sixteen to the power of this number


def _numbers(count: str) -> str:
    """Return SQL for ``numbers.n`` from 0 to a limit. The server stops multiplying at the limit."""
    digits = " CROSS JOIN ".join(f"{_DIGITS} AS d{place}(digit)" for place in range(_LENGTH))
    return f"""(SELECT TOP (CAST({count} AS int)) ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) - 1 AS n
        FROM {digits}) AS numbers"""


def _tables(schema: str) -> dict[str, str]:
    return {
        LOG: f"""CREATE TABLE {schema}.log (
            id bigint IDENTITY PRIMARY KEY, session int NOT NULL, sequence int NOT NULL,
            at datetime2 NOT NULL DEFAULT SYSUTCDATETIME(), payload varbinary(max) NOT NULL)""",
        # A heap, so that loaded rows are appended. BULK and LOAD are keywords here.
        BULK: f"""CREATE TABLE {schema}.[bulk] (
            session int NOT NULL, [load] int NOT NULL, payload varbinary(max) NOT NULL)""",
        HOT: f"""CREATE TABLE {schema}.hot (
            id int PRIMARY KEY, version bigint NOT NULL, changed datetime2 NOT NULL)""",
        DATA: f"""CREATE TABLE {schema}.data (
            id bigint NOT NULL, version int NOT NULL, changed datetime2 NOT NULL,
            payload binary({DATA_PAYLOAD_BYTES}) NOT NULL)""",
    }


def _lock_contend(hold: str, connection: SqlConnection, drawn: Drawn) -> int:
    *rows, hold_s = drawn
    with connection.transaction():
        return sum(number(connection, hold, (row, hold_s)) for row in rows)


def _as_delay(drawn: Drawn) -> Drawn:
    """Return the pause in the form of WAITFOR: ``hh:mm:ss.mmm``."""
    *rows, hold_s = drawn
    seconds, milliseconds = divmod(round(hold_s * 1000), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (*rows, f"{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}")


def _sayings(schema: str) -> dict[str, SqlOperation[LoadingConnection]]:
    # The row is locked, then the server waits for the think time of the application, and the client commits.
    hold = f"""SET NOCOUNT ON;
        DECLARE @rows int, @hold varchar(16) = $2;
        UPDATE {schema}.hot WITH (ROWLOCK) SET version = version + 1, changed = SYSUTCDATETIME()
        WHERE id = $1;
        SET @rows = @@ROWCOUNT;
        WAITFOR DELAY @hold;
        SELECT @rows"""
    size = f"""SELECT COALESCE(SUM(a.total_pages), 0) * {_PAGE_BYTES} FROM sys.partitions AS p
        JOIN sys.allocation_units AS a ON a.container_id = p.partition_id OR a.container_id = p.hobt_id
        WHERE p.object_id = OBJECT_ID('{schema.replace("'", "''")}.[bulk]')"""
    bulk_load = f"INSERT INTO {schema}.[bulk] (session, [load], payload) VALUES ($1, $2, $3)"

    # One row is read, because SQL Server takes no lock on a table that the plan does not read.
    lock = f"SELECT TOP (1) 1 FROM {schema}.[bulk] WITH (TABLOCKX, HOLDLOCK)"

    def load(connection: LoadingConnection, drawn: Drawn) -> int:
        bound_bytes, rows = drawn
        keep_below(connection, bound_bytes, size, lock, f"TRUNCATE TABLE {schema}.[bulk]")
        return connection.insert_many(bulk_load, rows).rowcount

    return {
        "log_append": SqlOperation(
            statement(f"INSERT INTO {schema}.log (session, sequence, payload) VALUES ($1, $2, $3)")
        ),
        "log_batch": SqlOperation(
            statement(f"""INSERT INTO {schema}.log (session, sequence, payload)
                SELECT CAST($1 AS int), CAST($2 AS int) + n,
                    SUBSTRING(whole.content, n * CAST($4 AS int) + 1, CAST($4 AS int))
                FROM {_numbers("$3")} CROSS JOIN (SELECT CAST($5 AS varbinary(max)) AS content) AS whole""")
        ),
        "data_update": SqlOperation(
            statement(f"""UPDATE {schema}.data WITH (ROWLOCK)
                SET version = version + 1, changed = SYSUTCDATETIME() WHERE id = $1""")
        ),
        "bulk_load": SqlOperation(load, as_rows),
        "point_read": SqlOperation(statement(f"SELECT version, payload FROM {schema}.data WHERE id = $1")),
        "range_scan": SqlOperation(
            counting(f"""SELECT COUNT_BIG(*), SUM(CAST(version AS bigint)) FROM {schema}.data
                WHERE id BETWEEN $1 AND $2""")
        ),
        # Without TOP an inner ORDER BY is invalid SQL. With the smallest memory grant it sorts in tempdb.
        "spill": SqlOperation(
            counting(f"""SELECT COUNT_BIG(*), CHECKSUM_AGG(CHECKSUM(content)) FROM (
                SELECT TOP (CAST($2 AS int)) n, REPLICATE(CONVERT(varchar(64), HASHBYTES('SHA2_256',
                    CAST(CAST($1 AS bigint) + n AS varchar(20))), 2), 16) AS content
                FROM {_numbers("$2")} ORDER BY content) AS sorted
                OPTION (MAX_GRANT_PERCENT = 0, MAXDOP 1)""")
        ),
        "lock_contend": SqlOperation(
            lambda connection, drawn: _lock_contend(hold, connection, drawn), _as_delay
        ),
    }


def mix_sql(schema: str) -> MixSql:
    """Return the statements. Every name is qualified, because a session has no schema of its own here.

    Args:
        schema: quoted name of the schema.
    """
    label = "@name = N'pinchpoint', @value = N'{label}', @level0type = N'SCHEMA', @level0name = N'"
    name = schema[1:-1].replace("]]", "]").replace("'", "''")
    on_table = f"{label}{name}', @level1type = N'TABLE', @level1name = N'data'"
    where = f"OBJECT_ID('{schema.replace(chr(39), chr(39) * 2)}.data')"
    return MixSql(
        make={
            table: (f"DROP TABLE IF EXISTS {schema}.[{table}]", made)
            for table, made in _tables(schema).items()
        },
        fill_hot=f"INSERT INTO {schema}.hot SELECT n + 1, 0, SYSUTCDATETIME() FROM {_numbers('$1')}",
        cache_bytes="SELECT committed_target_kb * CAST(1024 AS bigint) FROM sys.dm_os_sys_info",
        may_know_cache="GRANT VIEW SERVER STATE TO the user (of Azure SQL: VIEW DATABASE STATE)",
        data_there=f"""SELECT (SELECT CAST(e.value AS nvarchar(400)) FROM sys.extended_properties AS e
                WHERE e.class = 1 AND e.major_id = {where} AND e.minor_id = 0 AND e.name = N'pinchpoint'),
            (SELECT SUM(a.total_pages) * CAST({_PAGE_BYTES} AS bigint) FROM sys.partitions AS p
                JOIN sys.allocation_units AS a ON a.container_id = p.partition_id
                WHERE p.object_id = {where})""",
        data_has_key=f"""SELECT COUNT(*) FROM sys.indexes AS i
            WHERE i.object_id = {where} AND i.is_primary_key = 1""",
        data_count=f"SELECT COUNT_BIG(*), MIN(id), MAX(id) FROM {schema}.data",
        data_last=f"SELECT MAX(id) FROM {schema}.data",
        data_fill=f"""INSERT INTO {schema}.data (id, version, changed, payload)
            SELECT CAST($1 AS bigint) + n, 0, SYSUTCDATETIME(), CRYPT_GEN_RANDOM({DATA_PAYLOAD_BYTES})
            FROM {_numbers("(CAST($2 AS bigint) - CAST($1 AS bigint) + 1)")}""",
        fill_fast=(),
        # Half of each page stays free: four rows per page, as on all servers.
        data_key=f"""ALTER TABLE {schema}.data ADD CONSTRAINT data_pkey PRIMARY KEY CLUSTERED (id)
            WITH (FILLFACTOR = 50)""",
        data_settle=f"UPDATE STATISTICS {schema}.data",
        data_label=f"EXEC sp_addextendedproperty {on_table}",
        spill=lambda _: (),
        sayings=_sayings(schema),
    )
