"""The crawl database: what is still to be crawled, and what became of everything else.

The frontier is a queue in the farm's own SQL tier, as a search product's is; it is also what spreads one
crawl over many sessions and processes. An item is *taken* under a lease and *finished* by one statement that
moves it from the queue to the history: so none is lost (a lease runs out) and none is counted twice (only who
still holds the lease can move it).
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal, LiteralString, TypeVar

from ..databases.contract import DatabaseFailure
from ..databases.postgresql import ReconnectingConnection
from .sources import Item

T = TypeVar("T")

TABLES = ("queue", "history", "cycle")

CREATE: tuple[LiteralString, ...] = (
    # key: a digest of source and url, because a url can be longer than an index entry may be
    """CREATE TABLE queue (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key uuid NOT NULL UNIQUE, source text NOT NULL,
        kind text NOT NULL, url text NOT NULL, detail text NOT NULL,
        holder uuid, held_until timestamptz NOT NULL DEFAULT '-infinity', taken timestamptz)
        WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)""",
    """CREATE TABLE history (
        key uuid PRIMARY KEY, source text NOT NULL, kind text NOT NULL, url text NOT NULL,
        state text NOT NULL, reason text NOT NULL, attempts int NOT NULL, bytes bigint NOT NULL,
        latency_s float8, started timestamptz NOT NULL, ended timestamptz NOT NULL,
        holder uuid NOT NULL, id bigint NOT NULL)""",
    """CREATE TABLE cycle (
        number int PRIMARY KEY, started timestamptz, ended timestamptz,
        holder uuid, held_until timestamptz NOT NULL DEFAULT '-infinity')""",
    "INSERT INTO cycle (number, ended) VALUES (0, now())",  # what the first cycle follows
)

# The lease is not indexed, so that taking an item changes no index. Oldest first: pages of a list are
# enumerated as its documents are crawled, and the queue stays short. Who asks for more has finished what it
# had: what the queue still calls its own it took without hearing so, or could not finish.
_TAKE: LiteralString = """
    UPDATE queue
    SET holder = $1, held_until = clock_timestamp() + $2 * interval '1 s', taken = clock_timestamp()
    WHERE id = ANY (ARRAY(
        SELECT id FROM queue WHERE held_until < clock_timestamp() OR holder = $1
        ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED))
    RETURNING id, key, source, kind, url, detail"""
_ADD: LiteralString = """
    INSERT INTO queue (key, source, kind, url, detail)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) AS new (key)
    WHERE NOT EXISTS (SELECT FROM history WHERE history.key = new.key) ON CONFLICT DO NOTHING"""
_FINISH: LiteralString = """
    WITH done AS (DELETE FROM queue WHERE id = $1 AND holder = $2 RETURNING *)
    INSERT INTO history SELECT key, source, kind, url, $3, $4, $5::int, $6::bigint, $7::float8, taken,
        clock_timestamp(), $2, id FROM done
    ON CONFLICT DO NOTHING"""
_FINISHED: LiteralString = "SELECT FROM history WHERE key = $1 AND holder = $2 AND id = $3"
_STATE: LiteralString = """
    SELECT number, ended IS NOT NULL, held_until >= clock_timestamp() AND holder <> $1,
        EXISTS (SELECT FROM queue),
        extract(epoch FROM ended - (SELECT started FROM cycle WHERE number = 1))::float8
    FROM cycle ORDER BY number DESC LIMIT 1"""
_CLAIM: LiteralString = """
    UPDATE cycle SET holder = $1, held_until = clock_timestamp() + $2 * interval '1 s'
    WHERE number = $3 AND (ended IS NOT NULL) = $4 AND (held_until < clock_timestamp() OR holder = $1)
        AND NOT EXISTS (SELECT FROM queue) AND NOT EXISTS (SELECT FROM cycle WHERE number > $3)"""
_GIVE_BACK: LiteralString = "UPDATE cycle SET held_until = '-infinity' WHERE number = $1 AND holder = $2"
_END: LiteralString = """
    UPDATE cycle SET ended = coalesce(ended, clock_timestamp()) WHERE number = $1 AND holder = $2
    RETURNING started, ended"""
_BEGIN: LiteralString = """
    INSERT INTO cycle (number, started, holder) SELECT number + 1, clock_timestamp(), holder FROM cycle
    WHERE number = $1 AND holder = $2 ON CONFLICT DO NOTHING"""
_BEGUN: LiteralString = "SELECT started FROM cycle WHERE number = $1 + 1 AND holder = $2"
_SUMMARY: LiteralString = """
    WITH kinds AS (SELECT source, reason, count(*) AS n FROM history WHERE state = 'failed' GROUP BY 1, 2)
    SELECT source, count(*) FILTER (WHERE kind = 'document' AND state = 'ok'),
        count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'skipped'),
        coalesce(sum(bytes) FILTER (WHERE state = 'ok'), 0)::bigint, min(started), max(ended),
        avg(latency_s) FILTER (WHERE kind = 'document'),
        (SELECT coalesce(jsonb_object_agg(reason, n), '{}') FROM kinds WHERE kinds.source = history.source)
    FROM history GROUP BY source"""

_ADD_AT_ONCE = 1000
_PASSING = frozenset({"connection_lost", "unreachable", "too_many_connections", "deadlock", "serialization"})
"""Failures that another attempt may not meet."""

FinalState = Literal["ok", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Taken:
    """An item this session holds the lease of."""

    id: int
    key: uuid.UUID
    source: str
    item: Item


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an item.

    Attributes:
        state: ``ok``, ``skipped`` or ``failed``.
        reason: why it was skipped, or the name of the failure; "" where it is ok.
        attempts: how often the repository was asked.
        size_bytes: what was fetched.
        latency_s: repository latency, from the request to the last byte; None where nothing was fetched.
    """

    state: FinalState
    reason: str
    attempts: int
    size_bytes: int
    latency_s: float | None


