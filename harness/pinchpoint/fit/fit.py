"""Combines all sources of a production server into one plan."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.base.redact import redacted_text, redacted_word, remember_url
from pinchpoint.fit.figures import Figures, ProductionFigure, plain
from pinchpoint.fit.mix import fitted
from pinchpoint.fit.planfile import database_section, plan_text, store_section
from pinchpoint.fit.production import Production, production
from pinchpoint.fit.rates import LoadCourse, Rate, course
from pinchpoint.fit.snapshots import (
    DATABASE,
    IO,
    STATEMENTS,
    WAL,
    CounterSnapshot,
    changes,
    decoded,
    read_csv,
)
from pinchpoint.fit.stores import record, valkey
from pinchpoint.fit.stores import watched as watched_store
from pinchpoint.fit.stores.fitted import records, span_s
from pinchpoint.fit.stores.record import ProductionStore, StoreActivity
from pinchpoint.fit.stores.valkey import Info, is_info, read_infos
from pinchpoint.imports import open_source
from pinchpoint.imports.places import HostPlaces
from pinchpoint.imports.reading import Gathered, Read, TimeSpan, read_all
from pinchpoint.imports.source import RecordingFile
from pinchpoint.plan.production import DISK_IO_BYTES, DISK_READ_BYTES, DISK_WRITE_BYTES, LOG_WRITE_BYTES
from pinchpoint.store import samples
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint_collectors.imports.record import Settings
from pinchpoint_collectors.record import Sample

# The work of a production store, from the samples of a run or an import.

Series = Mapping[tuple[str, str], Mapping[int, float]]
"""(metric, instance) -> number of the step -> mean of the step, all hosts together."""

_MARKS = {
    "valkey": "db.commands_per_s",
    "cassandra": "db.requests_per_s",
    "mongodb": "db.operations_per_s",
}
"""Family of stores -> the metric that identifies samples of its collector."""
_PRODUCTS = {"valkey": "Valkey or Redis", "cassandra": "Cassandra", "mongodb": "MongoDB"}
_SERIES = """WITH marked AS (SELECT DISTINCT host FROM samples WHERE metric = $1),
    reported AS (SELECT metric, instance, host, value, time_ns / 1e9 - interval_s / 2 AS middle_s FROM samples
        WHERE host IN (SELECT host FROM marked) AND starts_with(metric, 'db.') AND value IS NOT NULL),
    means AS (SELECT metric, instance, host, CAST(floor((middle_s - $2) / $3) AS BIGINT) AS step,
            avg(value) AS mean FROM reported WHERE middle_s >= $2 AND middle_s < $4 GROUP BY ALL)
    SELECT metric, instance, step, sum(mean) FROM means GROUP BY ALL"""


def store(directory: Path) -> ProductionStore:
    """The store that the collectors of a run measured.

    Args:
        directory: a run directory; only the measure phase counts if the run had a load, else all samples.

    Raises:
        InputError: the directory is not a run, or has no samples of a store.
    """
    import duckdb  # noqa: PLC0415 -- a fifth of a second

    run = open_run(directory)
    connection = duckdb.connect()
    samples.show(run.samples, connection)
    there = {name for (name,) in connection.execute("SELECT DISTINCT metric FROM samples").fetchall()}
    families = [family for family, mark in _MARKS.items() if mark in there]
    if len(families) != 1:
        result = " and ".join(_PRODUCTS[family] for family in families) or "none"
        raise InputError(
            f"{directory}: has samples of {result}; needed: those of one store, by a collector of kind "
            f"{', '.join(_MARKS)}"
        )
    (family,) = families
    begin_s, end_s = _window(run, directory)
    step_s = max(1, math.ceil(samples.usual_interval_s(run.samples)))
    rows = connection.execute(_SERIES, [_MARKS[family], begin_s, step_s, end_s]).fetchall()
    series: dict[tuple[str, str], dict[int, float]] = {}
    for metric, instance, step, value in rows:
        series.setdefault((metric, instance), {})[step] = value
    stretches = [
        _stretch(family, series, step, begin_s, step_s)
        for step in sorted(
            {step for (metric, _), its in series.items() if metric == _MARKS[family] for step in its}
        )
    ]
    if not any(stretch.operations for stretch in stretches):
        raise InputError(f"{directory}: the store received no command while it was recorded")
    return _store(family, directory.name, stretches)


def _window(run: StoredRun, directory: Path) -> tuple[float, float]:
    measured = [phase for phase in run.manifest.get("phases") or () if phase["name"] == "measure"]
    if measured and measured[-1]["to"]:
        return seconds_of(measured[0]["from"]), seconds_of(measured[-1]["to"])
    extent = samples.extent(run.samples)
    if extent is None:
        raise InputError(f"{directory}: there is no sample in it")
    return extent


def _stretch(family: str, series: Series, step: int, begin_s: float, step_s: int) -> StoreActivity:
    def added(metric: str, instance: str = "") -> float | None:
        value = series.get((metric, instance), {}).get(step)
        return None if value is None else value * step_s

    began_s = begin_s + step * step_s
    received = added("db.received_bytes_per_s")
    if family == "valkey":
        return StoreActivity(
            began_s,
            began_s + step_s,
            operations=added("db.commands_per_s") or 0.0,
            log_bytes=added("db.aof.bytes_per_s"),
            received_bytes=received,
            server_s=added("db.main_thread.commands_ratio"),
        )
    mark = _MARKS[family]
    if family == "cassandra":
        reads, inserts, writes = added(mark, "read") or 0.0, None, added(mark, "write") or 0.0
    else:
        reads, inserts = added(mark, "query") or 0.0, added(mark, "insert") or 0.0
        writes = inserts + (added(mark, "update") or 0.0)
    return StoreActivity(
        began_s,
        began_s + step_s,
        operations=reads + writes,
        reads=reads,
        writes=writes,
        inserts=inserts,
        log_bytes=added("db.journal.bytes_per_s"),
        received_bytes=received,
    )


def _store(family: str, name: str, stretches: list[StoreActivity]) -> ProductionStore:
    notes = [f"{name}: its samples do not show the number of records and their lifetime"]
    lacking, sizes = [], []
    if family == "valkey":
        lacking.append(
            f"which commands read and which write, the samples of {name} do not show: all are updates here; "
            "two answers to INFO all beside them would show it"
        )
        logged = [stretch for stretch in stretches if stretch.log_bytes is not None]
        if commands := sum(stretch.operations for stretch in logged):
            each = sum(stretch.log_bytes or 0.0 for stretch in logged) / commands
            value = record.payload_of_request(each, record.key(0, 0.0), 0.0, kept=True)
            sizes.append(
                ProductionFigure(
                    value, f"{name}: the append-only file grew {plain(each)} bytes for a command"
                )
            )
    return ProductionStore(
        family=family,
        product=_PRODUCTS[family],
        source=name,
        stretches=stretches,
        sizes=sizes,
        notes=notes,
        lacking=lacking,
    )


# The daily course of a database host's load, from recordings of perfmon, sar and other tools.

_NS = 1e9
_READS, _WRITES, _IOS = "disk.reads_per_s", "disk.writes_per_s", "disk.transfers_per_s"
_READ_BYTES, _WRITE_BYTES = "disk.read_bytes_per_s", "disk.write_bytes_per_s"
_LOG_BYTES, _LOG_FLUSHES = "db.log_bytes_per_s", "db.log_flushes_per_s"
_DISKS = (_READS, _WRITES, _IOS, _READ_BYTES, _WRITE_BYTES)
_SERVER = ("db.batches_per_s", "db.transactions_per_s", _LOG_BYTES, _LOG_FLUSHES)
_ACTIVITIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the server's batches", ("db.batches_per_s",)),
    ("the server's transactions", ("db.transactions_per_s",)),
    ("I/Os", (_READS, _WRITES)),
    ("I/Os", (_IOS,)),
)
"""Metrics that show the activity of the server, best first: requests of clients, then disk I/O."""


@dataclass(frozen=True, slots=True)
class DiskReading:
    """The values of a machine in one interval.

    Attributes:
        ended_s: end of the interval, UTC seconds.
        interval_s: length of the interval in seconds.
        values: metric -> value, all disks together.
    """

    ended_s: float
    interval_s: float
    values: Mapping[str, float]


def recorded(
    paths: Sequence[Path], zone: tzinfo | None, host: str | None, counted: tuple[float, float] | None
) -> LoadCourse:
    """The daily course of one machine's load, from recordings.

    Args:
        paths: the recordings.
        zone: the time zone of times without one, and of the hours in the result; None for UTC.
        host: name of the machine to use; None if the recordings contain only one.
        counted: start and end of the time in which statements were counted, UTC seconds; None if not known.

    Raises:
        InputError: a file is of an unknown kind, is damaged, contains several machines, or contains no disks.
    """
    sources = [open_source(path, None) for path in paths]
    seen: dict[str, Path] = {}
    for source in sources:
        if source.sha256 in seen:
            raise InputError(f"{source.path}: is the same as {seen[source.sha256]}; give each recording once")
        seen[source.sha256] = source.path
    names = ", ".join(path.name for path in paths)
    readings, notes = _readings(sources, zone, host, names)
    for what, metrics in _ACTIVITIES:
        rates = list(_rates(readings, metrics))
        if any(rate.per_s for rate in rates):
            result = course(rates, what, names, zone, counted)
            return replace(result, notes=(*notes, *result.notes), figures=_sizes(readings, names))
    raise InputError(
        f"{names}: no disk did any I/O in it, and no SQL Server had a batch; record the database host's "
        "disks (LogicalDisk of perfmon, sar -d)"
    )


def _readings(
    sources: Sequence[RecordingFile], zone: tzinfo | None, host: str | None, names: str
) -> tuple[list[DiskReading], tuple[str, ...]]:
    totals: dict[tuple[int, float], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    machines: dict[str, None] = {}
    notes: list[str] = []
    for source in sources:
        samples, read = _read(source, None)
        if read.found.zone_assumed and zone is not None:
            samples, read = _read(source, zone)
        machines |= dict.fromkeys(read.machines)
        notes += [f"{source.path.name}: {note}" for note in read.found.notes]
        for sample in samples:
            if sample.value is not None and (host is None or _same(host, sample.host)):
                totals[sample.time_ns, sample.interval_s][sample.metric] += sample.value
    _one_machine(list(machines), host, names)
    readings = [
        DiskReading(time_ns / _NS, interval_s, values)
        for (time_ns, interval_s), values in sorted(totals.items())
    ]
    return readings, tuple(notes)


def _read(source: RecordingFile, zone: tzinfo | None) -> tuple[list[Sample], Read]:
    """The samples of the disks and the database server in a file; ``zone`` overrides the file's time zone."""
    gathered = Gathered()
    samples = [
        sample
        for sample in read_all([source], Settings(zone=zone), _Places(), TimeSpan(), gathered)
        if sample.metric in _DISKS or (sample.metric in _SERVER and not sample.instance)
    ]
    return samples, gathered.reads[0]


