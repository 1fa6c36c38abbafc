"""What PostgreSQL is asked, by version: every version answers with the same columns, NULL where it cannot.

Pure text. The views moved: I/O by kind of file came with 16 (``pg_stat_io``), write-ahead log figures with 14
(``pg_stat_wal``) and went over to ``pg_stat_io`` in 18, checkpoints left ``pg_stat_bgwriter`` in 17.
Times come in ms there and leave in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured

OLDEST, NEWEST = 13, 18
"""Major versions these statements were written for; a newer one is asked as the newest."""

APPLICATION = "pinchpoint-collector"
"""``application_name`` of our connections: they are left out of what is counted, but for the connections."""

ABOUT = """SELECT current_setting('server_version') AS version,
    current_setting('server_version_num')::int AS number, current_user AS role,
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all, pg_is_in_recovery() AS standby,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0) AS connections_limit"""
"""One row about the server. The limit is that of ordinary roles: some connections are kept for others."""

SETTINGS = """SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
    'autovacuum', 'checkpoint_completion_target', 'checkpoint_timeout', 'commit_delay',
    'data_checksums', 'deadlock_timeout', 'debug_io_direct', 'effective_io_concurrency', 'fsync',
    'full_page_writes', 'huge_pages', 'idle_in_transaction_session_timeout', 'io_method', 'io_workers',
    'max_connections', 'max_parallel_workers', 'max_wal_size', 'shared_buffers',
    'superuser_reserved_connections', 'synchronous_commit', 'track_io_timing', 'track_wal_io_timing',
    'wal_buffers', 'wal_compression', 'wal_level', 'wal_sync_method', 'work_mem') ORDER BY name"""

ACTIVITY = f"""SELECT application_name IS NOT DISTINCT FROM '{APPLICATION}' AS ours,
    backend_type IS NULL AS hidden, state, wait_event_type, wait_event, count(*)::int AS sessions
    FROM pg_stat_activity
    WHERE datid IS NOT NULL AND usesysid IS NOT NULL
    AND coalesce(backend_type, 'client backend') = 'client backend'
    GROUP BY 1, 2, 3, 4, 5"""  # noqa: S608 -- a constant of ours, nobody's input
"""Client sessions by what they do now. Without pg_read_all_stats a role sees of others' only that
they are there."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The statements that read a server's counters.

    Attributes:
        totals: one row; its columns are keys of ``postgres_values.TOTALS``, and ``started``.
        files: a row per kind of file (``data``, ``temp``, ``wal``): ``timed`` (whether times are measured at
            all), counts, bytes and seconds of ``reads``, ``writes``, ``extends``, ``fsyncs``.
    """

    totals: str
    files: str


def counters(number: int) -> Counters:
    """The statements for ``server_version_num`` (``180006``). Raises ``CollectorError`` for one too old."""
    version = major(number)
    return Counters(
        totals=_TOTALS.format(
            databases=_DATABASES,
            wal=_WAL_TOTALS if version >= 14 else _WAL_POSITION,
            checkpoints=_CHECKPOINTER if version >= 17 else _BGWRITER,
        ),
        files=_files(version),
    )


def major(number: int) -> int:
    """The major version whose statements fit. Raises ``CollectorError`` for one that is too old."""
    version = number // 10_000
    if version < OLDEST:
        raise CollectorError(
            f"the server is PostgreSQL {version}; collector kind 'postgres' knows {OLDEST} to {NEWEST}: "
            "upgrade the server, or leave this collector out"
        )
    return min(version, NEWEST)


def not_measured(number: int) -> Iterator[NotMeasured]:
    """What this version has no figures for at all."""
    version = major(number)
    remedy = "upgrade the server where this matters"
    if version < 16:
        why = f"PostgreSQL {version} has no pg_stat_io, which came with 16"
        for metric in ("db.write_latency_s", "db.write_s_per_s", "db.fsync*", "db.extend*"):
            yield NotMeasured(metric, "data", why, remedy)
        yield NotMeasured("db.*", "temp", why, remedy)
    if version < 14:
        why = f"PostgreSQL {version} has no pg_stat_wal, which came with 14"
        for metric in ("db.write*", "db.fsync*"):
            yield NotMeasured(metric, "wal", why, remedy)
        for metric in ("db.wal_records_per_s", "db.wal_page_images_per_s", "db.wal_buffers_full_per_s"):
            yield NotMeasured(metric, "", why, remedy)
    elif version < 18:
        yield NotMeasured(
            "db.write_bytes_per_s", "wal", f"PostgreSQL {version} counts the writes only", remedy
        )


_TOTALS = """SELECT extract(epoch FROM pg_postmaster_start_time())::float8 AS started, d.*, w.*, c.*
    FROM ({databases}) d, ({wal}) w, ({checkpoints}) c"""

_WAL_TOTALS = "SELECT wal_records, wal_fpi, wal_bytes::bigint, wal_buffers_full FROM pg_stat_wal"

_WAL_POSITION = """SELECT CASE WHEN pg_is_in_recovery() THEN NULL
    ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END AS wal_bytes"""

_DATABASES = """SELECT sum(xact_commit)::bigint AS commits, sum(xact_rollback)::bigint AS rollbacks,
    sum(deadlocks)::bigint AS deadlocks, sum(blks_hit)::bigint AS buffer_hits,
    sum(blks_read)::bigint AS buffer_misses, sum(temp_bytes)::bigint AS temp_bytes FROM pg_stat_database"""

# A standby's are restartpoints: counted apart from 17 on, among the checkpoints before.
_CHECKPOINTER = """SELECT num_timed + restartpoints_timed AS checkpoints_timed,
    num_requested + restartpoints_req AS checkpoints_requested,
    write_time / 1000 AS checkpoint_write_s, sync_time / 1000 AS checkpoint_sync_s,
    buffers_written AS checkpoint_buffers FROM pg_stat_checkpointer"""

_BGWRITER = """SELECT checkpoints_timed, checkpoints_req AS checkpoints_requested,
    checkpoint_write_time / 1000 AS checkpoint_write_s, checkpoint_sync_time / 1000 AS checkpoint_sync_s,
    buffers_checkpoint AS checkpoint_buffers FROM pg_stat_bgwriter"""

# Of the write-ahead log only context 'normal': the zeros of a new segment ('init') are nobody's commit.
_IO = """SELECT {file} AS file, {timed} AS timed,
    sum(reads)::bigint AS reads, sum({read_bytes})::bigint AS read_bytes, sum(read_time) / 1000 AS read_s,
    sum(writes)::bigint AS writes, sum({write_bytes})::bigint AS write_bytes,
    sum(write_time) / 1000 AS write_s,
    sum(extends)::bigint AS extends, sum(extend_time) / 1000 AS extend_s,
    sum(fsyncs)::bigint AS fsyncs, sum(fsync_time) / 1000 AS fsync_s
    FROM pg_stat_io WHERE object <> 'wal' OR context = 'normal' GROUP BY object"""

_FILE = "CASE object WHEN 'wal' THEN 'wal' WHEN 'temp relation' THEN 'temp' ELSE 'data' END"
_TIMED = "current_setting('track_io_timing') = 'on'"
_WAL_TIMED = "current_setting('track_wal_io_timing') = 'on'"

_WAL = f"""SELECT 'wal', {_WAL_TIMED}, NULL::bigint, NULL::bigint, NULL::float8,
    wal_write, NULL::bigint, wal_write_time / 1000, NULL::bigint, NULL::float8,
    wal_sync, wal_sync_time / 1000 FROM pg_stat_wal"""  # noqa: S608 -- a constant of ours

# Before 16: blocks read by the databases, blocks written by whoever had to write them. Extensions by sessions
# are among the latter, and most writes have no time.
_BLOCKS = f"""SELECT 'data' AS file, {_TIMED} AS timed,
    reads, reads * current_setting('block_size')::bigint AS read_bytes, read_s,
    writes, writes * current_setting('block_size')::bigint AS write_bytes, NULL::float8 AS write_s,
    NULL::bigint AS extends, NULL::float8 AS extend_s, NULL::bigint AS fsyncs, NULL::float8 AS fsync_s
    FROM (SELECT sum(blks_read)::bigint AS reads, sum(blk_read_time) / 1000 AS read_s
        FROM pg_stat_database) d,
    (SELECT buffers_checkpoint + buffers_clean + buffers_backend AS writes
        FROM pg_stat_bgwriter) b"""  # noqa: S608 -- constants of ours


def _files(version: int) -> str:
    if version >= 18:
        timed = f"CASE object WHEN 'wal' THEN {_WAL_TIMED} ELSE {_TIMED} END"
        return _IO.format(file=_FILE, timed=timed, read_bytes="read_bytes", write_bytes="write_bytes")
    if version >= 16:
        blocks = {"read_bytes": "reads * op_bytes", "write_bytes": "writes * op_bytes"}
        return f"{_IO.format(file=_FILE, timed=_TIMED, **blocks)} UNION ALL {_WAL}"
    return f"{_BLOCKS} UNION ALL {_WAL}" if version >= 14 else _BLOCKS
