"""The crawl database: what is still to be crawled, and what became of everything else.

The frontier is a queue in the farm's own SQL tier, as a search product's is; it is also what spreads one
crawl over many sessions and processes. An item is *taken* under a lease and *finished* by one statement that
moves it from the queue to the history: so none is lost (a lease runs out) and none is counted twice (only who
still holds the lease can move it).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Literal, TypeVar

from ..databases.contract import DatabaseFailure, SqlConnection
from .dialects import CrawlSql
from .keys import key_of
from .sources import Grant, Item

T = TypeVar("T")

REMOVAL = "removal"
"""The kind of a queued item that is gone from its source and is to go from the index."""
CHANGES = "changes"
"""The kind of a queued page of a source's change log; its detail is the token."""
UNCHANGED = "unchanged"
"""The reason of a document that was fetched and found to be what is indexed already."""

_ADD_AT_ONCE = 1000
_PASSING = frozenset({"connection_lost", "unreachable", "too_many_connections", "deadlock", "serialization"})
"""Failures that another attempt may not meet."""
_MESSAGE_LENGTH = 300

FinalState = Literal["ok", "skipped", "failed", "deleted"]
Turn = tuple[str, bool]
"""A source, and whether its leaves (what is fetched or removed) or its containers are meant."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An item this session holds the lease of.

    Attributes:
        id: its number in the queue.
        cycle: the crawl it belongs to.
        key: its key.
        source: the source's name.
        kind: ``container``, ``document``, ``changes`` or ``removal``.
        item: itself.
        known_version: the version it was last indexed with; None where it is not.
    """

    id: int
    cycle: int
    key: uuid.UUID
    source: str
    kind: str
    item: Item
    known_version: str | None


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that failed, whether or not another attempt helped."""

    stage: str
    failure: str
    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an item.

    Attributes:
        state: ``ok``, ``skipped``, ``failed`` or ``deleted``.
        reason: why it was skipped, or the name of the failure; "" where it is ok.
        attempts: how often the repository was asked.
        size_bytes: what was fetched.
        latency_s: repository latency, from the request to the last byte; None where nothing was fetched.
        index_s: how long the search tier took; None where it was not asked.
        version: what it is known by from now on.
        url: the address it is indexed under; "": its own.
        access: its access list; None where it is not known.
        links: the addresses it links to; None where it was not read.
        found: what is to be crawled because of it.
        removed: what is gone, as the source's change log identifies it.
        token: where the source's change log goes on behind this.
        more: whether it goes on already now; else the token holds when this crawl has ended.
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


@dataclass(frozen=True, slots=True)
class CycleState:
    """Where the crawl stands.

    Attributes:
        number: of the current cycle.
        ended: whether it has ended.
        claimed: whether another session is busy ending it or starting the next.
        queued: whether anything is in the queue, leased or not.
        lasted_s: from the start of this run's first cycle to this one's end; None while it goes on.
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
        latency_s: mean repository latency of the documents that were fetched; None where none was.
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


