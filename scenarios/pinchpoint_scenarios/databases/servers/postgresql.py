"""Statements for PostgreSQL that every scenario needs: schemas, rights, settings, isolation."""

from __future__ import annotations

import shutil
from pathlib import Path

from .contract import Asked, ServerSql

PIN = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"
"""Setting after which names in internal statements are those of the server itself. Users may have created
functions and operators of the same names in ``public``, or elsewhere in the search path of a role or
database. These would run with the rights of the connection's user."""


def _bound(application: str, timeout_s: float) -> tuple[Asked, ...]:
    timeout_ms = str(max(1, round(timeout_s * 1000)))
    return (
        ("SELECT pg_catalog.set_config('application_name', $1, false)", (application,)),
        ("SELECT pg_catalog.set_config('statement_timeout', $1, false)", (timeout_ms,)),
    )


def _isolation(level: str) -> tuple[Asked, ...]:
    return (("SELECT set_config('default_transaction_isolation', $1, false)", (level,)),)


def _free_bytes(directory: str, started: float, tablespace: str) -> int | None:
    """Return the free bytes at the tables of the database; None if unknown.

    PostgreSQL has no view for this. The server must run on this host, and both the server and the system must
    let the user see its files. Their answers about one file must agree.
    """
    try:
        if abs((Path(directory) / "postmaster.pid").stat().st_mtime - float(started)) >= 1:
            return None  # another host has a folder of the same name
        return shutil.disk_usage(tablespace or directory).free
    except OSError:
        return None  # on another host, or not readable for this user


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
    find="""SELECT obj_description(oid, 'pg_namespace'), pg_has_role(nspowner, 'USAGE')
        FROM pg_namespace WHERE nspname = $1""",
    may_create="""SELECT has_database_privilege(current_database(), 'CREATE'), current_user,
        current_database()""",
    grant='GRANT CREATE ON DATABASE "{database}" TO "{user}"',
    lock="SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1, 0))",
    unlock="SELECT pg_catalog.pg_advisory_unlock_all()",
    pin=(PIN,),
    unpin=("RESET search_path",),
    create=("CREATE SCHEMA {schema}", "COMMENT ON SCHEMA {schema} IS '{marker}'"),
    enter=(("SELECT pg_catalog.set_config('search_path', $1, false)", ("{schema}",)),),
    # The query finds objects of every kind in a schema, including those of extensions, by the server's
    # dependencies.
    others="""SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0)
        FROM pg_depend d JOIN pg_namespace n ON n.oid = d.refobjid
        WHERE d.refclassid = 'pg_namespace'::regclass AND n.nspname = $1::text""",
    drop_tables="DROP TABLE IF EXISTS {tables} RESTRICT",
    drop=("DROP SCHEMA {schema} RESTRICT",),
    depends="2BP01",
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
        "snapshot": _isolation("repeatable read"),  # name of this server for snapshot isolation
    },
    # The statement begins a transaction of its own, which is not counted.
    transactions="""SELECT CASE WHEN pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp()
        THEN 1 ELSE 0 END""",
    roll_back="ROLLBACK",
    read_only="""SELECT CASE WHEN pg_is_in_recovery() THEN 'the server is a standby'
        WHEN current_setting('default_transaction_read_only') = 'on'
        THEN 'default_transaction_read_only is on for this role or database' ELSE '' END""",
    free="""SELECT current_setting('data_directory'),
        extract(epoch FROM (pg_stat_file('postmaster.pid')).modification)::float8,
        (SELECT pg_tablespace_location(dattablespace) FROM pg_database WHERE datname = current_database())""",
    free_bytes=_free_bytes,
)
"""The statements of ``ServerSql``."""
