"""One session of full-crawl: takes items from the queue and sees each to its end."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure
from ..databases.postgresql import ReconnectingConnection
from .cycle import Cycles
from .failures import Failure, Skipped
from .frontier import FinalState, Frontier, Result, Taken
from .index import Index
from .sources import Fetched, Item, Source

T = TypeVar("T")

CRAWL = "crawl"
"""The operation that stands for the crawl as a whole: recorded when it, not one document of it, fails."""
SKIPPED = "skipped"
LEASE_LOST = "lease_lost"

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5  # between two looks into an empty queue
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.1, 1.0


@dataclass(slots=True)
class _Attempts:
    """How often a step was tried, and how long the attempt took that succeeded."""

    count: int = 0
    latency_s: float | None = None


class CrawlSession:
    """One worker of a crawl.

    Args:
        connection: to the crawl database.
        frontier: over that connection.
        cycles: over that frontier.
        sources: name -> this session's own connection to the source.
        index: this session's own connection to the search tier.
        retries: how often a failed request is tried again.
        longest_wait_s: at most so long is waited before that.
        batch: items taken at a time.
    """

    def __init__(
        self,
        connection: ReconnectingConnection,
        frontier: Frontier,
        cycles: Cycles,
        sources: Mapping[str, Source],
        index: Index,
        *,
        retries: int,
        longest_wait_s: float,
        batch: int,
    ) -> None:
        self._connection = connection
        self._frontier = frontier
        self._cycles = cycles
        self._sources = sources
        self._index = index
        self._retries = retries
        self._longest_wait_s = longest_wait_s
        self._batch = batch
        self._mine: deque[Taken] = deque()

    def perform(self, record: Record) -> bool:
        """Crawl one container or document, waiting for one if need be; False when the crawl is over."""
        pause_s = _FIRST_PAUSE_S
        while True:
            self._connection.wait_until_due()
            start_ns = time.perf_counter_ns()
            try:
                if self._mine or self._take(record):
                    self._crawl(self._mine.popleft(), start_ns, record)
                    return True
                advance = self._cycles.advance(lambda step: self._ask_index(step, record))
            except DatabaseFailure as failure:
                record(CRAWL, _crawl_db(failure), start_ns, time.perf_counter_ns())
                return True
            if advance != "soon":
                return advance == "failed"
            time.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - so that sessions do not look in step
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def close(self) -> None:
        """Close all connections. Safe to call twice. What is still leased is free when the lease runs out."""
        for source in self._sources.values():
            source.close()
        self._index.close()
        self._connection.close()

    def _take(self, record: Record) -> bool:
        start_ns = time.perf_counter_ns()
        self._mine.extend(self._frontier.take(self._batch))
        if self._mine:
            stage = f"{_operation(self._mine[0])}/crawl_db"
            record(stage, OK, start_ns, time.perf_counter_ns())
        return bool(self._mine)

    def _crawl(self, taken: Taken, start_ns: int, record: Record) -> None:
        operation = _operation(taken)
        if taken.item.kind == "container":
            result, children = self._enumerate(taken, record)
        else:
            result, children = self._document(taken, record)
        outcome = {"ok": OK, "skipped": SKIPPED, "failed": result.reason}[result.state]
        finish_ns = time.perf_counter_ns()
        try:
            counted = self._frontier.finish(taken, result, children)
            record(f"{operation}/crawl_db", OK if counted else LEASE_LOST, finish_ns, time.perf_counter_ns())
            outcome = outcome if counted else LEASE_LOST
        except DatabaseFailure as failure:
            record(f"{operation}/crawl_db", failure.outcome, finish_ns, time.perf_counter_ns())
            outcome = _crawl_db(failure)
        # A container is no document; but one that could not be opened stands for those behind it.
        if taken.item.kind == "document" or outcome != OK:
            size_bytes = result.size_bytes if outcome == OK else 0
            record(operation, outcome, start_ns, time.perf_counter_ns(), size_bytes)

    def _enumerate(self, taken: Taken, record: Record) -> tuple[Result, tuple[Item, ...]]:
        source = self._sources[taken.source]
        attempts = _Attempts()
        stage = f"{_operation(taken)}/enumerate"
        try:
            with source.turn(taken.item):
                children = self._attempt(lambda: source.enumerate(taken.item), stage, record, attempts)
        except (Failure, Skipped) as failure:  # Skipped: an answer too large to be a page
            kind = failure.kind if isinstance(failure, Failure) else "bad_answer"
            return Result("failed", kind, attempts.count, 0, None), ()
        return Result("ok", "", attempts.count, 0, attempts.latency_s), tuple(children)

    def _document(self, taken: Taken, record: Record) -> tuple[Result, tuple[Item, ...]]:
        source, item = self._sources[taken.source], taken.item
        operation = _operation(taken)
        fetching, fetched = _Attempts(), Fetched(b"", 0, 0)

        def result(state: FinalState, reason: str = "") -> tuple[Result, tuple[Item, ...]]:
            content = fetched.content
            return Result(state, reason, fetching.count, len(content), fetching.latency_s), fetched.found

        try:
            with source.turn(item):
                fetched = self._attempt(
                    lambda: source.fetch(item), f"{operation}/fetch", record, fetching, _size_bytes
                )
        except Skipped as reason:
            return result("skipped", str(reason))
        except Failure as failure:
            return result("failed", failure.kind)
        if fetched.skipped:
            return result("skipped", fetched.skipped)
        try:
            self._attempt(
                lambda: self._index.add(taken.source, item.url, fetched.content),
                f"{operation}/index", record, _Attempts(),
            )  # fmt: skip
        except Skipped as reason:
            return result("skipped", str(reason))
        except Failure as failure:
            return result("failed", f"index_{failure.kind}")
        return result("ok")

    def _ask_index(self, step: Literal["reset", "commit"], record: Record) -> str:
        ask = {"reset": self._index.reset, "commit": self._index.commit}[step]
        start_ns = time.perf_counter_ns()
        try:
            self._attempt(ask, f"{CRAWL}/{step}", record, _Attempts())
        except Failure as failure:
            outcome = f"index_{failure.kind}"
            record(CRAWL, outcome, start_ns, time.perf_counter_ns())
            return outcome
        return OK

    def _attempt(
        self,
        action: Callable[[], T],
        stage: str,
        record: Record,
        attempts: _Attempts,
        size: Callable[[T], int] = lambda _: 0,
    ) -> T:
        """Do one step of an operation, trying again where that may help; every attempt is recorded."""
        while True:
            attempts.count += 1
            start_ns = time.perf_counter_ns()
            try:
                value = action()
            except Skipped:
                record(stage, SKIPPED, start_ns, time.perf_counter_ns())
                raise
            except Failure as failure:
                record(stage, failure.kind, start_ns, time.perf_counter_ns())
                if failure.permanent or attempts.count > self._retries:
                    raise
                self._wait(attempts.count, failure.retry_after_s)
            else:
                end_ns = time.perf_counter_ns()
                attempts.latency_s = (end_ns - start_ns) / 1e9
                record(stage, OK, start_ns, end_ns, size(value))
                return value

    def _wait(self, attempt: int, asked_s: float) -> None:
        backoff_s = min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2 ** min(attempt - 1, 16))
        time.sleep(min(self._longest_wait_s, max(asked_s, backoff_s)))


def _size_bytes(fetched: Fetched) -> int:
    return len(fetched.content)


def _operation(taken: Taken) -> str:
    return f"document:{taken.source}"


def _crawl_db(failure: DatabaseFailure) -> str:
    return f"crawl_db_{failure.outcome}"
