"""The data table of sql-mix on PostgreSQL: larger than the cache, loaded by several connections at once.

A table is whole when its comment says so. That comes last of all, so one whose loading ended early, however
it ended, is loaded anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import psycopg
from psycopg import sql

from .... import duration
from ....databases.postgresql import Connection
from ....databases.schema import OwnedSchema
from ....databases.space import free_bytes
from ....errors import ScenarioError
from ....sizes import spelt
from ...operations import PAGE_ROWS

PAGE_BYTES = 8192
ROW_BYTES = PAGE_BYTES // PAGE_ROWS
_BATCH_ROWS = 8192  # whole pages, a second's work at most
_SAY_EVERY_S = 2.0
_INDEX_BYTES_PER_ROW = 23  # an index entry of 16 bytes with its pointer, in pages filled by nine tenths

# Half of each page is left free, so that an updated row stays in its page: one update dirties one page.
_DATA = """CREATE TABLE data (
    id bigint NOT NULL, version int NOT NULL, changed timestamptz NOT NULL,
    payload bytea STORAGE PLAIN NOT NULL) WITH (fillfactor = 50)"""

# Digests, because storage that compresses or deduplicates would make nothing of a repeated byte.
_FILL = """INSERT INTO data SELECT id, 0, now(), (
    SELECT string_agg(sha512(convert_to(id || ':' || part, 'UTF8')), ''::bytea)
    FROM generate_series(1, 14) part)
    FROM generate_series(%s::bigint, %s::bigint) id"""

_LABEL = "SELECT obj_description(to_regclass('data'), 'pg_class'), pg_table_size(to_regclass('data'))"
_COUNT = "SELECT count(*), min(id), max(id) FROM data"
_CACHE = """SELECT setting::bigint * current_setting('block_size')::bigint
    FROM pg_settings WHERE name = 'shared_buffers'"""


def cache_bytes(connection: Connection) -> int:
    """The server's buffer cache (``shared_buffers``)."""
    ((found,),) = connection.execute(_CACHE).fetchall()
    return int(found)


def rows_for(table_bytes: float) -> int:
    """Rows of a data table of this size: whole pages, at least one."""
    return max(1, round(table_bytes / PAGE_BYTES)) * PAGE_ROWS


