"""The contract of the crawl database, whatever its SQL dialect."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, LiteralString

NEXT = "\n;;\n"
"""Between the parts of a script."""

TABLES = ("cycle", "queue", "history", "access", "links", "errors", "sources", "pauses", "holds")
"""The tables of a crawl database, in the order in which whoever drops them locks them.

The first table that a transaction of a session locks stands before all others it locks: then no session waits
for a table that is being dropped while it has one that is still to be dropped (a deadlock).

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
"""Before the names of tables, where a connection cannot choose the schema that it looks them up in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSql:
    """The statements of the crawl database; ``tests`` see that every dialect has the same ones.

    Parameters are given in this order: numbers, truth values and text; a key and a holder are UUIDs as text,
    lists are JSON arrays as text. A *turn* is one source, and whether its leaves (what is fetched or removed)
    or its containers (what is enumerated) are meant.

    What a server cannot do by one statement is a script: several, with ``NEXT`` between. The first takes the
    parameters, the last gives rows.

    Attributes:
        create: makes the tables, empty.
        there: one row: how many of the tables are there.
        unfinished: rows: the numbers of cycles that have not ended, the newest first.
        latest: one row: the number of the newest cycle that was started, or NULL.
        named: rows: the names of the sources of this crawl.
        counts: one row: how many items are done, and how many are queued.
        greet: the first statements of every connection.
        take: (holder, lease_s, turns, limit): leases up to ``limit`` items of the first of the turns, objects
            of source and leaf, that has any, the oldest first, past what others hold or are taking. Rows: id,
            cycle, key, source, kind, url, detail, version, identity, version it was last indexed with or
            NULL, JSON object of the source's hosts in a pause: name -> seconds left, or NULL, and whether
            it was crawled in this cycle: whoever queued it began to while it was not yet queued at all.
        drop: (holder, ids): takes such items out of the queue.
        renew: (lease_s, id, holder): renews the lease of an item.
        add: (cycle, source, items): puts items into the queue, but not those that are there, were crawled in
            this cycle, or are known in this very version. Items are a JSON array of objects: key, kind, url,
            detail, version, identity.
        seen: (cycle, items): notes those whose known version is the given one as still there.
        finish: (holder, items, cycle, source, found): moves items from the queue to the history, and,
            where there are any, puts what was found in them into the queue, as ``add`` does. Items are a JSON
            array of objects: id, state, reason, attempts, bytes, latency_s, index_s, version, address (it is
            indexed under; "": its own), ago_s (since it was done), and arrays of objects: grants (principal,
            rights, allowed), targets (target, url), failures (stage, failure, message). Arrays that are
            missing leave what is known. Rows: the ids of those that were moved: not those another session
            holds.
        finished: (holder, items): rows: the ids of those objects (id, key) that ``finish`` has already moved.
        relink: (cycle, keys): puts what these items link to, and is known, into the queue: they are as
            they were.
        hold: (source, host, seconds): no request to a host for this time.
        forget: (cycle, source, identities): the documents known by these identities go into the queue, to be
            removed.
        moved: (cycle, source, items): likewise those known by an item's identity, but under another key.
        sweep: (cycle): likewise those the cycle did not see, of every source all of which it enumerated
            without the failure of a container.
        state: (holder): where the crawl stands: see ``CycleState``.
        claim: (holder, lease_s, number, ended): become the one session that ends a cycle or starts the next.
        give_back: (number, holder): let another session claim it.
        end: (number, holder): ends a cycle; row: started, ended.
        begin: (number, holder): starts the cycle after ``number``.
        begun: (number, holder): row: when the cycle after ``number`` was started by this holder.
        forget_all: empties history, access, links and errors, for a crawl from the beginning.
        retry: (cycle, source): puts what failed in the last cycle into the queue again.
        source: (source, cycle, enumerated): makes a source known to the cycle, and whether all of it is
            enumerated.
        tokens: rows: source, token; NULL if it has none.
        mark: (source, token): the change token that applies once the cycle has ended.
        keep_tokens: (cycle): the noted tokens hold from now on, but not where a container failed.
        summary: (cycle): what became of each source: see ``SourceSummary``.
        failures: (cycle, at most): the crawl log's failures: source, url, failure, message, attempts, ended.
        place: (class, places): a free place among the given number of one source's workers, which this
            connection then has until it leaves it or is lost; no row if all are taken.
        leave: (class, place): gives it up.
        follow: before an incremental crawl: what its first cycle follows.
        release: on resume: all leases end.
        pause: resume: notes since when the crawl lay still.
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
    """The statements with a quoted schema in place of ``OURS``; "": without one."""
    before = f"{schema}." if schema else ""

    def named(given: LiteralString | tuple[LiteralString, ...]) -> LiteralString | tuple[LiteralString, ...]:
        if isinstance(given, tuple):
            return tuple(statement.replace(OURS, before) for statement in given)
        return given.replace(OURS, before)

    changed: dict[str, Any] = {each.name: named(getattr(sql, each.name)) for each in fields(sql)}
    return replace(sql, **changed)
