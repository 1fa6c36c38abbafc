"""One session of full-crawl: takes items from the queue and sees each to its end."""

from __future__ import annotations

import random
import time
from collections import deque

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure, SqlConnection
from .cycle import Cycles
from .frontier import REMOVAL, Frontier, Result, Taken
from .turns import Turns
from .work import CRAWL, SKIPPED, LeaseLostError, Work

LEASE_LOST = "lease_lost"

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5  # between two looks into an empty queue


class CrawlSession:
    """One worker of a crawl.

    Args:
        connection: to the crawl database.
        frontier: over that connection.
        cycles: over that frontier.
        turns: over that frontier.
        work: this session's own connections to the sources and the search tier.
        batch: items taken at a time.
    """

    def __init__(
        self,
        connection: SqlConnection,
        frontier: Frontier,
        cycles: Cycles,
        turns: Turns,
        work: Work,
        *,
        batch: int,
    ) -> None:
        self._connection = connection
        self._frontier = frontier
        self._cycles = cycles
        self._turns = turns
        self._work = work
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
                advance = self._cycles.advance(lambda step: self._work.ask_index(step, record))
            except DatabaseFailure as failure:
                record(CRAWL, _crawl_db(failure), start_ns, time.perf_counter_ns())
                return True
            if advance != "soon":
                return advance == "failed"
            time.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - so that sessions do not look in step
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def close(self) -> None:
        """Close all connections. Safe to call twice. What is still leased is free when the lease runs out."""
        self._work.close()
        self._connection.close()

    def _take(self, record: Record) -> bool:
        start_ns = time.perf_counter_ns()
        self._mine.extend(self._turns.take(self._batch))
        if self._mine:
            stage = f"{_operation(self._mine[0])}/crawl_db"
            record(stage, OK, start_ns, time.perf_counter_ns())
        return bool(self._mine)

    def _crawl(self, taken: Taken, start_ns: int, record: Record) -> None:
        operation = _operation(taken)
        try:
            result = self._work.do(taken, record)
        except LeaseLostError:
            record(operation, LEASE_LOST, start_ns, time.perf_counter_ns())
            return
        finish_ns = time.perf_counter_ns()
        try:
            counted = self._frontier.finish(taken, result)
            outcome = _outcome(result) if counted else LEASE_LOST
            record(f"{operation}/crawl_db", OK if counted else LEASE_LOST, finish_ns, time.perf_counter_ns())
        except DatabaseFailure as failure:
            record(f"{operation}/crawl_db", failure.outcome, finish_ns, time.perf_counter_ns())
            outcome = _crawl_db(failure)
        # A container is no document; but one that could not be opened stands for those behind it.
        if taken.kind in ("document", REMOVAL) or outcome != OK:
            size_bytes = result.size_bytes if outcome == OK else 0
            record(operation, outcome, start_ns, time.perf_counter_ns(), size_bytes)


def _outcome(result: Result) -> str:
    """The outcome of an operation: what is found to be indexed already is skipped, what is gone is done."""
    if result.state == "ok":
        return SKIPPED if result.reason and result.latency_s is not None else OK
    return {"skipped": SKIPPED, "failed": result.reason, "deleted": OK}[result.state]


def _operation(taken: Taken) -> str:
    return f"{'removal' if taken.kind == REMOVAL else 'document'}:{taken.source}"


def _crawl_db(failure: DatabaseFailure) -> str:
    return f"crawl_db_{failure.outcome}"
