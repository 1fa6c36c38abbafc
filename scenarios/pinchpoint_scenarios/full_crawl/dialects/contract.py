"""Contract of the crawl database for every SQL dialect."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, LiteralString

NEXT = "\n;;\n"
"""Separator between the parts of a script."""

TABLES = ("cycle", "queue", "history", "access", "links", "errors", "sources", "pauses", "holds")
"""Tables of a crawl database, in the order in which they are locked before they are dropped.

Transactions of sessions lock the tables in the same order. Otherwise a session could wait for a table that is
being dropped while it locks one that is still to be dropped (a deadlock).

=========  ===============================================================================================
queue      items still to be crawled, with holder and end of each lease
history    the crawl log: what became of every item, the last time it was crawled
access     access lists: the principals that may, or may not, see an item
links      which item led to which other one
errors     every request that failed, also where another attempt helped
sources    per source of this crawl its change token
cycle      the crawls made here, one after the other
pauses     how long a crawl lay still between being killed and being resumed
holds      hosts of sources that asked for a pause
=========  ===============================================================================================
"""


OURS = "our."
"""Prefix of table names for connections that cannot choose their default schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSql:
    """The statements of the crawl database. Tests check that every dialect has the same statements.

    Parameters are in this order: numbers, truth values, text; keys and holders are UUIDs as text, lists are
    JSON arrays as text. A *turn* is one source with either its leaves (items to fetch or remove) or its
    containers (items to enumerate).

    If a server needs several statements, they are a script with ``NEXT`` between them. The first takes the
    parameters, the last returns rows.

    Attributes:
        create: creates the empty tables.
        there: one row: number of existing tables.
        unfinished: rows: numbers of cycles that have not ended, the newest first.
        latest: one row: number of the last started cycle, or NULL.
        named: rows: names of this crawl's sources.
        counts: one row: number of done and of queued items.
        greet: the first statements of every connection.
        take: (holder, lease_s, turns, limit): leases up to ``limit`` items of the first turn that has any.
            Turns are objects of source and leaf. The oldest items come first, and items that others hold or
            are taking are left out. Rows: id, cycle, key, source, kind, url, detail, version, identity,
            version when last indexed or NULL, JSON object of the source's paused hosts (name -> seconds left)
            or NULL, and whether the item was already crawled in this cycle.
        drop: (holder, ids): removes these items of the holder from the queue.
        renew: (lease_s, id, holder): renews the lease of an item.
        add: (cycle, source, items): adds items to the queue, except those that are queued, were crawled in
            this cycle, or are known in this version. Items are a JSON array of objects: key, kind, url,
            detail, version, identity.
        seen: (cycle, items): marks items whose known version is the given one as still existing.
        finish: (holder, items, cycle, source, found): moves items from the queue to the history, and adds the
            found items to the queue as ``add`` does. Items are a JSON array of objects: id, state, reason,
            attempts, bytes, latency_s, index_s, version, address (under which the item is indexed; "": its
            own), ago_s (seconds since it was done), and arrays of objects: grants (principal, rights,
            allowed), targets (target, url), failures (stage, failure, message). If an array is missing, the
            known values are kept. Rows: ids of the moved items, without those that another session holds.
        finished: (holder, items): rows: ids of the objects (id, key) that ``finish`` has already moved.
        relink: (cycle, keys): queues the known targets of these items, whose links have not changed.
        hold: (source, host, seconds): pauses requests to a host for this time.
        forget: (cycle, source, identities): queues the documents with these identities for removal.
        moved: (cycle, source, items): queues documents with an item's identity, but another key, for removal.
        sweep: (cycle): queues for removal what the cycle did not see, for every source that was enumerated
            completely.
        state: (holder): state of the crawl (see ``CycleState``).
        claim: (holder, lease_s, number, ended): become the session that ends a cycle or starts the next.
        give_back: (number, holder): allows another session to claim the cycle.
        end: (number, holder): ends a cycle; row: started, ended.
        begin: (number, holder): starts the cycle after ``number``.
        begun: (number, holder): row: when the cycle after ``number`` was started by this holder.
        forget_all: empties history, access, links and errors, for a crawl from the beginning.
        retry: (cycle, source): queues the items that failed in the last cycle.
        source: (source, cycle, enumerated): registers a source with the cycle, and whether it is enumerated
            completely.
        tokens: rows: source, token; NULL if it has none.
        mark: (source, token): notes the change token that applies after the cycle.
        keep_tokens: (cycle): makes the noted tokens valid, except for sources of which a container failed.
        summary: (cycle): result of each source (see ``SourceSummary``).
        failures: (cycle, at most): the crawl log's failures: source, url, failure, message, attempts, ended.
        place: (class, places): takes a free place among the places of a source's workers, for this connection
            until it leaves or is lost; no row if all places are taken.
        leave: (class, place): releases the place.
        follow: notes, before an incremental crawl, which cycle the first one follows.
        release: ends all leases, when a crawl is resumed.
        pause: records since when the crawl was interrupted, when it is resumed.
    """

    create: tuple[LiteralString, ...]
    there: LiteralString
    unfinished: LiteralString
    latest: LiteralString
    named: LiteralString
    counts: LiteralString
    greet: LiteralString
    take: LiteralString
    drop: LiteralString
    renew: LiteralString
    add: LiteralString
    seen: LiteralString
    finish: LiteralString
    finished: LiteralString
    relink: LiteralString
    hold: LiteralString
    forget: LiteralString
    moved: LiteralString
    sweep: LiteralString
    state: LiteralString
    claim: LiteralString
    give_back: LiteralString
    end: LiteralString
    begin: LiteralString
    begun: LiteralString
    forget_all: tuple[LiteralString, ...]
    retry: LiteralString
    source: LiteralString
    tokens: LiteralString
    mark: LiteralString
    keep_tokens: LiteralString
    summary: LiteralString
    failures: LiteralString
    place: LiteralString
    leave: LiteralString
    follow: LiteralString
    release: tuple[LiteralString, ...]
    pause: LiteralString


def within(sql: CrawlSql, schema: LiteralString) -> CrawlSql:
    """Return the statements with a quoted schema in place of ``OURS``; "": without a schema."""
    before = f"{schema}." if schema else ""

    def named(given: LiteralString | tuple[LiteralString, ...]) -> LiteralString | tuple[LiteralString, ...]:
        if isinstance(given, tuple):
            return tuple(statement.replace(OURS, before) for statement in given)
        return given.replace(OURS, before)

    changed: dict[str, Any] = {each.name: named(getattr(sql, each.name)) for each in fields(sql)}
    return replace(sql, **changed)
