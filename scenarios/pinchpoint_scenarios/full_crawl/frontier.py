"""Accesses the queue of the crawl: items to crawl, and the history of all others.

The queue is in the SQL tier of the farm, like that of a search product. It divides one crawl over many
sessions and processes. An item is *taken* under a lease, and *finished* by one statement that moves it from
the queue to the history. No item is lost, because leases end. No item is counted twice, because only the
session with the lease can move it.

A whole batch is one JSON parameter of one statement, written by orjson. A page links to a dozen others, and
an address has the same text in every page, so the text is created once (``orjson.Fragment``).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

import orjson

from ..databases.contract import DatabaseFailure, SqlConnection
from .dialects import CrawlSql
from .records import (
    CHANGES,
    REMOVAL,
    UNCHANGED,
    CycleState,
    Done,
    Failed,
    ItemResult,
    LeasedItem,
    SourceSummary,
    Start,
    Turn,
    key_of,
    plain,
)
from .result_cache import ResultCache
from .sources import Item, ItemKind

_SOURCES, _ADDRESSES = 32, 2**15
"""Largest number of remembered sources, and of remembered addresses per source. An address takes 250
bytes."""


def as_json(value: Any) -> str:
    """Return a value as JSON text, which every driver accepts."""
    return orjson.dumps(value).decode()


def done_lines(done: Sequence[Done]) -> str:
    """Return results of items as parameters of ``CrawlSql.finish``."""
    now_ns = time.perf_counter_ns()
    return as_json([_line(each, now_ns) for each in done])


def found_lines(source: str, items: Iterable[Item], kind: str = "") -> str:
    """Return items that may be new as parameters of ``CrawlSql.add``.

    Args:
        source: source of the items.
        items: found items.
        kind: kind of the items in the queue; "": the kind of each item.
    """
    keys = _keys(source)
    return as_json(
        [
            {
                "key": keys[item.url],
                "kind": kind or item.kind,
                "url": item.url,
                "detail": _storable(item.detail),
                "version": plain(item.version),
                "identity": _storable(item.identity),
            }
            for item in items
        ]
    )


def _line(done: Done, now_ns: int) -> dict[str, Any]:
    taken, result = done.taken, done.result
    line: dict[str, Any] = {
        "id": taken.id, "state": result.state, "reason": result.reason, "attempts": result.attempts,
        "bytes": result.size_bytes, "version": result.version, "address": result.url,
        "ago_s": (now_ns - done.end_ns) / 1e9, "latency_s": result.latency_s, "index_s": result.index_s,
    }  # fmt: skip
    access, links = result.access, result.links
    if result.state == "deleted":  # the item may not have been marked as seen, and it has no links
        access, links = (), ()
    if access is not None:
        line["grants"] = [
            {
                "principal": _storable(each.principal),
                "rights": _storable(each.rights),
                "allowed": each.allowed,
            }
            for each in access
        ]
    if links is not None:
        targets = _targets(taken.source)
        line["targets"] = [targets[url] for url in links]
    if result.failures:
        line["failures"] = [
            {"stage": each.stage, "failure": each.failure, "message": plain(each.message)}
            for each in result.failures
        ]
    return line


@lru_cache(maxsize=_SOURCES)
def _keys(source: str) -> ResultCache[str, str]:
    return ResultCache(lambda url: key_of(source, url), _ADDRESSES)


@lru_cache(maxsize=_SOURCES)
def _targets(source: str) -> ResultCache[str, orjson.Fragment]:
    keys = _keys(source)

    def target(url: str) -> orjson.Fragment:
        # As text, because orjson's bytes keep the whole buffer in which they were written.
        return orjson.Fragment(orjson.dumps({"target": keys[url], "url": url}).decode())

    return ResultCache(target, _ADDRESSES)


def _storable(text: str) -> str:
    """Return the name of a source in a form that any database accepts: without NUL and lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


T = TypeVar("T")

_ADD_AT_ONCE = 1000
_REMEMBERED = 200_000
PASSING = frozenset({"connection_lost", "unreachable", "too_many_connections", "deadlock", "serialization"})
"""Failures that may not occur in another attempt."""


class Queued:
    """Remembers the items that the sessions of this process have queued in this cycle, within a limit.

    The pages of a site link to the same targets, so the crawl database need not get them from each page.
    """

    def __init__(self) -> None:
        self._cycle = 0
        self._urls: dict[str, set[str]] = {}

    def new(self, done: Sequence[Done]) -> list[Item]:
        """Return found items that may be new, each once.

        Links are sorted by address. Otherwise sessions that find the same links at the same time would wait
        for each other.
        """
        taken = done[0].taken
        if taken.item.kind == "container":  # the content of a container is found only in that container
            return list({item.url: item for each in done for item in each.result.found}.values())
        known: Collection[str] = self._urls.get(taken.source, ()) if taken.cycle == self._cycle else ()
        result = {item.url: item for each in done for item in each.result.found if item.url not in known}
        return [result[url] for url in sorted(result)]

    def remember(self, taken: LeasedItem, items: Iterable[Item]) -> None:
        """Remember that the new links of an item are queued and committed."""
        if taken.item.kind == "container":
            return
        if taken.cycle != self._cycle:
            self._cycle, self._urls = taken.cycle, {}
        known = self._urls.setdefault(taken.source, set())
        if len(known) > _REMEMBERED:
            known.clear()
        known.update(item.url for item in items)