class _Places(HostPlaces):
    """Names the machine ``production`` in files that name no machine."""

    def host_of(self, machine: str, hosts: Iterable[str] = ()) -> str:
        del hosts
        return machine or "production"


def _same(wanted: str, machine: str) -> bool:
    return wanted.casefold() in (machine.casefold(), machine.casefold().partition(".")[0])


def _one_machine(machines: Sequence[str], host: str | None, names: str) -> None:
    listed = ", ".join(machines)
    if host is None and len(machines) > 1:
        raise InputError(f"{names}: of several machines ({listed}); choose one: --host {machines[0]}")
    if host is not None and not any(_same(host, machine) for machine in machines):
        raise InputError(f"--host {host}: no recording contains that machine; found: {listed}")


def _rates(readings: Sequence[DiskReading], metrics: tuple[str, ...]) -> Iterable[Rate]:
    """The sum of several metrics, for readings that contain all of them."""
    for reading in readings:
        if all(metric in reading.values for metric in metrics):
            per_s = sum(reading.values[metric] for metric in metrics)
            yield Rate(reading.ended_s, reading.interval_s, per_s)


def _sizes(readings: Sequence[DiskReading], names: str) -> Figures:
    """Mean sizes of I/Os; of reads and writes together if the recording does not separate them (sar)."""
    figures: Figures = {}
    for figure, counts, sizes, origin in (
        (DISK_READ_BYTES, (_READS,), (_READ_BYTES,), "bytes read ÷ reads, all disks"),
        (DISK_WRITE_BYTES, (_WRITES,), (_WRITE_BYTES,), "bytes written ÷ writes, all disks"),
        (DISK_IO_BYTES, (_IOS,), (_READ_BYTES, _WRITE_BYTES), "bytes ÷ I/Os, all disks"),
        (LOG_WRITE_BYTES, (_LOG_FLUSHES,), (_LOG_BYTES,), "log bytes ÷ log flushes"),
    ):
        both = [reading for reading in readings if {*counts, *sizes} <= reading.values.keys()]
        count, total = (_total(both, metrics) for metrics in (counts, sizes))
        if count and total:
            figures[figure] = ProductionFigure(total / count, f"{names}: {origin}")
    if DISK_READ_BYTES in figures or DISK_WRITE_BYTES in figures:
        figures.pop(DISK_IO_BYTES, None)  # the separate sizes of reads and writes are more precise
    return figures


