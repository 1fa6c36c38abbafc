"""Statements for SQL Server (2016 and later) that every scenario needs.

The statements have not run on a SQL Server yet; tests parse them.
"""

from __future__ import annotations

from .contract import Asked, ServerSql

_OLDEST = 13
"""Major version of SQL Server 2016, the first with DROP TABLE IF EXISTS."""
_AZURE = "SQL Azure"
"""Edition number of Azure SQL, whose version is always 12."""


def _too_old(version: str) -> str:
    if int(version.partition(".")[0]) >= _OLDEST or _AZURE in version:
        return ""
    return f"the server is SQL Server {version}; 2016 ({_OLDEST}.0) or later is needed: upgrade the server"


def _bound(application: str, timeout_s: float) -> tuple[Asked, ...]:
    # the driver does both: APP= for the name, and an attention signal at the time limit
    del application, timeout_s
    return ()


def _isolation(level: str) -> tuple[Asked, ...]:
    return ((f"SET TRANSACTION ISOLATION LEVEL {level}", ()),)


SQL = ServerSql(
    name="sqlserver",
    quotes=("[", "]", "]]"),
    longest_name=128,
    version="""SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) + ' '
        + CAST(SERVERPROPERTY('Edition') AS nvarchar(128))""",
    too_old=_too_old,
    settings="""SELECT name, CAST(value_in_use AS nvarchar(128)) FROM sys.configurations
        WHERE name IN ('max server memory (MB)', 'max degree of parallelism',
            'cost threshold for parallelism', 'user connections', 'recovery interval (min)')
        UNION ALL SELECT 'recovery_model', recovery_model_desc FROM sys.databases WHERE database_id = DB_ID()
        UNION ALL SELECT 'delayed_durability', delayed_durability_desc
        FROM sys.databases WHERE database_id = DB_ID()
        UNION ALL SELECT 'snapshot_isolation', snapshot_isolation_state_desc
        FROM sys.databases WHERE database_id = DB_ID()
        UNION ALL SELECT 'read_committed_snapshot', CAST(is_read_committed_snapshot_on AS nvarchar(1))
        FROM sys.databases WHERE database_id = DB_ID()
        UNION ALL SELECT 'compatibility_level', CAST(compatibility_level AS nvarchar(10))
        FROM sys.databases WHERE database_id = DB_ID()""",
    durable={"delayed_durability": frozenset({"DISABLED", "ALLOWED"})},
    # tempdb compares text as the server does; the database may differ.
    files="""SELECT CASE type WHEN 1 THEN 'log ' ELSE 'data ' END + name COLLATE DATABASE_DEFAULT,
            physical_name COLLATE DATABASE_DEFAULT FROM sys.database_files
        UNION ALL SELECT 'tempdb ' + name COLLATE DATABASE_DEFAULT, physical_name COLLATE DATABASE_DEFAULT
        FROM tempdb.sys.database_files""",
    find="""SELECT (SELECT CAST(p.value AS nvarchar(400)) FROM sys.extended_properties AS p
            WHERE p.class = 3 AND p.major_id = s.schema_id AND p.minor_id = 0 AND p.name = N'pinchpoint'),
        CASE WHEN HAS_PERMS_BY_NAME(QUOTENAME(s.name), 'SCHEMA', 'CONTROL') = 1 THEN 1 ELSE 0 END
        FROM sys.schemas AS s WHERE s.name = $1""",
    may_create="""SELECT CASE WHEN HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'CREATE SCHEMA') = 1
            AND HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'CREATE TABLE') = 1 THEN 1 ELSE 0 END,
        USER_NAME(), DB_NAME()""",
    grant="USE [{database}]; GRANT CREATE SCHEMA, CREATE TABLE TO [{user}]",
    lock="""SET NOCOUNT ON;
        DECLARE @name nvarchar(255) = $1, @got int;
        EXEC @got = sp_getapplock @Resource = @name, @LockMode = 'Exclusive', @LockOwner = 'Session',
            @LockTimeout = 0;
        SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END""",
    unlock="",
    create=(
        "CREATE SCHEMA {schema}",
        """EXEC sp_addextendedproperty @name = N'pinchpoint', @value = N'{marker}', @level0type = N'SCHEMA',
        @level0name = N'{name}'""",
    ),
    enter=(),
    others="SELECT o.name FROM sys.objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id "
    "WHERE s.name = $1 AND o.parent_object_id = 0 "
    "UNION ALL SELECT t.name FROM sys.types AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id "
    "WHERE s.name = $1 "
    "UNION ALL SELECT x.name FROM sys.xml_schema_collections AS x "
    "JOIN sys.schemas AS s ON s.schema_id = x.schema_id WHERE s.name = $1",
    drop_tables="DROP TABLE IF EXISTS {tables}",
    drop=("DROP SCHEMA {schema}",),
    bound=_bound,
    greet=("SET XACT_ABORT ON",),  # a batch is executed completely or not at all
    driver_times_out=True,
    patient=("SET XACT_ABORT ON",),
    isolation={
        "read_committed": _isolation("READ COMMITTED"),
        "repeatable_read": _isolation("REPEATABLE READ"),
        "serializable": _isolation("SERIALIZABLE"),
        "snapshot": _isolation("SNAPSHOT"),
    },
    transactions="SELECT @@TRANCOUNT",
    roll_back="IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION",
    # States 2 and 3 mean being switched off and being switched on.
    snapshot_off="""SELECT CASE WHEN snapshot_isolation_state = 1 THEN 0 ELSE 1 END
        FROM sys.databases WHERE database_id = DB_ID()""",
    snapshot_on="ALTER DATABASE [{database}] SET ALLOW_SNAPSHOT_ISOLATION ON",
    read_only="""SELECT CASE
        WHEN CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')) = 'READ_ONLY'
        THEN 'the database is read-only, as on a secondary replica' ELSE '' END""",
    free="SELECT MIN(available_bytes) FROM sys.dm_os_volume_stats(DB_ID(), 1)",
)
"""The statements of ``ServerSql``."""