class Frontier:
    """One session's view of the crawl database. Every method raises ``DatabaseFailure``.

    Args:
        connection: the session's own, inside the crawl's schema.
        sql: the statements.
        lease_s: how long what is taken or claimed stays this session's.
        patience_s: how long finished work is kept for a crawl database that does not answer.
    """

    def __init__(self, connection: SqlConnection, sql: CrawlSql, lease_s: float, patience_s: float) -> None:
        self._connection = connection
        self._sql = sql
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._holder = uuid.uuid4()

    def take(self, turns: Sequence[Turn], limit: int) -> list[Taken]:
        """Up to ``limit`` items of the first turn that has any, that nobody else gets while the lease lasts.

        To be called when this session has finished, or failed to finish, what it took before.
        """
        sources, leaves = [source for source, _ in turns], [leaf for _, leaf in turns]
        values = (self._holder, self._lease_s, sources, leaves, limit)
        return [_taken(row) for row in self._connection.execute(self._sql.take, values).fetchall()]

    def renew(self, taken: Taken) -> bool:
        """Begin the lease of an item anew; False where it had run out and another session has the item."""
        values = (self._lease_s, taken.id, self._holder)
        return self._connection.execute(self._sql.renew, values).rowcount == 1

    def place(self, group: int, places: int) -> int | None:
        """Get one of a group's places, this connection's until it is left or lost; None: all are taken."""
        row = self._connection.execute(self._sql.place, (group, places)).fetchone()
        return int(row[0]) if row else None

    def leave(self, group: int, place: int) -> None:
        """Give a place up."""
        self._connection.execute(self._sql.leave, (group, place))

    def finish(self, taken: Taken, result: Result) -> bool:
        """Move an item to the history and what it led to into the queue, in one transaction.

        Returns False where our lease had run out and another session has the item: it is theirs to count.
        """
        return self._patiently(lambda: self._finish(taken, result))

    def _finish(self, taken: Taken, result: Result) -> bool:
        values = self._values(taken, result)
        if not (result.found or result.removed or result.token is not None):
            finished = self._connection.execute(self._sql.finish, values).rowcount == 1
        else:
            with self._connection.transaction():
                finished = self._connection.execute(self._sql.finish, values).rowcount == 1
                if finished:
                    self._follow(taken, result)
        # Not in the queue as ours: either an earlier attempt was committed and only its answer got lost,
        # or the lease did.
        if not finished:
            found = self._connection.execute(self._sql.finished, (taken.key, self._holder, taken.id))
            finished = found.rowcount == 1
        return finished

    def _values(self, taken: Taken, result: Result) -> tuple[Any, ...]:
        links = None if result.links is None else [(key_of(taken.source, url), url) for url in result.links]
        access = result.access
        if result.state == "deleted":  # nobody may see it, and it leads nowhere
            access, links = (), []
        failures = result.failures
        return (
            taken.id, self._holder, taken.cycle, result.state, result.reason, result.attempts,
            result.size_bytes, result.latency_s, result.index_s, result.version,
            None if access is None else [grant.principal for grant in access],
            None if access is None else [grant.rights for grant in access],
            None if access is None else [grant.allowed for grant in access],
            None if links is None else [key for key, _ in links],
            None if links is None else [url for _, url in links],
            [each.stage for each in failures],
            [each.failure for each in failures],
            [plain(each.message) for each in failures],
            result.url,
        )  # fmt: skip

    def _follow(self, taken: Taken, result: Result) -> None:
        """Put what an item led to into the queue, and note what was seen."""
        self._add(taken.cycle, taken.source, result.found)
        if result.removed:
            values = (taken.cycle, taken.source, list(result.removed))
            self._connection.execute(self._sql.forget, values)
        if result.token is not None and result.more:
            self._add(taken.cycle, taken.source, [changes_since(result.token)], kind=CHANGES)
        elif result.token is not None:
            self._connection.execute(self._sql.mark, (taken.source, result.token))

    def state(self) -> CycleState:
        """Where the crawl stands."""
        row = self._connection.execute(self._sql.state, (self._holder,)).fetchone()
        if row is None:
            raise DatabaseFailure("missing_row", "the crawl database holds no cycle")
        return CycleState(*row)

    def claim(self, state: CycleState) -> bool:
        """Become the one session that ends this cycle, or starts the next; False where another did."""
        values = (self._holder, self._lease_s, state.number, state.ended)
        return self._connection.execute(self._sql.claim, values).rowcount == 1

    def give_back(self, number: int) -> None:
        """Let another session claim the cycle."""
        self._patiently(lambda: self._connection.execute(self._sql.give_back, (number, self._holder)))

    def tokens(self) -> dict[str, str | None]:
        """Source -> the change token its next incremental crawl goes on from."""
        return dict(self._patiently(lambda: self._connection.execute(self._sql.tokens).fetchall()))

    def begin(self, number: int, starts: Iterable[Start], *, anew: bool) -> datetime | None:
        """Start the cycle after ``number``; its start, None if another session did.

        Args:
            number: of the cycle that has ended.
            starts: one per source.
            anew: forget what is known; else what failed is tried again, and what is known stays so.
        """
        starts = list(starts)
        return self._patiently(lambda: self._begin(number, starts, anew=anew))

    def _begin(self, number: int, starts: Sequence[Start], *, anew: bool) -> datetime | None:
        execute = self._connection.execute
        with self._connection.transaction():
            if execute(self._sql.begin, (number, self._holder)).rowcount == 1:
                for statement in self._sql.forget_all if anew else ():
                    execute(statement)
                for start in starts:
                    execute(self._sql.source, (start.source, number + 1, start.kind == "container"))
                    self._add(number + 1, start.source, [start.item], kind=start.kind)
                    if not anew:
                        execute(self._sql.retry, (number + 1, start.source))
        row = execute(self._sql.begun, (number, self._holder)).fetchone()
        return row[0] if row else None

    def enumerate_again(self, taken: Taken, root: Item) -> None:
        """Note that a source's change log does not reach back: all of it is enumerated in this cycle."""
        with self._connection.transaction():
            self._connection.execute(self._sql.source, (taken.source, taken.cycle, True))
            self._add(taken.cycle, taken.source, [root])

    def sweep(self, number: int) -> int:
        """Queue the removal of what this cycle enumerated its source for and did not see; how many."""
        return self._patiently(lambda: self._connection.execute(self._sql.sweep, (number,)).rowcount)

    def end(self, number: int) -> tuple[datetime, datetime] | None:
        """End the cycle: (started, ended); None where another session has claimed it meanwhile."""
        row = self._patiently(lambda: self._end(number))
        return (row[0], row[1]) if row else None

    def _end(self, number: int) -> tuple[Any, ...] | None:
        with self._connection.transaction():
            row = self._connection.execute(self._sql.end, (number, self._holder)).fetchone()
            if row:
                self._connection.execute(self._sql.keep_tokens, (number,))
        return row

    def summary(self, number: int) -> list[SourceSummary]:
        """What the history says of each source in a cycle."""
        rows = self._patiently(lambda: self._connection.execute(self._sql.summary, (number,)).fetchall())
        return [_summary(row) for row in rows]

    def failures(self, number: int, each: int) -> list[Failed]:
        """The crawl log's failures in a cycle: the first ``each`` of every kind of every source."""
        values = (number, each)
        rows = self._patiently(lambda: self._connection.execute(self._sql.failures, values).fetchall())
        return [Failed(*row) for row in rows]

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do what must not be lost, again where it met a passing failure, while ``patience_s`` lasts.

        Every such action can be done twice: the second time finds that it has been done.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return action()
            except DatabaseFailure as failure:
                if failure.outcome not in _PASSING or time.monotonic() > deadline:
                    raise
                self._connection.wait_until_due()

    def _add(self, cycle: int, source: str, items: Iterable[Item], kind: str = "") -> None:
        rest = iter(items)
        while some := list(islice(rest, _ADD_AT_ONCE)):
            keys = [key_of(source, item.url) for item in some]
            kinds = [kind or item.kind for item in some]
            versions = [plain(item.version) for item in some]
            identities = [item.identity for item in some]
            values = (
                cycle, source, keys, kinds, [each == "document" for each in kinds],
                [item.url for item in some], [item.detail for item in some], versions, identities,
            )  # fmt: skip
            self._connection.execute(self._sql.add, values)
            if any(versions):
                self._connection.execute(self._sql.seen, (cycle, keys, versions))
            if any(identities):
                self._connection.execute(self._sql.moved, (cycle, source, identities, keys))


def changes_since(token: str) -> Item:
    """A page of a source's change log, as the queue holds it."""
    return Item("container", f"changes:{plain(token)}", token)


def plain(text: str) -> str:
    """A message as any database takes it: printable ASCII, everything else escaped, not too long."""
    return (
        ascii(text[:_MESSAGE_LENGTH])[1:-1]
        if not (text.isascii() and text.isprintable())
        else text[:_MESSAGE_LENGTH]
    )


def _summary(row: tuple[Any, ...]) -> SourceSummary:
    return SourceSummary(*(*row[:-1], json.loads(row[-1])))


def _taken(row: tuple[Any, ...]) -> Taken:
    number, cycle, key, source, kind, url, detail, version, identity, known = row
    item = Item("document" if kind in ("document", REMOVAL) else "container", url, detail, version, identity)
    return Taken(number, cycle, key, source, kind, item, known)
