"""PostgreSQL, as far as no scenario's tables are concerned: schemas, rights, settings, isolation."""

from __future__ import annotations

from ...postgresql import PIN, UNPIN
from .contract import Asked, ServerSql


def _bound(application: str, timeout_s: float) -> tuple[Asked, ...]:
    timeout_ms = str(max(1, round(timeout_s * 1000)))
    return (
        ("SELECT pg_catalog.set_config('application_name', $1, false)", (application,)),
        ("SELECT pg_catalog.set_config('statement_timeout', $1, false)", (timeout_ms,)),
    )


def _isolation(level: str) -> tuple[str, ...]:
    return (f"SELECT set_config('default_transaction_isolation', '{level}', false)",)


SQL = ServerSql(
    name="postgresql",
    quotes=('"', '"', '""'),
    longest_name=63,
    version="SELECT current_setting('server_version')",
    settings="""SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
        'shared_buffers', 'synchronous_commit', 'fsync', 'full_page_writes', 'max_connections',
        'max_wal_size', 'checkpoint_timeout', 'track_io_timing', 'wal_level', 'data_checksums')""",
    durable={
        "fsync": frozenset({"on"}),
        "synchronous_commit": frozenset({"on", "remote_apply", "remote_write", "local"}),
    },
    files="""SELECT 'data', setting FROM pg_settings WHERE name = 'data_directory' AND setting IS NOT NULL
        UNION ALL
        SELECT 'tablespace ' || spcname, pg_tablespace_location(oid) FROM pg_tablespace
        WHERE pg_tablespace_location(oid) <> ''""",
    find="""SELECT obj_description(oid, 'pg_namespace'),
            CASE WHEN pg_has_role(nspowner, 'USAGE') THEN 1 ELSE 0 END
        FROM pg_namespace WHERE nspname = $1::text""",
    may_create="""SELECT CASE WHEN has_database_privilege(current_database(), 'CREATE') THEN 1 ELSE 0 END,
        current_user::text, current_database()::text""",
    grant='GRANT CREATE ON DATABASE "{database}" TO "{user}"',
    lock="""SELECT CASE WHEN pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1::text, 0))
        THEN 1 ELSE 0 END""",
    unlock="SELECT pg_catalog.pg_advisory_unlock_all()",
    pin=(PIN,),
    unpin=(UNPIN,),
    create=("CREATE SCHEMA {schema}", "COMMENT ON SCHEMA {schema} IS '{marker}'"),
    enter=("SELECT pg_catalog.set_config('search_path', '{schema}', false)",),
    # Of every kind that lies in a schema, those of extensions included: the server keeps their dependencies.
    others="""SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0)
        FROM pg_depend d JOIN pg_namespace n ON n.oid = d.refobjid
        WHERE d.refclassid = 'pg_namespace'::regclass AND n.nspname = $1::text""",
    drop_table="DROP TABLE IF EXISTS {table} RESTRICT",
    drop=("DROP SCHEMA {schema} RESTRICT",),
    bound=_bound,
    greet=(),
    driver_times_out=False,
    patient=(
        """SELECT set_config(name, '0', false) FROM pg_settings
        WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_session_timeout')""",
    ),
    isolation={
        "read_committed": _isolation("read committed"),
        "repeatable_read": _isolation("repeatable read"),
        "serializable": _isolation("serializable"),
        "snapshot": _isolation("repeatable read"),  # which is what snapshot isolation is called here
    },
    # A transaction of this statement's own begins with it.
    transactions="""SELECT CASE WHEN pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp()
        THEN 1 ELSE 0 END""",
    roll_back="ROLLBACK",
)
"""The statements of ``ServerSql``."""