class Frontier:
    """One session's view of the crawl database. Every method raises ``DatabaseFailure``.

    Args:
        connection: connection of the session, inside the schema of the crawl.
        sql: statements of the crawl database.
        lease_s: length of a lease in seconds.
        patience_s: seconds for which finished work is kept while the crawl database does not answer.
        queued: items that the sessions of this process have queued; shared by them.
    """

    def __init__(
        self, connection: SqlConnection, sql: CrawlSql, lease_s: float, patience_s: float, queued: Queued
    ) -> None:
        self._connection = connection
        self._sql = sql
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._queued = queued
        self._holder = str(uuid.uuid4())

    def take(self, turns: Sequence[Turn], limit: int) -> list[LeasedItem]:
        """Return up to ``limit`` items of the first turn that has any. They are leased to this session.

        Call it after this session has finished, or failed to finish, its last items.
        """
        wanted = as_json([{"source": source, "leaf": leaf} for source, leaf in turns])
        values = (self._holder, self._lease_s, wanted, limit)
        rows = self._connection.execute(self._sql.take, values).fetchall()
        if crawled := [row[0] for row in rows if row[-1]]:
            self._connection.execute(self._sql.drop, (self._holder, as_json(crawled)))
        return [_taken(row) for row in rows if not row[-1]]

    def renew(self, taken: LeasedItem) -> bool:
        """Renew the lease of an item. Returns False if it had ended and another session has the item."""
        values = (self._lease_s, taken.id, self._holder)
        return self._connection.execute(self._sql.renew, values).rowcount == 1

    def place(self, group: int, places: int) -> int | None:
        """Take a place in a group for this connection, until it leaves or is lost; None: no place is free."""
        row = self._connection.execute(self._sql.place, (group, places)).fetchone()
        return int(row[0]) if row else None

    def leave(self, group: int, place: int) -> None:
        """Return a place."""
        self._connection.execute(self._sql.leave, (group, place))

    def hold(self, source: str, host: str, seconds: float) -> None:
        """Announce the pause of a host to all sessions, which see it with their next items."""
        values = (source, host, seconds)
        self._patiently(lambda: self._connection.execute(self._sql.hold, values))

    def finish(self, done: Sequence[Done]) -> list[bool]:
        """Move items to the history and queue their link targets, in one transaction.

        Returns for each item whether it was moved. False means that the lease had ended and another session
        has the item, and will count it.
        """
        return self._patiently(lambda: self._finish(done))

    def _finish(self, done: Sequence[Done]) -> list[bool]:
        taken = done[0].taken
        result = self._queued.new(done)
        # Nearly always this is one statement, and therefore one transaction.
        simple = len(result) <= _ADD_AT_ONCE and not any(item.version or item.identity for item in result)
        if simple and not any(_leads_on(each.result) for each in done):
            moved = self._move(done, result)
        else:
            with self._connection.transaction():
                moved = self._move(done, ())
                if moved:
                    self._add(taken.cycle, taken.source, result)
                    self._follow([each for each in done if each.taken.id in moved])
        # The item is not in the queue under this session: either an earlier attempt was committed and its
        # answer was lost, or the lease had ended.
        if lost := [each for each in done if each.taken.id not in moved]:
            items = as_json([{"id": each.taken.id, "key": each.taken.key} for each in lost])
            rows = self._connection.execute(self._sql.finished, (self._holder, items)).fetchall()
            moved.update(row[0] for row in rows)
        if moved:
            self._queued.remember(taken, result)
        return [each.taken.id in moved for each in done]

    def _move(self, done: Sequence[Done], items: Collection[Item]) -> set[int]:
        """Move the items leased to this session to the history, and queue the items found in them."""
        taken = done[0].taken
        values = (
            self._holder, done_lines(done), taken.cycle, taken.source, found_lines(taken.source, items),
        )  # fmt: skip
        return {row[0] for row in self._connection.execute(self._sql.finish, values).fetchall()}

    def _follow(self, done: Sequence[Done]) -> None:
        """Queue further targets of items, other than those found in them, and record items that were seen."""
        same = [each.taken.key for each in done if _is_as_it_was(each.result)]
        if same:
            self._connection.execute(self._sql.relink, (done[0].taken.cycle, as_json(same)))
        for each in done:
            taken, result = each.taken, each.result
            if result.removed:
                values = (taken.cycle, taken.source, as_json(list(result.removed)))
                self._connection.execute(self._sql.forget, values)
            if result.token is not None and result.more:
                self._add(taken.cycle, taken.source, [changes_since(result.token)], kind=CHANGES)
            elif result.token is not None:
                self._connection.execute(self._sql.mark, (taken.source, result.token))

    def state(self) -> CycleState:
        """Return the state of the crawl."""
        row = self._connection.execute(self._sql.state, (self._holder,)).fetchone()
        if row is None:
            raise DatabaseFailure("missing_row", "the crawl database holds no cycle")
        return CycleState(*row)

    def claim(self, state: CycleState) -> bool:
        """Claim the end of this cycle or the start of the next. Returns False if another session did."""
        values = (self._holder, self._lease_s, state.number, state.ended)
        return self._connection.execute(self._sql.claim, values).rowcount == 1

    def give_back(self, number: int) -> None:
        """Allow another session to claim the cycle."""
        self._patiently(lambda: self._connection.execute(self._sql.give_back, (number, self._holder)))

    def tokens(self) -> dict[str, str | None]:
        """Return source -> change token for its next incremental crawl."""
        return dict(self._patiently(lambda: self._connection.execute(self._sql.tokens).fetchall()))

    def begin(self, number: int, starts: Iterable[Start], *, anew: bool) -> datetime | None:
        """Start the cycle after ``number``. Return its start; None if another session started it.

        Args:
            number: number of the ended cycle.
            starts: starting point of each source.
            anew: whether known items are forgotten. Otherwise they are kept, and failed items are tried
                again.
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

    def enumerate_again(self, taken: LeasedItem, root: Item) -> None:
        """Record that a source's change log is too short.

        The source is enumerated completely in this cycle.
        """
        with self._connection.transaction():
            self._add(taken.cycle, taken.source, [root])
            self._connection.execute(self._sql.source, (taken.source, taken.cycle, True))

    def sweep(self, number: int) -> int:
        """Queue the removal of items that this cycle did not see. Return their number."""
        return self._patiently(lambda: self._connection.execute(self._sql.sweep, (number,)).rowcount)

    def end(self, number: int) -> tuple[datetime, datetime] | None:
        """End the cycle. Return start and end; None if another session has claimed the cycle meanwhile."""
        row = self._patiently(lambda: self._end(number))
        return (row[0], row[1]) if row else None

    def _end(self, number: int) -> tuple[Any, ...] | None:
        with self._connection.transaction():
            row = self._connection.execute(self._sql.end, (number, self._holder)).fetchone()
            if row:
                self._connection.execute(self._sql.keep_tokens, (number,))
        return row

    def summary(self, number: int) -> list[SourceSummary]:
        """Return the summary of each source in a cycle."""
        rows = self._patiently(lambda: self._connection.execute(self._sql.summary, (number,)).fetchall())
        return [SourceSummary(*(*row[:-1], json.loads(row[-1]))) for row in rows]

    def failures(self, number: int, each: int) -> list[Failed]:
        """Return failures of a cycle from the crawl log: the first ``each`` per kind and source."""
        values = (number, each)
        rows = self._patiently(lambda: self._connection.execute(self._sql.failures, values).fetchall())
        return [Failed(*row) for row in rows]

    def _patiently(self, action: Callable[[], T]) -> T:
        """Repeat an action that must not be lost after temporary failures, for up to ``patience_s``.

        Every such action can be repeated: the second time finds that it was already done.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return action()
            except DatabaseFailure as failure:
                if failure.outcome not in PASSING or time.monotonic() > deadline:
                    raise
                self._connection.wait_until_due()

    def _add(self, cycle: int, source: str, items: Iterable[Item], kind: str = "") -> None:
        rest = iter(items)
        while some := list(islice(rest, _ADD_AT_ONCE)):
            lines = found_lines(source, some, kind)
            self._connection.execute(self._sql.add, (cycle, source, lines))
            if any(item.version for item in some):
                self._connection.execute(self._sql.seen, (cycle, lines))
            if any(item.identity for item in some):
                self._connection.execute(self._sql.moved, (cycle, source, lines))


def changes_since(token: str) -> Item:
    """Return a page of a source's change log as an item of the queue."""
    return Item("container", f"changes:{plain(token)}", token)


def _taken(row: tuple[Any, ...]) -> LeasedItem:
    number, cycle, key, source, kind, url, detail, version, identity, known, holds, _ = row
    leaf: ItemKind = "document" if kind in ("document", REMOVAL) else "container"
    item = Item(leaf, url, detail, version, identity, known or "")
    return LeasedItem(number, cycle, key, source, kind, item, known, json.loads(holds) if holds else {})


def _leads_on(result: ItemResult) -> bool:
    """Return whether a result has further effects besides the items found in it."""
    return bool(result.removed) or result.token is not None or _is_as_it_was(result)


def _is_as_it_was(result: ItemResult) -> bool:
    """Return whether the source reported the item as unchanged.

    The item was not read in that case, and its links are known.
    """
    return result.reason == UNCHANGED and result.links is None
