"""Combines all sources of a production server into one plan."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.base.redact import redacted_text, redacted_word, remember_url
from pinchpoint.fit.live import is_server, watched
from pinchpoint.fit.mix import fitted
from pinchpoint.fit.planfile import database_section, plan_text, store_section
from pinchpoint.fit.production import Production, production
from pinchpoint.fit.rates import LoadCourse, course
from pinchpoint.fit.recording import recorded
from pinchpoint.fit.snapshots import Snapshot, changes, read_csv
from pinchpoint.fit.stores import live as live_store
from pinchpoint.fit.stores import recorded as recorded_store
from pinchpoint.fit.stores import valkey
from pinchpoint.fit.stores.fitted import records, span_s
from pinchpoint.fit.stores.record import ProductionStore
from pinchpoint.fit.stores.valkey import Info, is_info, read_infos
from pinchpoint.imports import open_source

_NEEDED = (
    "needed: two CSV exports of pg_stat_statements, one of the Query Store, postgresql://USER@HOST/DATABASE; "
    "two of INFO all, a run directory with samples of a store, valkey://HOST or mongodb://HOST"
)
_STATISTICS = (
    "  statistics: a CSV export, with its header, of pg_stat_statements, pg_stat_database, pg_stat_wal, "
    "pg_stat_io, dm_io_virtual_file_stats, dm_os_wait_stats, the Query Store; what INFO all prints"
)
_FEWEST_INTERVALS = 3
"""This many intervals of the Query Store make a course."""
_SNIFFED = 2**20


@dataclass(slots=True)
class Sources:
    """What was given, by what it is.

    Attributes:
        snapshots: tables of a database server.
        infos: answers of a Valkey or Redis.
        stores: stores that were watched or recorded.
        recordings: files of perfmon, sar and others.
    """

    snapshots: list[Snapshot] = field(default_factory=list)
    infos: list[Info] = field(default_factory=list)
    stores: list[ProductionStore] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)

    def all_stores(self) -> list[ProductionStore]:
        """Every store, each kind of source for itself. Raises ``InputError``."""
        found = list(self.stores)
        if self.infos:
            found.append(valkey.store(self.infos))
        return found


def fit(
    sources: Sequence[str],
    over_s: float,
    say: Callable[[str], None],
    zone: tzinfo | None = None,
    host: str | None = None,
    day_s: float | None = None,
) -> str:
    """The text of a plan.yaml that loads a farm as production is loaded.

    Args:
        sources: exports of statistics, a server's URL, run directories, recordings of sar or perfmon.
        over_s: how long a server is watched.
        say: called with what is waited for.
        zone: of times that name none, and the zone of the hours shown; None: UTC.
        host: the machine whose recordings are taken; None: the only one there is.
        day_s: how long the whole day's course is to take; None: its busiest hour is the load.

    Raises:
        InputError: a source cannot be used; the message names it and says what is needed.
        FarmUnavailable: a server cannot be reached.
    """
    for source in sources:
        remember_url(source)
    given = _sorted(sources, over_s, say)
    stores = given.all_stores()
    if not given.snapshots and not stores:
        shown = ", ".join(redacted_text(source) for source in sources)
        raise InputError(f"--from: {shown}: none has statistics of statements or records; {_NEEDED}")
    found = production(changes(given.snapshots)) if given.snapshots else None
    counted = (found.began_s, found.ended_s) if found else span_s(stores)
    day = recorded(given.recordings, zone, host, counted) if given.recordings else None
    if found is None:
        return plan_text([store_section(records(stores, zone, day, day_s))])
    of_records = records(stores, zone, day_s=day_s) if stores else None
    if day is None:
        day = _of_the_query_store(found, zone)
    elif of_records is not None:
        of_records.notes.append(f"{day.source} is used for the database, not for the store")
    if day_s is not None:
        day = _whole(day, found.sources, day_s)
    _add_sizes(found, day)
    of_database = database_section(found, fitted(found), day)
    return plan_text([of_database, store_section(of_records)] if of_records else [of_database])


def _whole(day: LoadCourse | None, sources: str, day_s: float) -> LoadCourse:
    if day is None:
        raise InputError(
            f"--day: {sources} do not show the load over the day; give a recording of it (perfmon, sadf)"
        )
    return day.squeezed(day_s)


def _of_the_query_store(found: Production, zone: tzinfo | None) -> LoadCourse | None:
    """The course by the Query Store's own intervals: their mean is what was counted."""
    if len(found.course) < _FEWEST_INTERVALS:
        return None
    return course(found.course, "statements executed", found.sources, zone, (found.began_s, found.ended_s))


def _add_sizes(found: Production, day: LoadCourse | None) -> None:
    for name, figure in (day.figures if day else {}).items():
        found.collected.take(name, figure, "the server counted it itself, at the time of the statements")


def _sorted(sources: Sequence[str], over_s: float, say: Callable[[str], None]) -> Sources:
    given = Sources()
    for source in sources:
        path = Path(source)
        if is_server(source):
            given.snapshots += watched(source, over_s, say)
        elif live_store.is_store(source):
            given.stores.append(live_store.watched(source, over_s, say))
        elif "://" in source:
            raise InputError(
                f"--from: {redacted_text(source)}: no server of that kind can be watched; allowed: "
                f"postgresql, {', '.join(live_store.SCHEMES)}; of others give exports"
            )
        elif "@" in source and not path.exists():  # of a mistyped URL no more is shown than of a URL
            raise InputError(
                f"--from: {redacted_word(source)}: there is no such file, and it is no URL; {_NEEDED}"
            )
        elif path.is_dir():
            given.stores.append(recorded_store.store(path))
        else:
            _file(path, given)
    return given


def _file(path: Path, given: Sources) -> None:
    """Add a file to what it is."""
    head = _text(path, _SNIFFED)
    if is_info(head):
        given.infos += read_infos(_text(path), path)
    elif (snapshot := read_csv(path)) is not None:
        given.snapshots.append(snapshot)
    else:
        _check_recording(path)
        given.recordings.append(path)


def _check_recording(path: Path) -> None:
    try:
        open_source(path, None)
    except InputError as error:
        raise InputError(f"{error}\n{_STATISTICS}") from error


def _text(path: Path, most_bytes: int = -1) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell redirects
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")
