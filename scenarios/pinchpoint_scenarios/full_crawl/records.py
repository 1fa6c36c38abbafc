"""Defines the records of the crawl database: items, their results, the state of a crawl.

Records that exist per document are named tuples, because a frozen dataclass takes several times longer to
create.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from .sources import Grant, Item

REMOVAL = "removal"
"""Kind of a queued item that no longer exists in its source and must be removed from the index."""
CHANGES = "changes"
"""Kind of a queued page of a source's change log. Its detail is the token."""
UNCHANGED = "unchanged"
"""Reason for a fetched document whose version is already indexed."""

_MESSAGE_LENGTH = 300

FinalState = Literal["ok", "skipped", "failed", "deleted"]
Turn = tuple[str, bool]
"""A source, with either its leaves (to fetch or remove) or its containers."""


class LeasedItem(NamedTuple):
    """An item that this session has leased.

    Attributes:
        id: number of the item in the queue.
        cycle: number of its crawl cycle.
        key: key of the item.
        source: name of the source.
        kind: ``container``, ``document``, ``changes`` or ``removal``.
        item: the item.
        known_version: version that is indexed; None if the item is not indexed.
        holds: paused hosts of its source: name -> seconds left.
    """

    id: int
    cycle: int
    key: str
    source: str
    kind: str
    item: Item
    known_version: str | None
    holds: Mapping[str, float]


class FailedRequest(NamedTuple):
    """A failed request, also if a retry succeeded."""

    stage: str
    failure: str
    message: str


class ItemResult(NamedTuple):
    """The result of an item.

    Attributes:
        state: ``ok``, ``skipped``, ``failed`` or ``deleted``.
        reason: why the item was skipped, or the name of the failure; "" on success.
        attempts: number of requests to the repository.
        size_bytes: bytes that were fetched.
        latency_s: repository latency, from the request to the last byte; None if nothing was fetched.
        index_s: time of the search tier in seconds; None if it was not used.
        version: version of the item from now on.
        url: address in the index; "": that of the item.
        access: access list of the item; None if unknown.
        links: link targets of the item; None if it was not read or is unchanged.
        found: further items to crawl.
        removed: removed items, as the source's change log identifies them.
        token: change token for continuing after this page.
        more: whether the log already has more; otherwise the token applies after this crawl.
        failures: failed requests.
    """

    state: FinalState
    reason: str = ""
    attempts: int = 0
    size_bytes: int = 0
    latency_s: float | None = None
    index_s: float | None = None
    version: str = ""
    url: str = ""
    access: tuple[Grant, ...] | None = None
    links: tuple[str, ...] | None = None
    found: tuple[Item, ...] = ()
    removed: tuple[str, ...] = ()
    token: str | None = None
    more: bool = False
    failures: tuple[FailedRequest, ...] = ()


class Done(NamedTuple):
    """An item that was processed to its end.

    Attributes:
        taken: leased item.
        result: result of the item.
        end_ns: ``time.perf_counter_ns()`` at the end of the item.
    """

    taken: LeasedItem
    result: ItemResult
    end_ns: int


@dataclass(frozen=True, slots=True)
class CycleState:
    """The state of the crawl.

    Attributes:
        number: number of the current cycle.
        ended: whether the cycle has ended.
        claimed: whether another session is ending it or starting the next.
        queued: whether the queue has items, leased or not.
        lasted_s: seconds from the start of this run's first cycle to the end of the current one; None while
            it runs.
        since_start_s: seconds since the start of the cycle; None for the cycle before this run's first one.
    """

    number: int
    ended: bool
    claimed: bool
    queued: bool
    lasted_s: float | None
    since_start_s: float | None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """The result of one source in a cycle, in the order of the columns of ``CrawlSql.summary``.

    Attributes:
        source: name of the source.
        count: number of indexed documents.
        failures: number of documents and containers that failed.
        skipped: number of items that are not documents.
        deleted: number of documents that no longer exist and were removed from the index.
        unchanged: number of documents whose version was already indexed.
        size_bytes: size of the indexed documents in bytes.
        started: time at which its root was taken.
        ended: time at which its last item was finished.
        paused_s: seconds between these two times in which the crawl was interrupted.
        active_seconds: number of seconds with at least one indexed document.
        latency_s: mean repository latency of fetched documents in seconds; None without documents.
        latency_p50_s: median repository latency in seconds.
        latency_p95_s: 95th percentile of the repository latency in seconds.
        failures_by_kind: name of the failure -> number of items.
    """

    source: str
    count: int
    failures: int
    skipped: int
    deleted: int
    unchanged: int
    size_bytes: int
    started: datetime
    ended: datetime
    paused_s: float
    active_seconds: int
    latency_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    failures_by_kind: dict[str, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """One line of the crawl log: an item that could not be crawled."""

    source: str
    url: str
    failure: str
    message: str
    attempts: int
    ended: datetime


@dataclass(frozen=True, slots=True)
class Start:
    """The starting point of one source's crawl.

    Attributes:
        source: name of the source.
        item: root of the source, or a page of its change log.
        kind: ``container`` or ``changes``.
    """

    source: str
    item: Item
    kind: str


def plain(text: str) -> str:
    """Return a message as text for any database: shortened printable ASCII, with other characters escaped."""
    return (
        ascii(text[:_MESSAGE_LENGTH])[1:-1]
        if not (text.isascii() and text.isprintable())
        else text[:_MESSAGE_LENGTH]
    )


def key_of(source: str, url: str) -> str:
    """Return the key of an item's row in the crawl database, and of its entry in an index.

    The same source and address always give the same key, so that repeated work has the same target.

    Returns:
        The key is a UUID as text, which every database accepts: 128 bits of the SHA-256 of both.
    """
    digest = hashlib.sha256(f"{source}\n{url}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
