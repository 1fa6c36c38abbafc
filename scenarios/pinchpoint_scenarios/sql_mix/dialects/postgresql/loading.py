"""The data table of sql-mix on PostgreSQL: larger than the cache, loaded by several connections at once.

A table is whole when its comment says so. That comes last of all, so one whose loading ended early, however
it ended, is loaded anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from ....databases.postgresql import Connection
from ....databases.schema import OwnedSchema
from ....databases.space import free_bytes
from ....errors import ScenarioError
from ....sizes import spelt
from ...filling import ROW_BYTES, Fill, Filling
from ...operations import PAGE_ROWS

_INDEX_BYTES_PER_ROW = 23  # an index entry of 16 bytes with its pointer, in pages filled by nine tenths

# Half of each page is left free, so that an updated row stays in its page: one update dirties one page.
DATA = """CREATE TABLE data (
    id bigint NOT NULL, version int NOT NULL, changed timestamptz NOT NULL,
    payload bytea NOT NULL) WITH (fillfactor = 50);
    ALTER TABLE data ALTER COLUMN payload SET STORAGE PLAIN"""

# Digests, because storage that compresses or deduplicates would make nothing of a repeated byte.
FILL = """INSERT INTO data SELECT id, 0, now(), (
    SELECT string_agg(sha512(convert_to(id || ':' || part, 'UTF8')), ''::bytea)
    FROM generate_series(1, 14) part)
    FROM generate_series($1::bigint, $2::bigint) id"""

_LABEL = "SELECT obj_description(to_regclass('data'), 'pg_class'), pg_table_size(to_regclass('data'))"
_COUNT = "SELECT count(*), min(id), max(id) FROM data"
CACHE = """SELECT setting::bigint * current_setting('block_size')::bigint
    FROM pg_settings WHERE name = 'shared_buffers'"""


def cache_bytes(connection: Connection) -> int:
    """The server's buffer cache (``shared_buffers``)."""
    ((found,),) = connection.execute(CACHE).fetchall()
    return int(found)


def count_pages(connection: Connection) -> int:
    """Pages of the data table as it was loaded: its rows' numbers run from 1 to four times this."""
    found = connection.execute("SELECT max(id) FROM data").fetchone()
    return max(1, int(found[0] or 0) // PAGE_ROWS) if found else 1


@dataclass(frozen=True, slots=True)
class DataTable:
    """The data table that a run needs.

    Attributes:
        schema: the schema it lies in, held by this run.
        rows: how many it has, see ``filling.rows_for``.
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
            connection.execute(DATA)
        Filling(self.rows, self.loaders, self.progress, self._opened).run()
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

    @contextmanager
    def _opened(self) -> Iterator[Fill]:
        with self.schema.connect() as connection:
            # The comment that makes the table whole is written durably, and with it all that came before.
            connection.execute("SET synchronous_commit = off")
            filling = psycopg.RawCursor(connection)
            yield lambda first, last: filling.execute(FILL, [first, last])

    def _complete(self, connection: Connection) -> None:
        self.progress("indexing the data table")
        connection.execute("ALTER TABLE data ADD PRIMARY KEY (id)")
        try:
            # Else autovacuum does it in the middle of the measuring.
            connection.execute("VACUUM (ANALYZE) data")
        except psycopg.errors.LockNotAvailable:
            self.progress("the data table is being vacuumed by the server itself")
        connection.execute(sql.SQL("COMMENT ON TABLE data IS {}").format(sql.Literal(self._label)))
