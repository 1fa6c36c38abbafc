"""Filling the data table by several connections at once, and saying how far it is; whatever the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass

from .. import duration
from ..sizes import spelt
from .operations import PAGE_ROWS

PAGE_BYTES = 8192
ROW_BYTES = PAGE_BYTES // PAGE_ROWS
_BATCH_ROWS = 8192  # whole pages, a second's work at most
_SAY_EVERY_S = 2.0

Fill = Callable[[int, int], object]
"""Makes the rows from one id to another, both included, and commits them."""


def rows_for(table_bytes: float) -> int:
    """Rows of a data table of this size: whole pages, at least one."""
    return max(1, round(table_bytes / PAGE_BYTES)) * PAGE_ROWS


@dataclass(frozen=True, slots=True)
class Filling:
    """The filling of one table.

    Attributes:
        rows: how many it is to have, numbered from 1.
        loaders: connections that fill it.
        progress: takes sentences for the person who waits.
        opened: opens one of those connections, as something that fills; it is closed at the end of its block.
    """

    rows: int
    loaders: int
    progress: Callable[[str], None]
    opened: Callable[[], AbstractContextManager[Fill]]

    def run(self) -> None:
        """Fill it; raises what a connection raised, when the others have stopped."""
        batches, stop = _Batches(self.rows), threading.Event()
        loaders = min(self.loaders, batches.count)
        with ThreadPoolExecutor(loaders, "load") as threads:
            try:
                shares = [threads.submit(self._share, batches, stop) for _ in range(loaders)]
                self._watch(shares, batches)
            finally:
                stop.set()  # after an interrupt, too, at most one batch of each is still waited for
        for share in shares:
            share.result()

    @property
    def _bytes(self) -> int:
        return self.rows * ROW_BYTES

    def _share(self, batches: _Batches, stop: threading.Event) -> None:
        with self.opened() as fill:
            for first, last in batches:
                if stop.is_set():
                    return
                fill(first, last)
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
