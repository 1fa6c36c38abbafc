"""Loads the data table of sql-mix, which is larger than the server's cache, over several connections.

A table is complete if its label says so. The label is written last, so a table whose loading was interrupted
is loaded anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass

from ..databases.access import yes
from ..databases.contract import Link
from ..databases.schema import OwnedSchema
from ..errors import ScenarioError
from ..units import spelt_bytes, spelt_s
from .dialects.contract import MixSql
from .operations import DATA, PAGE_ROWS

PAGE_BYTES = 8192
ROW_BYTES = PAGE_BYTES // PAGE_ROWS
_INDEX_BYTES_PER_ROW = 23  # an index entry of 16 bytes with its pointer, in pages filled to 90 %
_LOCK_NOT_AVAILABLE = "55P03"
_BATCH_ROWS = 8192  # whole pages, at most a second's work
_SAY_EVERY_S = 2.0


def rows_for(table_bytes: float) -> int:
    """Return the rows of a data table of a size: whole pages, at least one page."""
    return max(1, round(table_bytes / PAGE_BYTES)) * PAGE_ROWS


def pages_of(sql: MixSql, link: Link) -> int:
    """Return the pages of the loaded data table. Row numbers run from 1 to four times this number."""
    result = link.execute(sql.data_last).fetchone()
    return max(1, int(result[0] or 0) // PAGE_ROWS) if result else 1


@dataclass(frozen=True, slots=True)
class DataTable:
    """The data table that a run needs.

    Attributes:
        schema: schema of the table, locked by this run.
        sql: statements for its server.
        rows: number of rows, which are numbered from 1 (see ``rows_for``).
        loaders: number of connections that load it.
        progress: receives sentences for the user.
    """

    schema: OwnedSchema
    sql: MixSql
    rows: int
    loaders: int
    progress: Callable[[str], None]

    def ensure(self, link: Link) -> None:
        """Make sure that the table is complete: from an earlier run, or loaded now.

        Raises:
            ScenarioError: the disk of the server has too little space.
            Exception: the server failed (``Access.error``).
        """
        label, size_bytes = link.execute(self.sql.data_there).fetchone() or (None, 0)
        size_bytes = int(size_bytes or 0)
        if label == self._label and self._is_whole(link, size_bytes):
            self.progress(
                f"the data table is there from an earlier run, {spelt_bytes(size_bytes)}: it is used again"
            )
            return
        self._room(link, freed_bytes=size_bytes)
        for statement in self.sql.make[DATA]:
            link.execute(statement)
        self._fill()
        self._complete(link)

    @property
    def _label(self) -> str:
        return f"pinchpoint.data/1 rows={self.rows}"

    def _is_whole(self, link: Link, size_bytes: int) -> bool:
        """Return whether all rows exist, and earlier runs have not bloated the table."""
        if size_bytes >= 2 * self._bytes + 2**22:
            self.progress("the data table has grown to twice its size: it is loaded anew")
            return False
        self.progress("counting the rows of the data table from an earlier run")
        if link.execute(self.sql.data_count).fetchone() != (self.rows, 1, self.rows):
            self.progress("the data table has lost rows since it was loaded: it is loaded anew")
            return False
        result = link.execute(self.sql.data_has_key).fetchone()
        return bool(result and yes(result[0]))

    def _room(self, link: Link, freed_bytes: int) -> None:
        needed = self._bytes + self.rows * _INDEX_BYTES_PER_ROW
        free = self.schema.free_bytes(link)
        if free is None:
            self.progress(
                f"the data table will take {spelt_bytes(needed)}; the server does not report its free space"
            )
        elif free + freed_bytes < needed:
            raise ScenarioError(
                f"{self.schema.place}: the data table would take {spelt_bytes(needed)}, and the server's "
                f"data disk has {spelt_bytes(free + freed_bytes)} free; choose a smaller scale in the plan, "
                "or make room"
            )
        else:
            self.progress(
                f"the data table will take {spelt_bytes(needed)} of {spelt_bytes(free + freed_bytes)} free"
            )

    def _complete(self, link: Link) -> None:
        self.progress("indexing the data table")
        if self.sql.data_key:
            link.execute(self.sql.data_key)
        try:
            link.execute(self.sql.data_settle)
        except self.schema.access.error as error:
            if self.schema.access.state(error) != _LOCK_NOT_AVAILABLE:
                raise
            self.progress("the data table is being vacuumed by the server itself")
        link.execute(self.sql.data_label.format(label=self._label))

    # ---- filling ---------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Load the table. Raises the error of a connection after the others have stopped."""
        batches, stop = _Batches(self.rows), threading.Event()
        loaders = min(self.loaders, batches.count)
        with ThreadPoolExecutor(loaders, "load") as threads:
            try:
                shares = [threads.submit(self._share, batches, stop) for _ in range(loaders)]
                self._watch(shares, batches)
            finally:
                stop.set()  # after an interrupt, each connection finishes at most one batch
        for share in shares:
            share.result()

    @property
    def _bytes(self) -> int:
        return self.rows * ROW_BYTES

    def _share(self, batches: _Batches, stop: threading.Event) -> None:
        with closing(self.schema.connect()) as link:
            for statement in self.sql.fill_fast:
                link.execute(statement)
            for first, last in batches:
                if stop.is_set():
                    return
                link.execute(self.sql.data_fill, (first, last))
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
            self.progress(f"loading the data table of {spelt_bytes(self._bytes)}")
            return
        left_s = taken_s * (self.rows - rows) / rows
        rate = f"{spelt_bytes(rows * ROW_BYTES / taken_s)}/s"
        if rows < self.rows:
            self.progress(
                f"loading the data table: {100 * rows // self.rows} % of {spelt_bytes(self._bytes)}, {rate}, "
                f"about {spelt_s(left_s)} left"
            )
        else:
            self.progress(f"loaded the data table: {spelt_bytes(self._bytes)} in {spelt_s(taken_s)}, {rate}")


class _Batches:
    """Assigns ranges of rows to connections, and counts loaded rows."""

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
