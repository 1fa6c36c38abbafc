"""Fetches one queued item, indexes it, and records the time of every attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ..contract import OK, Record
from .destinations import Destination
from .failures import Failure, Skipped
from .frontier import Frontier
from .records import CHANGES, REMOVAL, UNCHANGED, FailedRequest, FinalState, ItemResult, LeasedItem, plain
from .sources import Fetched, Item, Source

A = TypeVar("A")
T = TypeVar("T")

CRAWL = "crawl"
"""Name of the operation that is recorded if the crawl itself fails, and not a single document."""
BULK = f"{CRAWL}/bulk"
"""Name of the stage for a request to the destination with documents of several sessions."""
SKIPPED = "skipped"
TOKEN_EXPIRED = "token_expired"  # noqa: S105 - the name of a failure

_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.1, 1.0
_WAITED_NS = 100_000  # shorter waits for a turn are not recorded


class LeaseLostError(Exception):
    """Another session has taken the item over while this one waited for its turn at the source."""


@dataclass(slots=True)
class _Attempts:
    """The number of attempts for the requests of one item, and the failed attempts."""

    count: int = 0
    failed: list[FailedRequest] = field(default_factory=list)


class ItemWorker:
    """Fetches the items of one session, indexes them, and retries failures.

    Args:
        frontier: queue of the session.
        sources: name -> connection of this session to the source.
        destination: connection of this session to the destination.
        retries: number of retries of a failed request.
        longest_wait_s: longest pause before a retry in seconds.
        lease_s: length of an item's lease in seconds.
    """

    def __init__(
        self,
        frontier: Frontier,
        sources: Mapping[str, Source],
        destination: Destination,
        *,
        retries: int,
        longest_wait_s: float,
        lease_s: float,
    ) -> None:
        self._frontier = frontier
        self._sources = sources
        self._destination = destination
        self._retries = retries
        self._longest_wait_s = longest_wait_s
        self._lease_s = lease_s

    def do(self, taken: LeasedItem, record: Record) -> ItemResult:
        """Process one item to its end. Raises ``LeaseLostError``, ``DatabaseFailure``."""
        if taken.kind == REMOVAL:
            return self._remove(taken, record)
        if taken.kind == CHANGES:
            return self._changes(taken, record)
        if taken.kind == "container":
            return self._enumerate(taken, record)
        return self._document(taken, record)

    def ask_index(self, step: Literal["reset", "commit"], record: Record) -> str:
        """Reset or commit the index, with retries. Returns ``ok`` or the name of the failure."""
        ask = {"reset": self._destination.reset, "commit": self._destination.commit}[step]
        start_ns = time.perf_counter_ns()
        try:
            self._attempt(ask, f"{CRAWL}/{step}", record, _Attempts())
        except Failure as failure:
            outcome = f"index_{failure.kind}"
            record(CRAWL, outcome, start_ns, time.perf_counter_ns())
            return outcome
        return OK

    def close(self) -> None:
        """Close the connections to sources and destination. A second call does nothing."""
        for source in self._sources.values():
            source.close()
        self._destination.close()

    def _enumerate(self, taken: LeasedItem, record: Record) -> ItemResult:
        source = self._sources[taken.source]
        attempts = _Attempts()
        token: str | None = None
        if taken.item.url == source.root().url:  # later changes belong to the next incremental crawl
            try:
                start_ns = time.perf_counter_ns()
                with source.turn(taken.item):
                    self._waited(taken, start_ns, record)
                    token = source.token()
            except Failure as failure:
                attempts.failed.append(FailedRequest("token", failure.kind, str(failure)))
                self._hold(taken, failure)
        try:
            value = self._polite(source.enumerate, taken.item, taken, "enumerate", record, attempts)
        except (Failure, Skipped) as failure:  # Skipped: the answer is too large for a page
            kind = failure.kind if isinstance(failure, Failure) else "bad_answer"
            return ItemResult("failed", kind, attempts.count, failures=tuple(attempts.failed))
        return ItemResult(
            "ok", "", attempts.count, found=tuple(value), token=token, failures=tuple(attempts.failed)
        )

    def _changes(self, taken: LeasedItem, record: Record) -> ItemResult:
        source = self._sources[taken.source]
        attempts = _Attempts()
        since = taken.item.detail
        try:
            page = self._polite(source.changes, since, taken, "enumerate", record, attempts)
        except (Failure, Skipped) as failure:
            kind = failure.kind if isinstance(failure, Failure) else "bad_answer"
            failures = tuple(attempts.failed)
            if kind != TOKEN_EXPIRED:
                return ItemResult("failed", kind, attempts.count, failures=failures)
            self._frontier.enumerate_again(taken, source.root())
            return ItemResult("ok", kind, attempts.count, failures=failures)
        return ItemResult(
            "ok", "", attempts.count, found=page.changed, removed=page.deleted, token=page.token,
            more=page.more, failures=tuple(attempts.failed),
        )  # fmt: skip

    def _document(self, taken: LeasedItem, record: Record) -> ItemResult:  # noqa: PLR0911 - one for each way it can end
        source, item = self._sources[taken.source], taken.item
        attempts = _Attempts()
        fetched: Fetched | None = None
        index_s: float | None = None

        def result(state: FinalState, reason: str = "") -> ItemResult:
            failures = tuple(attempts.failed)
            if fetched is None:
                return ItemResult(state, reason, attempts.count, failures=failures)
            latency_s = (fetched.end_ns - fetched.start_ns) / 1e9
            version = plain(item.version or fetched.version)
            return ItemResult(
                state, reason, attempts.count, len(fetched.content), latency_s, index_s, version, fetched.url,
                fetched.access, None if fetched.unchanged else fetched.links, fetched.found,
                failures=failures,
            )  # fmt: skip

        try:
            fetched = self._polite(source.fetch, item, taken, "fetch", record, attempts)
        except Skipped as reason:
            return result("skipped", plain(str(reason)))
        except Failure as failure:
            return result("failed", failure.kind)
        if fetched.skipped:
            return result("skipped", plain(fetched.skipped))
        if fetched.unchanged or _is_known(taken, fetched):
            return result("ok", UNCHANGED)
        if not self._destination.takes_documents:
            return result("ok")
        url, content = fetched.url or item.url, fetched.content
        indexing = _Attempts(failed=attempts.failed)
        try:
            start_ns = time.perf_counter_ns()
            self._attempt(
                lambda: self._destination.add(taken.source, url, content),
                f"document:{taken.source}/index", record, indexing,
            )  # fmt: skip
            index_s = (time.perf_counter_ns() - start_ns) / 1e9
        except Skipped as reason:
            return result("skipped", plain(str(reason)))
        except Failure as failure:
            return result("failed", f"index_{failure.kind}")
        return result("ok")

    def _remove(self, taken: LeasedItem, record: Record) -> ItemResult:
        attempts = _Attempts()
        try:
            self._attempt(
                lambda: self._destination.remove(taken.source, taken.item.url),
                f"removal:{taken.source}/index", record, attempts,
            )  # fmt: skip
        except Failure as failure:
            return ItemResult("failed", f"index_{failure.kind}", failures=tuple(attempts.failed))
        return ItemResult("deleted", failures=tuple(attempts.failed))

    def _polite(
        self,
        action: Callable[[A], T],
        argument: A,
        taken: LeasedItem,
        stage: str,
        record: Record,
        attempts: _Attempts,
    ) -> T:
        """Query the source in turn. The wait for the turn is recorded as a separate stage."""
        name = f"document:{taken.source}/{stage}"
        source = self._sources[taken.source]
        asked_for = _asked_for(taken, source)
        while True:
            attempts.count += 1
            start_ns = time.perf_counter_ns()
            try:
                with source.turn(asked_for):
                    self._waited(taken, start_ns, record)
                    return _timed(action, argument, name, record)
            except Failure as failure:
                attempts.failed.append(FailedRequest(stage, failure.kind, str(failure)))
                self._hold(taken, failure)
                if failure.permanent or attempts.count > self._retries:
                    raise
                self._wait(attempts.count, failure.retry_after_s)

    def apply_holds(self, taken: LeasedItem) -> None:
        """Apply the pauses that hosts have requested from other sessions of the crawl."""
        for host, seconds in taken.holds.items():
            self._sources[taken.source].hold(host, seconds)

    def _hold(self, taken: LeasedItem, failure: Failure) -> None:
        """Apply the pause of a host to all sessions: here directly, in other processes by the database."""
        if failure.retry_after_s > 0:
            source = self._sources[taken.source]
            host = source.host(_asked_for(taken, source))
            source.hold(host, failure.retry_after_s)
            self._frontier.hold(taken.source, host, failure.retry_after_s)

    def _waited(self, taken: LeasedItem, start_ns: int, record: Record) -> None:
        """Record the wait for a turn at the source since ``start_ns``. Raises ``LeaseLostError``."""
        waited_ns = time.perf_counter_ns() - start_ns
        if waited_ns > _WAITED_NS:
            record(f"document:{taken.source}/politeness", OK, start_ns, start_ns + waited_ns)
            # The length of a host's pause is unknown in advance, so the lease cannot include it.
            if waited_ns > self._lease_s * 1e9 / 4 and not self._frontier.renew(taken):
                raise LeaseLostError

    def _attempt(self, action: Callable[[], T], stage: str, record: Record, attempts: _Attempts) -> T:
        """Send a request to the destination, with retries if they may help. Every attempt is recorded."""
        while True:
            attempts.count += 1
            try:
                return _timed(lambda _: action(), None, stage, record)
            except Failure as failure:
                attempts.failed.append(FailedRequest(stage.rpartition("/")[2], failure.kind, str(failure)))
                if failure.permanent or attempts.count > self._retries:
                    raise
                self._wait(attempts.count, failure.retry_after_s)
            finally:
                for request in self._destination.requests():
                    record(BULK, *request)

    def _wait(self, attempt: int, asked_s: float) -> None:
        backoff_s = min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2 ** min(attempt - 1, 16))
        time.sleep(min(self._longest_wait_s, max(asked_s, backoff_s)))


def _timed(action: Callable[[A], T], argument: A, stage: str, record: Record) -> T:
    """Make one attempt and record it. A fetched document has the exact time of its request."""
    start_ns = time.perf_counter_ns()
    try:
        value = action(argument)
    except (Failure, Skipped) as failure:
        outcome = failure.kind if isinstance(failure, Failure) else SKIPPED
        record(stage, outcome, start_ns, time.perf_counter_ns())
        raise
    if isinstance(value, Fetched):
        record(stage, OK, value.start_ns, value.end_ns, len(value.content))
    else:
        record(stage, OK, start_ns, time.perf_counter_ns())
    return value


def _asked_for(taken: LeasedItem, source: Source) -> Item:
    """Return the item to request: for a source's change log, the root."""
    return source.root() if taken.kind == CHANGES else taken.item


def _is_known(taken: LeasedItem, fetched: Fetched) -> bool:
    """Return whether the fetched version is indexed already.

    It is needed if only a fetch shows the version.
    """
    return not taken.item.version and bool(fetched.version) and plain(fetched.version) == taken.known_version