@dataclass(frozen=True, slots=True)
class CycleState:
    """Where the crawl stands.

    Attributes:
        number: of the current cycle; 0 before the first.
        ended: whether it has ended.
        claimed: whether another session is busy ending it or starting the next.
        queued: whether anything is in the queue, leased or not.
        lasted_s: from the first cycle's start to this one's end; None while it goes on.
    """

    number: int
    ended: bool
    claimed: bool
    queued: bool
    lasted_s: float | None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What became of one source in a cycle, in the order of ``_SUMMARY``'s columns.

    Attributes:
        source: its name.
        count: documents that were indexed.
        failures: documents, and containers, that could not be crawled.
        skipped: what was no document.
        size_bytes: of the indexed documents.
        started: when its root was taken.
        ended: when its last item was finished.
        latency_s: mean repository latency of the documents that were fetched; None where none was.
        failures_by_kind: name of the failure -> how many.
    """

    source: str
    count: int
    failures: int
    skipped: int
    size_bytes: int
    started: datetime
    ended: datetime
    latency_s: float | None
    failures_by_kind: dict[str, int]


class Frontier:
    """One session's view of the crawl database. Every method raises ``DatabaseFailure``.

    Args:
        connection: the session's own, inside the crawl's schema.
        lease_s: how long what is taken or claimed stays this session's.
        patience_s: how long finished work is kept for a crawl database that does not answer.
    """

    def __init__(self, connection: ReconnectingConnection, lease_s: float, patience_s: float) -> None:
        self._connection = connection
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._holder = uuid.uuid4()

    def take(self, limit: int) -> list[Taken]:
        """Up to ``limit`` items, in queue order, that nobody else gets while the lease lasts.

        To be called when this session has finished, or failed to finish, what it took before.
        """
        rows = self._connection.execute(_TAKE, (self._holder, self._lease_s, limit)).fetchall()
        return [Taken(number, key, source, Item(*item)) for number, key, source, *item in sorted(rows)]

    def finish(self, taken: Taken, result: Result, children: Sequence[Item] = ()) -> bool:
        """Move an item to the history and its children to the queue, in one transaction.

        Returns False where our lease had run out and another session has the item: it is theirs to count.
        """
        return self._patiently(lambda: self._finish(taken, result, children))

    def _finish(self, taken: Taken, result: Result, children: Sequence[Item]) -> bool:
        values = (
            taken.id, self._holder, result.state, result.reason, result.attempts, result.size_bytes,
            result.latency_s,
        )  # fmt: skip
        if not children:
            finished = self._connection.execute(_FINISH, values).rowcount == 1
        else:
            with self._connection.transaction():
                finished = self._connection.execute(_FINISH, values).rowcount == 1
                if finished:
                    self._add(taken.source, children)
        # Not in the queue as ours: either an earlier attempt was committed and only its answer got lost,
        # or the lease did.
        if not finished:
            found = self._connection.execute(_FINISHED, (taken.key, self._holder, taken.id))
            finished = found.rowcount == 1
        return finished

    def state(self) -> CycleState:
        """Where the crawl stands."""
        row = self._connection.execute(_STATE, (self._holder,)).fetchone()
        if row is None:
            raise DatabaseFailure("missing_row", "the crawl database holds no cycle")
        return CycleState(*row)

    def claim(self, state: CycleState) -> bool:
        """Become the one session that ends this cycle, or starts the next; False where another did."""
        values = (self._holder, self._lease_s, state.number, state.ended)
        return self._connection.execute(_CLAIM, values).rowcount == 1

    def give_back(self, number: int) -> None:
        """Let another session claim the cycle."""
        self._patiently(lambda: self._connection.execute(_GIVE_BACK, (number, self._holder)))

    def begin(self, number: int, roots: Mapping[str, Item]) -> datetime | None:
        """Start the cycle after ``number``, one root per source; its start, None if another session did."""
        return self._patiently(lambda: self._begin(number, roots))

    def _begin(self, number: int, roots: Mapping[str, Item]) -> datetime | None:
        with self._connection.transaction():
            if self._connection.execute(_BEGIN, (number, self._holder)).rowcount == 1:
                self._connection.execute("TRUNCATE history")
                for source, root in roots.items():
                    self._add(source, [root])
        row = self._connection.execute(_BEGUN, (number, self._holder)).fetchone()
        return row[0] if row else None

    def end(self, number: int) -> tuple[datetime, datetime] | None:
        """End the cycle: (started, ended); None where another session has claimed it meanwhile."""
        row = self._patiently(lambda: self._connection.execute(_END, (number, self._holder)).fetchone())
        return (row[0], row[1]) if row else None

    def summary(self) -> list[SourceSummary]:
        """What the history says of each source."""
        rows = self._patiently(lambda: self._connection.execute(_SUMMARY).fetchall())
        return [SourceSummary(*row) for row in rows]

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

    def _add(self, source: str, items: Iterable[Item]) -> None:
        rest = iter(items)
        while some := list(islice(rest, _ADD_AT_ONCE)):
            keys = [_key(source, item.url) for item in some]
            columns = zip(*((item.kind, item.url, item.detail) for item in some), strict=True)
            self._connection.execute(_ADD, (keys, [source] * len(some), *(list(each) for each in columns)))


def _key(source: str, url: str) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.sha256(f"{source}\n{url}".encode()).digest()[:16])
