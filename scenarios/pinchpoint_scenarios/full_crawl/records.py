"""Records exchanged with the crawl database: items, their results, the state of a crawl.

What is made for every document is a named tuple: a frozen dataclass takes several times as long to make.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from .sources import Grant, Item

REMOVAL = "removal"
"""The kind of a queued item that is gone from its source and is to go from the index."""
CHANGES = "changes"
"""The kind of a queued page of a source's change log; its detail is the token."""
UNCHANGED = "unchanged"
"""The reason of a document that was fetched and found to be what is indexed already."""

_MESSAGE_LENGTH = 300

FinalState = Literal["ok", "skipped", "failed", "deleted"]
Turn = tuple[str, bool]
"""A source, and whether its leaves (what is fetched or removed) or its containers are meant."""


class LeasedItem(NamedTuple):
    """An item whose lease this session has.

    Attributes:
        id: its number in the queue.
        cycle: the crawl it belongs to.
        key: its key.
        source: the source's name.
        kind: ``container``, ``document``, ``changes`` or ``removal``.
        item: itself.
        known_version: the version it was last indexed with; None if it is not.
        holds: hosts of its source in a pause: name -> seconds left.
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
    """A request that failed, whether or not another attempt helped."""

    stage: str
    failure: str
    message: str


class ItemResult(NamedTuple):
    """What became of an item.

    Attributes:
        state: ``ok``, ``skipped``, ``failed`` or ``deleted``.
        reason: why it was skipped, or the name of the failure; "" where it is ok.
        attempts: how often the repository was asked.
        size_bytes: what was fetched.
        latency_s: repository latency, from the request to the last byte; None if nothing was fetched.
        index_s: how long the search tier took; None if it was not asked.
        version: its version from now on.
        url: the address it is indexed under; "": its own.
        access: its access list; None if it is not known.
        links: the addresses it links to; None if it was not read, or is as it was.
        found: items to crawl because of it.
        removed: what is gone, as the source's change log identifies it.
        token: where the source's change log continues after this.
        more: whether the log has more already; else the token applies when this crawl has ended.
        failures: the requests that failed.
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
    """An item that was seen to its end.

    Attributes:
        taken: itself.
        result: what became of it.
        end_ns: ``time.perf_counter_ns()`` when it was done.
    """

    taken: LeasedItem
    result: ItemResult
    end_ns: int


@dataclass(frozen=True, slots=True)
class CycleState:
    """Where the crawl stands.

    Attributes:
        number: of the current cycle.
        ended: whether it has ended.
        claimed: whether another session is busy ending it or starting the next.
        queued: whether anything is in the queue, leased or not.
        lasted_s: from the start of this run's first cycle to this one's end; None while it runs.
        since_start_s: since this cycle's start; None for what this run's first cycle follows.
    """

    number: int
    ended: bool
    claimed: bool
    queued: bool
    lasted_s: float | None
    since_start_s: float | None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What became of one source in a cycle, in the order of the columns of ``CrawlSql.summary``.

    Attributes:
        source: its name.
        count: documents that were indexed.
        failures: documents, and containers, that could not be crawled.
        skipped: what was no document.
        deleted: documents that were gone, and are gone from the index.
        unchanged: documents that are what was indexed before.
        size_bytes: of the indexed documents.
        started: when its root was taken.
        ended: when its last item was finished.
        paused_s: how long the crawl lay still between these two, killed and not yet resumed.
        active_seconds: in how many seconds at least one document was indexed.
        latency_s: mean repository latency of the documents that were fetched; None if none was.
        latency_p50_s: its median.
        latency_p95_s: what 95 % of them stayed below.
        failures_by_kind: name of the failure -> how many.
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
    """Where the crawl of one source begins.

    Attributes:
        source: its name.
        item: its root, or a page of its change log.
        kind: ``container`` or ``changes``.
    """

    source: str
    item: Item
    kind: str


def plain(text: str) -> str:
    """A message as any database takes it: printable ASCII, everything else escaped, not too long."""
    return (
        ascii(text[:_MESSAGE_LENGTH])[1:-1]
        if not (text.isascii() and text.isprintable())
        else text[:_MESSAGE_LENGTH]
    )


def key_of(source: str, url: str) -> str:
    """What an item's row in the crawl database and its entry in an index are found by.

    The same for the same source and address, always: what is done twice is done to one thing.

    Returns:
        A UUID as text, in the form every database takes: 128 bits of the SHA-256 of both.
    """
    digest = hashlib.sha256(f"{source}\n{url}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