def count_pages(connection: Connection) -> int:
    """Pages of the data table as it was loaded: its rows' numbers run from 1 to four times this."""
    found = connection.execute("SELECT max(id) FROM data").fetchone()
    return max(1, int(found[0] or 0) // PAGE_ROWS) if found else 1


@dataclass(frozen=True, slots=True)
class DataTable:
    """The data table that a run needs.

    Attributes:
        schema: the schema it lies in, held by this run.
        rows: how many it has, see ``rows_for``.
        loaders: connections that load it.
        progress: takes sentences for the person who waits.
    """

    schema: OwnedSchema
    rows: int
    loaders: int
    progress: Callable[[str], None]

    def ensure(self, connection: Connection) -> None:
        """Have it there, whole: as an earlier run left it, or loaded now.

        Raises:
            ScenarioError: the server's disk has no room for it.
            psycopg.Error: the server's failure.
        """
        label, size_bytes = connection.execute(_LABEL).fetchall()[0]
        if label == self._label and self._intact(connection, size_bytes):
            self.progress(
                f"the data table is there from an earlier run, {spelt(size_bytes)}: it is used again"
            )
            return
        self._room(connection, freed_bytes=size_bytes or 0)
        with connection.transaction():
            connection.execute("DROP TABLE IF EXISTS data")
            connection.execute(_DATA)
        self._fill()
        self._complete(connection)

    @property
    def _bytes(self) -> int:
        return self.rows * ROW_BYTES

    @property
    def _label(self) -> str:
        return f"pinchpoint.data/1 rows={self.rows}"

    def _intact(self, connection: Connection, size_bytes: int) -> bool:
        """Whether all its rows are there, and earlier runs have not bloated it."""
        if size_bytes >= 2 * self._bytes + 2**20:
            self.progress("the data table has grown to twice its size: it is loaded anew")
            return False
        self.progress("counting the rows of the data table from an earlier run")
        if connection.execute(_COUNT).fetchall() != [(self.rows, 1, self.rows)]:
            self.progress("the data table has lost rows since it was loaded: it is loaded anew")
            return False
        return connection.execute("SELECT to_regclass('data_pkey') IS NOT NULL").fetchall() == [(True,)]

    def _room(self, connection: Connection, freed_bytes: int) -> None:
        needed = self._bytes + self.rows * _INDEX_BYTES_PER_ROW
        free = free_bytes(connection)
        if free is None:
            self.progress(
                f"the data table will take {spelt(needed)}; the server does not tell how much room it has"
            )
        elif free + freed_bytes < needed:
            raise ScenarioError(
                f"{self.schema.place}: the data table would take {spelt(needed)}, and the server's data "
                f"disk has {spelt(free + freed_bytes)} free; choose a smaller scale in the plan, or make room"
            )
        else:
            self.progress(f"the data table will take {spelt(needed)} of {spelt(free + freed_bytes)} free")

    def _fill(self) -> None:
        batches, stop = _Batches(self.rows), threading.Event()
        loaders = min(self.loaders, batches.count)
        with ThreadPoolExecutor(loaders, "load") as threads:
            try:
                shares = [threads.submit(self._load_share, batches, stop) for _ in range(loaders)]
                self._watch(shares, batches)
            finally:
                stop.set()  # after an interrupt, too, at most one batch of each is still waited for
        for share in shares:
            share.result()

    def _load_share(self, batches: _Batches, stop: threading.Event) -> None:
        with self.schema.connect() as connection:
            # The comment that makes the table whole is written durably, and with it all that came before.
            connection.execute("SET synchronous_commit = off")
            for first, last in batches:
                if stop.is_set():
                    return
                connection.execute(_FILL, [first, last])
                batches.done(last - first + 1)

    def _watch(self, shares: list[Future[None]], batches: _Batches) -> None:
        begun = time.monotonic()
        waiting = set(shares)
        while waiting:
            done, waiting = wait(waiting, timeout=_SAY_EVERY_S, return_when=FIRST_EXCEPTION)
            if any(share.exception() for share in done):
                return
            self._say(batches.rows_done, time.monotonic() - begun)

    def _say(self, rows: int, taken_s: float) -> None:
        if not rows:
            self.progress(f"loading the data table of {spelt(self._bytes)}")
            return
        left_s = taken_s * (self.rows - rows) / rows
        rate = f"{spelt(rows * ROW_BYTES / taken_s)}/s"
        if rows < self.rows:
            self.progress(
                f"loading the data table: {100 * rows // self.rows} % of {spelt(self._bytes)}, {rate}, "
                f"about {duration.spelt(left_s)} left"
            )
        else:
            self.progress(f"loaded the data table: {spelt(self._bytes)} in {duration.spelt(taken_s)}, {rate}")

    def _complete(self, connection: Connection) -> None:
        self.progress("indexing the data table")
        connection.execute("ALTER TABLE data ADD PRIMARY KEY (id)")
        try:
            # Else autovacuum does it in the middle of the measuring.
            connection.execute("VACUUM (ANALYZE) data")
        except psycopg.errors.LockNotAvailable:
            self.progress("the data table is being vacuumed by the server itself")
        connection.execute(sql.SQL("COMMENT ON TABLE data IS {}").format(sql.Literal(self._label)))


class _Batches:
    """Hands out ranges of rows to whoever asks, and counts those that are there."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._firsts = iter(range(1, rows + 1, _BATCH_ROWS))
        self._lock = threading.Lock()
        self.count = -(-rows // _BATCH_ROWS)
        self.rows_done = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        while True:
            with self._lock:
                first = next(self._firsts, None)
            if first is None:
                return
            yield first, min(self._rows, first + _BATCH_ROWS - 1)

    def done(self, rows: int) -> None:
        """Count a range that was loaded."""
        with self._lock:
            self.rows_done += rows