def _total(readings: Sequence[DiskReading], metrics: tuple[str, ...]) -> float:
    return sum(reading.values[metric] * reading.interval_s for reading in readings for metric in metrics)


# Takes two snapshots of a PostgreSQL server's statistics.

SCHEMES = ("postgresql://", "postgres://")
_CONNECT_S = 5
_IO_SINCE = 160_000
_WAL_SINCE = 140_000
_EXTENSION = (
    "pg_stat_statements is not installed; needed: shared_preload_libraries = 'pg_stat_statements', a restart "
    "and CREATE EXTENSION pg_stat_statements in that database"
)
_PLACE = """SELECT pg_catalog.quote_ident(nspname) FROM pg_extension
    JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_stat_statements'"""
"""Finds the schema of the extension, because another schema may contain a view of the same name."""
_EMPTY = "pg_stat_statements is empty; set pg_stat_statements.track = top (or all)"


def is_server(source: str) -> bool:
    """Whether a source is the URL of a PostgreSQL server, not a file."""
    return source.startswith(SCHEMES)


def watched(url: str, over_s: float, say: Callable[[str], None]) -> list[CounterSnapshot]:
    """Snapshots of a server's tables before and after ``over_s`` seconds; only reads.

    Raises:
        FarmUnavailable: the server cannot be reached, or refuses the user.
        InputError: the server has no statistics of statements, or the statistics are empty.
    """
    shown = redacted_text(url)
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:  # the error's text quotes parts of the url
        raise InputError(
            f"--from: {shown}: the url cannot be read; in a password write %25 for '%', %2F for '/', "
            "%40 for '@'"
        ) from error
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_S) as connection:
            before = _snapshots(connection, shown)
            say(f"watching {shown} for {over_s:.0f} s")
            time.sleep(over_s)
            return before + _snapshots(connection, shown)
    except psycopg.errors.UndefinedTable as error:
        raise InputError(f"{shown}: {_EXTENSION}") from error
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        raise InputError(f"{shown}: {_EXTENSION}") from error
    except psycopg.Error as error:
        answer = (error.diag.message_primary or str(error)).strip().partition("\n")[0]
        raise FarmUnavailable(
            f"{shown}: {redacted_text(answer)}; correct the url, or export CSV files"
        ) from error


