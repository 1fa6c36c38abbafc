"""Collector kind ``postgres``: waits, locks, files and connections of PostgreSQL 13 to 18.

Views differ between versions. The statements of each version return the same columns, with NULL for missing
figures. I/O by kind of file needs 16 (``pg_stat_io``). Figures of the write-ahead log need 14
(``pg_stat_wal``; in 18 part of ``pg_stat_io``). Checkpoints are not in ``pg_stat_bgwriter`` from 17 on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from pinchpoint_collectors.databases.base import (
    APPLICATION,
    ReadingQuestion,
    Row,
    SamplingCollector,
    ServerKind,
    ServerReading,
)
from pinchpoint_collectors.databases.session_sampler import SessionSample
from pinchpoint_collectors.databases.top_statements import (
    ASKED_LENGTH,
    Counted,
    UncountedError,
    begin,
    counted,
)
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured, Watch
from pinchpoint_collectors.value import Metric, Value, grown, mean, rate, rates

OLDEST, NEWEST = 13, 18
"""Major versions that the statements support. A newer server gets the statements of the newest one."""

# ---- statements: times come in ms there and leave in seconds -------------------------------------------

ABOUT = """SELECT current_setting('server_version') AS version,
    current_setting('server_version_num')::int AS number, current_user AS role,
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all, pg_is_in_recovery() AS standby,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0) AS connections_limit"""
"""Statement for one row about the server. The limit is that of ordinary roles, because some connections are
reserved."""

SETTINGS = """SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
    'autovacuum', 'checkpoint_completion_target', 'checkpoint_timeout', 'commit_delay',
    'data_checksums', 'deadlock_timeout', 'debug_io_direct', 'effective_io_concurrency', 'fsync',
    'full_page_writes', 'huge_pages', 'idle_in_transaction_session_timeout', 'io_method', 'io_workers',
    'max_connections', 'max_parallel_workers', 'max_wal_size', 'shared_buffers',
    'superuser_reserved_connections', 'synchronous_commit', 'track_io_timing', 'track_wal_io_timing',
    'wal_buffers', 'wal_compression', 'wal_level', 'wal_sync_method', 'work_mem') ORDER BY name"""

SESSIONS = f"""SELECT application_name IS NOT DISTINCT FROM '{APPLICATION}' AS ours,
    backend_type IS NULL AS hidden, state, wait_event_type, wait_event, count(*)::int AS sessions
    FROM pg_stat_activity
    WHERE datid IS NOT NULL AND usesysid IS NOT NULL
    AND coalesce(backend_type, 'client backend') = 'client backend'
    GROUP BY 1, 2, 3, 4, 5"""  # noqa: S608 -- a constant
"""Statement for client sessions by activity. Without pg_read_all_stats a role sees only that other sessions
exist."""

_TOTALS = """SELECT extract(epoch FROM pg_postmaster_start_time())::float8 AS started, d.*, w.*, c.*
    FROM ({databases}) d, ({wal}) w, ({checkpoints}) c"""

_WAL_TOTALS = "SELECT wal_records, wal_fpi, wal_bytes::bigint, wal_buffers_full FROM pg_stat_wal"

_WAL_POSITION = """SELECT CASE WHEN pg_is_in_recovery() THEN NULL
    ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END AS wal_bytes"""

_DATABASES = """SELECT sum(xact_commit)::bigint AS commits, sum(xact_rollback)::bigint AS rollbacks,
    sum(deadlocks)::bigint AS deadlocks, sum(blks_hit)::bigint AS buffer_hits,
    sum(blks_read)::bigint AS buffer_misses, sum(temp_bytes)::bigint AS temp_bytes FROM pg_stat_database"""

# A standby has restartpoints. They are counted separately from 17 on, and before as checkpoints.
_CHECKPOINTER = """SELECT num_timed + restartpoints_timed AS checkpoints_timed,
    num_requested + restartpoints_req AS checkpoints_requested,
    write_time / 1000 AS checkpoint_write_s, sync_time / 1000 AS checkpoint_sync_s,
    buffers_written AS checkpoint_buffers FROM pg_stat_checkpointer"""

_BGWRITER = """SELECT checkpoints_timed, checkpoints_req AS checkpoints_requested,
    checkpoint_write_time / 1000 AS checkpoint_write_s, checkpoint_sync_time / 1000 AS checkpoint_sync_s,
    buffers_checkpoint AS checkpoint_buffers FROM pg_stat_bgwriter"""

# Only the context 'normal' of the write-ahead log counts, because the zeros of a new segment ('init') belong
# to no commit.
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

# Before 16 these are blocks that databases read, and blocks that any process wrote, including extensions by
# sessions. Most writes are not timed.
_BLOCKS = f"""SELECT 'data' AS file, {_TIMED} AS timed,
    reads, reads * current_setting('block_size')::bigint AS read_bytes, read_s,
    writes, writes * current_setting('block_size')::bigint AS write_bytes, NULL::float8 AS write_s,
    NULL::bigint AS extends, NULL::float8 AS extend_s, NULL::bigint AS fsyncs, NULL::float8 AS fsync_s
    FROM (SELECT sum(blks_read)::bigint AS reads, sum(blk_read_time) / 1000 AS read_s
        FROM pg_stat_database) d,
    (SELECT buffers_checkpoint + buffers_clean + buffers_backend AS writes
        FROM pg_stat_bgwriter) b"""  # noqa: S608 -- constants


# ---- the statements that the server counts --------------------------------------------------------------

COUNTING = """SELECT current_database() AS db, (SELECT quote_ident(n.nspname) || ' ' || e.extversion
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_stat_statements') AS place"""
"""Statement for schema and version of the extension; NULL if this database lacks it."""

COUNTED = """SELECT s.userid::text || '/' || s.dbid::text || '/' || s.queryid::text AS id,
    s.queryid::text AS statement, d.datname::text AS db, s.calls AS calls,
    s.total_exec_time / 1000 AS time_s, s.rows AS amount, {text} AS text
    FROM {schema}.pg_stat_statements({shown}) s LEFT JOIN pg_database d ON d.oid = s.dbid
    WHERE s.queryid IS NOT NULL{top}"""
_HIDDEN = "<insufficient privilege>"


def counted_statement(place: str, *, texts: bool) -> str:
    """Return the statement that reads the counters of statements.

    Nested statements count in their callers.
    """
    schema, _, version = place.rpartition(" ")
    has_top = tuple(int(part) for part in version.split(".") if part.isdecimal()) >= (1, 9)
    text = f"left(s.query, {ASKED_LENGTH})" if texts else "NULL"
    top = " AND s.toplevel" if has_top else ""
    return COUNTED.format(schema=schema, text=text, shown=str(texts).lower(), top=top)


class CounterStatements(NamedTuple):
    """The statements that read the counters of a version.

    Attributes:
        totals: statement for one row. Its columns are the keys of ``TOTALS``, and ``started``.
        files: statement for a row per kind of file (``data``, ``temp``, ``wal``): ``timed`` (whether times
            are measured at all), and counts, bytes and seconds of ``reads``, ``writes``, ``extends``,
            ``fsyncs``.
    """

    totals: str
    files: str


def statements(number: int) -> CounterStatements:
    """Return the statements for ``server_version_num`` (``180006``).

    Raises ``CollectorError`` for an old version.
    """
    version = major(number)
    totals = _TOTALS.format(
        databases=_DATABASES,
        wal=_WAL_TOTALS if version >= 14 else _WAL_POSITION,
        checkpoints=_CHECKPOINTER if version >= 17 else _BGWRITER,
    )
    return CounterStatements(totals, _files(version))


def _files(version: int) -> str:
    if version >= 18:
        timed = f"CASE object WHEN 'wal' THEN {_WAL_TIMED} ELSE {_TIMED} END"
        return _IO.format(file=_FILE, timed=timed, read_bytes="read_bytes", write_bytes="write_bytes")
    if version >= 16:
        blocks = {"read_bytes": "reads * op_bytes", "write_bytes": "writes * op_bytes"}
        return f"{_IO.format(file=_FILE, timed=_TIMED, **blocks)} UNION ALL {_WAL}"
    return f"{_BLOCKS} UNION ALL {_WAL}" if version >= 14 else _BLOCKS


def major(number: int) -> int:
    """Return the major version whose statements are used. Raises ``CollectorError`` for an old version."""
    version = number // 10_000
    if version < OLDEST:
        raise CollectorError(
            f"the server is PostgreSQL {version}; collector kind 'postgres' knows {OLDEST} to {NEWEST}: "
            "upgrade the server, or leave this collector out"
        )
    return min(version, NEWEST)


# ---- sessions -----------------------------------------------------------------------------------------

_ACTIVE = ("active", "fastpath function call")
"""States of a session that runs a statement. In the second state, drivers read and write large objects."""
_UNTRACKED = "disabled"
"""State of a session with ``track_activities`` off, of which the server does not know whether it works."""


def session_sample(rows: Iterable[Row]) -> SessionSample:
    """Return one sample from the rows of ``SESSIONS``."""
    waiting: Counter[str] = Counter()
    running = idle = connections = hidden = 0
    for row in rows:
        connections += row["sessions"]
        if row["ours"] or row["hidden"] or row["state"] == _UNTRACKED:
            hidden += 0 if row["ours"] else row["sessions"]
            continue
        if row["state"] in _ACTIVE and row["wait_event_type"] is None:
            running += row["sessions"]
        elif row["state"] in _ACTIVE:
            waiting[f"{row['wait_event_type']}:{row['wait_event']}"] += row["sessions"]
        elif (row["state"] or "").startswith("idle in transaction"):
            idle += row["sessions"]
    return SessionSample(waiting, running, idle, connections, hidden)


# ---- counters -----------------------------------------------------------------------------------------

TOTALS = {
    "commits": Metric("db.commits_per_s"),
    "rollbacks": Metric("db.rollbacks_per_s"),
    "deadlocks": Metric("db.deadlocks_per_s"),
    "temp_bytes": Metric("db.temp_bytes_per_s"),
    "wal_records": Metric("db.wal_records_per_s"),
    "wal_fpi": Metric("db.wal_page_images_per_s"),
    "wal_bytes": Metric("db.wal_bytes_per_s"),
    "wal_buffers_full": Metric("db.wal_buffers_full_per_s"),
    "checkpoints_timed": Metric("db.checkpoints_per_s", "timed"),
    "checkpoints_requested": Metric("db.checkpoints_per_s", "requested"),
    "checkpoint_write_s": Metric("db.checkpoint_write_s_per_s"),
    "checkpoint_sync_s": Metric("db.checkpoint_sync_s_per_s"),
    "checkpoint_buffers": Metric("db.checkpoint_buffers_per_s"),
}
"""Column of the totals -> metric for its growth per second."""

_OPERATIONS = ("read", "write", "extend", "fsync")


def totals(before: Row, after: Row, interval_s: float) -> Iterator[Value]:
    """Return the growth of the server-wide counters."""
    yield from rates(TOTALS, before, after, interval_s)
    hits, misses = grown(before, after, "buffer_hits", "buffer_misses")
    wanted = None if hits is None or misses is None else hits + misses
    yield mean("db.buffer_hit_ratio", "", hits, wanted)


def files(before: Iterable[Row], after: Iterable[Row], interval_s: float) -> Iterator[Value]:
    """Return I/O by kind of file: the server's calls to the operating system, and their times.

    Without time measurement, times are null, although the server reports 0.
    """
    earlier = {row["file"]: row for row in before}
    for row in after:
        old = earlier.get(row["file"])
        if old is None:
            continue
        for name in _OPERATIONS:
            yield from _operation(name, old, row, interval_s)
        sizes = {f"{name}_bytes": Metric(f"db.{name}_bytes_per_s", row["file"]) for name in ("read", "write")}
        yield from rates(sizes, old, row, interval_s)


def _operation(name: str, before: Row, after: Row, interval_s: float) -> Iterator[Value]:
    """Return count and time of one kind of operation; empty if the server does not count it for the files."""
    file, count, spent = after["file"], f"{name}s", f"{name}_s"
    if before[count] is None or after[count] is None:
        return
    yield Value(f"db.{count}_per_s", file, rate(before[count], after[count], interval_s))
    if before[spent] is None or after[spent] is None:
        return
    done, took_s = grown(before, after, count, spent)
    # ``timed`` is the setting of the collector's session. A role or a database may have another setting. Its
    # sessions then count operations with a time of 0, which were not timed.
    if done is None or not (before["timed"] and after["timed"]) or (done and not took_s):
        took_s = None
    yield Value(f"db.{name}_s_per_s", file, None if took_s is None else took_s / interval_s)
    yield mean(f"db.{name}_latency_s", file, took_s, done)


def not_measured(number: int) -> Iterator[NotMeasured]:
    """Return the metrics that this version does not report."""
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
        why = f"PostgreSQL {version} counts the writes only"
        yield NotMeasured("db.write_bytes_per_s", "wal", why, remedy)


_UNCOUNTED = (
    ("must be loaded", "pg_stat_statements is not loaded",
     "set shared_preload_libraries = 'pg_stat_statements' and start the server again"),
    ("total_exec_time", "the extension pg_stat_statements is of an older version",
     "run: ALTER EXTENSION pg_stat_statements UPDATE"),
)  # fmt: skip
"""Words of an error -> why statements are not counted, and the remedy."""

# ---- the collector ------------------------------------------------------------------------------------


class PostgresCollector(SamplingCollector):
    """Reads the counters of the server at each reading, and its sessions ten times a second in between."""

    KIND = "postgres"
    SESSIONS = SESSIONS

    def _begin(self) -> None:
        self._about = self._server.ask(ABOUT)[0]
        self._statements = statements(self._about["number"])

    def _questions(self) -> Mapping[str, ReadingQuestion]:
        return {
            "totals": ReadingQuestion(self._statements.totals, lambda rows: rows[0]),
            "files": ReadingQuestion(self._statements.files),
        }

    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        return bool(before["totals"]["started"] == now["totals"]["started"])

    def _session_sample(self, rows: Any) -> SessionSample:
        return session_sample(rows)

    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterator[Value]:
        if before is not None:
            yield from totals(before["totals"], now["totals"], interval_s)
            yield from files(before["files"], now["files"], now.seconds_since(before, "files"))

    def statement_counts(self, *, texts: bool) -> Sequence[Counted]:
        """Return the counters of pg_stat_statements for all databases, without those of the collector."""
        (result,) = self._server.ask(COUNTING)
        if result["place"] is None:
            raise UncountedError(
                f"the extension pg_stat_statements is not in the database {result['db']}",
                "run there: CREATE EXTENSION pg_stat_statements (it needs shared_preload_libraries = "
                "'pg_stat_statements' and a restart)",
            )
        try:
            rows = self._server.ask(counted_statement(result["place"], texts=texts))
        except CollectorError as error:
            for words, why, remedy in _UNCOUNTED:
                if words in str(error):
                    raise UncountedError(why, remedy) from error
            raise
        own = {begin(one) for one in (ABOUT, SESSIONS, COUNTING, COUNTED, *self._statements)}
        rows = [row for row in rows if begin(row["text"] or "") not in own]
        return counted({**row, "text": None if row["text"] == _HIDDEN else row["text"]} for row in rows)

    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        settings = {row["name"]: row["current_setting"] for row in self._server.ask(SETTINGS)}
        about = self._about
        database = {
            "server": "postgresql",
            "version": about["version"],
            "role": about["role"],
            "sees": "all sessions" if about["sees_all"] else f"sessions of role {about['role']} only",
            "standby": about["standby"],
            "connections_limit": about["connections_limit"],
            "settings": settings,
        }
        return database, self._not_measured(settings)

    def _not_measured(self, settings: Mapping[str, str]) -> Iterator[NotMeasured]:
        yield from not_measured(self._about["number"])
        for setting, instances in (("track_io_timing", ("data", "temp")), ("track_wal_io_timing", ("wal",))):
            if settings.get(setting) == "off":
                remedy = f"run: ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()"
                for instance in instances:
                    yield NotMeasured("db.*_s", instance, f"{setting} is off", remedy)
        if not self._about["sees_all"]:
            role = self._about["role"]
            quoted = role.replace('"', '""')
            why = f"what sessions of other roles than {role} do is hidden from it: only its own are counted"
            yield NotMeasured("db.sessions_*", "", why, f'run: GRANT pg_read_all_stats TO "{quoted}"')


class PostgresKind(ServerKind):
    """Collector kind ``postgres`` of farm.yaml: one server or standby, selected by ``address``."""

    name = "postgres"
    product = "PostgreSQL"
    schemes = ("postgresql", "postgres")
    package = "psycopg"
    collector = PostgresCollector
    connection = "PostgresServerConnection"
    counts_files = True

    def _address(self, watch: Watch) -> str | None:
        """Return the address of the server.

        A libpq URL may name the host in its query, or use this machine's socket.
        """
        url = urlsplit(str(watch.options.get("url", "")))
        if (named := super()._address(watch)) or url.scheme not in self.schemes:
            return named
        if given := watch.options.get("address"):
            return str(given)
        query = parse_qs(url.query)
        lines = [query[key][0] for key in ("host", "hostaddr", "service") if key in query]
        return ":".join([*lines[:1], *query.get("port", ())]) if lines else "local socket"
