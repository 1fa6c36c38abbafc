"""Runs one session of full-crawl, which takes items from the queue and processes each to its end."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure, FailureReport, SqlConnection
from .cycle import Cycles
from .frontier import PASSING, Frontier
from .item_worker import CRAWL, SKIPPED, ItemWorker, LeaseLostError
from .next_source import SourceTurns
from .records import REMOVAL, Done, FailedRequest, ItemResult, LeasedItem, plain

LEASE_LOST = "lease_lost"

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5  # seconds between two readings of an empty queue
_HANDED_IN_AFTER_NS = 500_000_000
"""Age at which found items are queued for other sessions, if the source is slow, in nanoseconds."""
_HANDED_IN_LINKS = 10_000
"""Largest number of links in a batch, which is one parameter of a statement. Servers limit its size (MariaDB:
16 MiB by default)."""


class CrawlSession:
    """One worker of a crawl.

    Args:
        connection: connection to the crawl database.
        frontier: queue over that connection.
        cycles: cycles of that queue.
        turns: turns of that queue.
        work: connections of this session to the sources and the search tier.
        batch: number of items that are taken, and handed in as done, at a time.
        report: receives every failure of the crawl database.
    """

    def __init__(
        self,
        connection: SqlConnection,
        frontier: Frontier,
        cycles: Cycles,
        turns: SourceTurns,
        work: ItemWorker,
        *,
        batch: int,
        report: FailureReport,
    ) -> None:
        self._connection = connection
        self._frontier = frontier
        self._cycles = cycles
        self._turns = turns
        self._work = work
        self._batch = batch
        self._report = report
        self._mine: deque[LeasedItem] = deque()
        self._done: list[Done] = []
        self._links = 0  # time of the oldest finished item

    def perform(self, record: Record) -> bool:
        """Crawl one container or document, with a wait if necessary.

        Returns False when the crawl has ended.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            if not self._mine:
                self._connection.wait_until_due()
            start_ns = time.perf_counter_ns()
            try:
                if self._mine or self._take(record):
                    self._crawl(self._mine.popleft(), start_ns, record)
                    return True
                advance = self._cycles.advance(lambda step: self._work.ask_index(step, record))
            except DatabaseFailure as failure:
                self._report(failure, operation=CRAWL)
                record(CRAWL, _crawl_db(failure), start_ns, time.perf_counter_ns())
                return True
            if advance != "soon":
                return advance == "failed"
            time.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - so that sessions do not look in step
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def close(self) -> None:
        """Close all connections. A second call does nothing.

        Leased items become free when their lease ends.
        """
        self._work.close()
        self._connection.close()

    def _take(self, record: Record) -> bool:
        if self._done:  # the last items of the batch had no result
            self._hand_in(record)
        start_ns = time.perf_counter_ns()
        self._mine.extend(self._turns.take(self._batch))
        if not self._mine:
            return False
        self._work.apply_holds(self._mine[0])
        record(f"{_operation(self._mine[0])}/crawl_db", OK, start_ns, time.perf_counter_ns())
        return True

    def _crawl(self, taken: LeasedItem, start_ns: int, record: Record) -> None:
        """Process one item to its end, and hand in the batch if this item completes it."""
        operation = _operation(taken)
        outcome, size_bytes, ours = LEASE_LOST, 0, True
        try:
            result = self._work.do(taken, record)
        except LeaseLostError:
            ours = False
        else:
            outcome, size_bytes = _outcome(result), result.size_bytes
            self._done.append(Done(taken, result, time.perf_counter_ns()))
            self._links += len(result.links or ())
        if self._done and (not self._mine or self._is_enough()):
            failed = self._hand_in(record)
            outcome = failed if failed and ours else outcome
        # A container is not a document, but a container that failed counts for the items in it.
        if taken.kind in ("document", REMOVAL) or outcome != OK:
            size_bytes = size_bytes if outcome == OK else 0
            record(operation, outcome, start_ns, time.perf_counter_ns(), size_bytes)

    def _is_enough(self) -> bool:
        """Return whether finished items are handed in although the batch is not complete."""
        done = self._done
        return done[-1].end_ns - done[0].end_ns > _HANDED_IN_AFTER_NS or self._links > _HANDED_IN_LINKS

    def _hand_in(self, record: Record) -> str:
        """Store finished items in the crawl database. Return why the last one does not count, or "".

        Earlier items have been recorded as done. If one of them does not count, the stage shows it.
        """
        done, self._done, self._links = self._done, [], 0
        try:
            return self._noted(done, record)
        except DatabaseFailure as failure:
            # This session takes no more items. The rest becomes free when the lease ends.
            return _crawl_db(failure)

    def _noted(self, done: Sequence[Done], record: Record) -> str:
        """Hand in the items: a refused batch one by one, and a refused item as a failure.

        Otherwise the item would be crawled again and again, because no other row is written for it. Raises
        ``DatabaseFailure`` if the failure is refused, too.
        """
        try:
            return self._note(done, record)
        except DatabaseFailure as failure:
            if failure.outcome in PASSING:
                raise
            if len(done) > 1:
                return [self._noted([each], record) for each in done][-1]
            self._note([_refused(done[0], failure)], record)
            return _crawl_db(failure)

    def _note(self, done: Sequence[Done], record: Record) -> str:
        """Make one attempt of ``_hand_in``, recorded as the stage. Raises ``DatabaseFailure``."""
        stage = f"{_operation(done[-1].taken)}/crawl_db"
        start_ns = time.perf_counter_ns()
        try:
            counted = self._frontier.finish(done)
        except DatabaseFailure as failure:
            self._report(failure, operation=stage)
            record(stage, failure.outcome, start_ns, time.perf_counter_ns())
            raise
        end_ns = time.perf_counter_ns()
        record(stage, OK if any(counted) else LEASE_LOST, start_ns, end_ns)
        for _ in range(counted[:-1].count(False)):
            record(stage, LEASE_LOST, end_ns, end_ns)
        return "" if counted[-1] else LEASE_LOST


def _outcome(result: ItemResult) -> str:
    """Return the outcome of an operation: an unchanged document is skipped, a removed one is done."""
    if result.state == "ok":
        return SKIPPED if result.reason and result.latency_s is not None else OK
    return {"skipped": SKIPPED, "failed": result.reason, "deleted": OK}[result.state]


def _operation(taken: LeasedItem) -> str:
    return f"{'removal' if taken.kind == REMOVAL else 'document'}:{taken.source}"


def _refused(done: Done, failure: DatabaseFailure) -> Done:
    """Return the item as a failed one, without any text that can be refused."""
    why = FailedRequest("crawl_db", failure.outcome, plain(str(failure)))
    attempts, failures = done.result.attempts, (*done.result.failures, why)
    return done._replace(result=ItemResult("failed", _crawl_db(failure), attempts, failures=failures))


def _crawl_db(failure: DatabaseFailure) -> str:
    return f"crawl_db_{failure.outcome}"