@contextmanager
def _read_only(connection: psycopg.Connection[tuple[object, ...]]) -> Iterator[None]:
    """A read-only transaction in which names without a schema are the server's own.

    The settings end with the transaction, because a pooler may give the session to other clients.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        yield


def _snapshots(connection: psycopg.Connection[tuple[object, ...]], source: str) -> list[CounterSnapshot]:
    version = connection.info.server_version
    with _read_only(connection):
        place = connection.execute(_PLACE).fetchone()
    if place is None:
        raise InputError(f"{source}: {_EXTENSION}")
    kinds = [STATEMENTS, DATABASE]
    kinds += [kind for kind, since in ((WAL, _WAL_SINCE), (IO, _IO_SINCE)) if version >= since]
    snapshots = []
    for kind in kinds:
        export = kind.export.replace("FROM pg_stat_statements", f"FROM {place[0]}.pg_stat_statements")
        with _read_only(connection), connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(export.encode()).fetchall()
        # if statements were tracked, our own would be in the table
        if kind is STATEMENTS and not rows:
            raise InputError(f"{source}: {_EMPTY}")
        texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
        snapshots.append(CounterSnapshot(kind, source, texts))
    return snapshots


_NEEDED = (
    "needed: two CSV exports of pg_stat_statements, one of the Query Store, postgresql://USER@HOST/DATABASE; "
    "two of INFO all, a run directory with samples of a store, valkey://HOST or mongodb://HOST"
)
_STATISTICS = (
    "  statistics: a CSV export, with its header, of pg_stat_statements, pg_stat_database, pg_stat_wal, "
    "pg_stat_io, dm_io_virtual_file_stats, dm_os_wait_stats, the Query Store; what INFO all prints"
)
_FEWEST_INTERVALS = 3
"""Fewest intervals of the Query Store that show a daily course."""
_SNIFFED = 2**20


@dataclass(slots=True)
class Sources:
    """The given sources by kind.

    Attributes:
        snapshots: tables of a database server.
        infos: INFO outputs of a Valkey or Redis server.
        stores: stores that were watched or recorded.
        recordings: recordings of perfmon, sar and other tools.
    """

    snapshots: list[CounterSnapshot] = field(default_factory=list)
    infos: list[Info] = field(default_factory=list)
    stores: list[ProductionStore] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)

    def all_stores(self) -> list[ProductionStore]:
        """All stores; the INFO outputs together form one. Raises InputError."""
        stores = list(self.stores)
        if self.infos:
            stores.append(valkey.store(self.infos))
        return stores


def fit(
    sources: Sequence[str],
    over_s: float,
    say: Callable[[str], None],
    zone: tzinfo | None = None,
    host: str | None = None,
    day_s: float | None = None,
) -> str:
    """The text of a plan.yaml that loads a farm like production.

    Args:
        sources: exports of statistics, URLs of servers, run directories, and recordings of sar or perfmon.
        over_s: seconds for which a server is watched.
        say: receives sentences about progress.
        zone: the time zone of times without one, and of the hours in the result; None for UTC.
        host: name of the machine whose recordings are used; None if there is only one.
        day_s: seconds into which the whole day is compressed; None to use the busiest hour.

    Raises:
        InputError: a source cannot be used; the message names the source and the remedy.
        FarmUnavailable: a server cannot be reached.
    """
    for source in sources:
        remember_url(source)
    given = _sorted(sources, over_s, say)
    stores = given.all_stores()
    if not given.snapshots and not stores:
        shown = ", ".join(redacted_text(source) for source in sources)
        raise InputError(f"--from: {shown}: none has statistics of statements or records; {_NEEDED}")
    result = production(changes(given.snapshots)) if given.snapshots else None
    counted = (result.began_s, result.ended_s) if result else span_s(stores)
    day = recorded(given.recordings, zone, host, counted) if given.recordings else None
    if result is None:
        return plan_text([store_section(records(stores, zone, day, day_s))])
    of_records = records(stores, zone, day_s=day_s) if stores else None
    if day is None:
        day = _of_the_query_store(result, zone)
    elif of_records is not None:
        of_records.notes.append(f"{day.source} is used for the database, not for the store")
    if day_s is not None:
        day = _whole(day, result.sources, day_s)
    for name, figure in (day.figures if day else {}).items():
        result.collected.take(name, figure, "the server counted it itself, at the time of the statements")
    of_database = database_section(result, fitted(result), day)
    return plan_text([of_database, store_section(of_records)] if of_records else [of_database])


def _whole(day: LoadCourse | None, sources: str, day_s: float) -> LoadCourse:
    if day is None:
        raise InputError(
            f"--day: {sources} do not show the load over the day; give a recording of it (perfmon, sadf)"
        )
    return day.as_burst_day(day_s)


def _of_the_query_store(value: Production, zone: tzinfo | None) -> LoadCourse | None:
    """The daily course from the Query Store's intervals, relative to the mean of all of them."""
    if len(value.course) < _FEWEST_INTERVALS:
        return None
    return course(value.course, "statements executed", value.sources, zone, (value.began_s, value.ended_s))


