"""Records of the crawl database: items, their results, the state of a crawl.

Records that exist per document are named tuples: a frozen dataclass takes several times longer to create.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from .sources import Grant, Item

REMOVAL = "removal"
"""The kind of a queued item that no longer exists in its source and will be removed from the index."""
CHANGES = "changes"
"""The kind of a queued page of a source's change log; its detail is the token."""
UNCHANGED = "unchanged"
"""The reason for a fetched document whose version is indexed already."""

_MESSAGE_LENGTH = 300

FinalState = Literal["ok", "skipped", "failed", "deleted"]
Turn = tuple[str, bool]
"""A source, with either its leaves (to fetch or remove) or its containers."""


class LeasedItem(NamedTuple):
    """An item that this session has leased.

    Attributes:
        id: its number in the queue.
        cycle: its crawl cycle.
        key: its key.
        source: the source's name.
        kind: ``container``, ``document``, ``changes`` or ``removal``.
        item: itself.
        known_version: the version that is indexed; None if it is not indexed.
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
        reason: why it was skipped, or the name of the failure; "" on success.
        attempts: number of requests to the repository.
        size_bytes: what was fetched.
        latency_s: repository latency, from the request to the last byte; None if nothing was fetched.
        index_s: time of the search tier; None if it was not used.
        version: its version from now on.
        url: the address in the index; "": its own.
        access: its access list; None if unknown.
        links: its link targets; None if it was not read, or is unchanged.
        found: further items to crawl.
        removed: removed items, as the source's change log identifies them.
        token: change token for continuing after this page.
        more: whether the log already has more; otherwise the token applies after this crawl.
        failures: the failed requests.
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
        taken: itself.
        result: its result.
        end_ns: ``time.perf_counter_ns()`` at its end.
    """

    taken: LeasedItem
    result: ItemResult
    end_ns: int


@dataclass(frozen=True, slots=True)
class CycleState:
    """The state of the crawl.

    Attributes:
        number: of the current cycle.
        ended: whether the cycle has ended.
        claimed: whether another session is ending it or starting the next.
        queued: whether the queue has items, leased or not.
        lasted_s: from the start of this run's first cycle to this one's end; None while it runs.
        since_start_s: since this cycle's start; None for the cycle before this run's first one.
    """

    number: int
    ended: bool
    claimed: bool
    queued: bool
    lasted_s: float | None
    since_start_s: float | None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """One source's result in a cycle, in the order of the columns of ``CrawlSql.summary``.

    Attributes:
        source: its name.
        count: indexed documents.
        failures: documents and containers that failed.
        skipped: items that are not documents.
        deleted: documents that no longer exist and were removed from the index.
        unchanged: documents whose version was indexed before.
        size_bytes: of the indexed documents.
        started: when its root was taken.
        ended: when its last item was finished.
        paused_s: how long the crawl was interrupted between these two, after being killed.
        active_seconds: number of seconds with at least one indexed document.
        latency_s: mean repository latency of fetched documents; None without any.
        latency_p50_s: its median.
        latency_p95_s: 95th percentile of it.
        failures_by_kind: name of the failure -> number.
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
        source: its name.
        item: its root, or a page of its change log.
        kind: ``container`` or ``changes``.
    """

    source: str
    item: Item
    kind: str


def plain(text: str) -> str:
    """A message as text for any database: printable ASCII, other characters escaped, shortened."""
    return (
        ascii(text[:_MESSAGE_LENGTH])[1:-1]
        if not (text.isascii() and text.isprintable())
        else text[:_MESSAGE_LENGTH]
    )


def key_of(source: str, url: str) -> str:
    """The key of an item's row in the crawl database and of its entry in an index.

    The same source and address always give the same key, so that repeated work has the same target.

    Returns:
        A UUID as text, in the form every database takes: 128 bits of the SHA-256 of both.
    """
    digest = hashlib.sha256(f"{source}\n{url}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