def _sorted(sources: Sequence[str], over_s: float, say: Callable[[str], None]) -> Sources:
    given = Sources()
    for source in sources:
        path = Path(source)
        if is_server(source):
            given.snapshots += watched(source, over_s, say)
        elif watched_store.is_store(source):
            given.stores.append(watched_store.watched(source, over_s, say))
        elif "://" in source:
            raise InputError(
                f"--from: {redacted_text(source)}: no server of that kind can be watched; allowed: "
                f"postgresql, {', '.join(watched_store.SCHEMES)}; of others give exports"
            )
        elif "@" in source and not path.exists():  # a mistyped URL may contain a password, so it is masked
            raise InputError(
                f"--from: {redacted_word(source)}: there is no such file, and it is no URL; {_NEEDED}"
            )
        elif path.is_dir():
            given.stores.append(store(path))
        else:
            _file(path, given)
    return given


def _file(path: Path, given: Sources) -> None:
    """Read a file and add it to the sources of its kind."""
    head = _text(path, _SNIFFED)
    if is_info(head):
        given.infos += read_infos(_text(path), path)
    elif (snapshot := read_csv(path)) is not None:
        given.snapshots.append(snapshot)
    else:
        try:
            open_source(path, None)
        except InputError as error:
            raise InputError(f"{error}\n{_STATISTICS}") from error
        given.recordings.append(path)


def _text(path: Path, most_bytes: int = -1) -> str:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is no plain file; write what comes out of it into one")
        with path.open("rb") as file:
            content = file.read(most_bytes)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    return decoded(content)
