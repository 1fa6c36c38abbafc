"""Statements of the crawl database that differ between servers only in a few words."""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_COLUMNS = {
    # The key is a digest of source and URL, because a URL can be longer than an index entry.
    "queue": "id numbered, key uuid!, source name!, kind word!, leaf bool!, url text!, detail text!, "
    "version exact!, identity identity!, cycle int!, holder uuid, held_until lease, taken moment",
    "history": "key uuid!, source name!, kind word!, url text!, state word!, reason line!, attempts int!, "
    "bytes bigint!, latency_s float, index_s float, started moment!, ended moment!, detail text!, "
    "version exact!, identity identity!, cycle int!, seen int!, holder uuid!, id bigint!",
    "access": "key uuid!, principal exact!, rights exact!, allowed bool!",
    "links": "key uuid!, target uuid!, url text!",
    "errors": "key uuid!, cycle int!, at stamp, stage word!, failure word!, message text!",
    "sources": "source name!, cycle int!, enumerated bool!, token text, next_token text",
    "cycle": "number int!, started moment, ended moment, holder uuid, held_until lease",
    "pauses": "cycle int!, stopped moment!, resumed moment!",
    "holds": "source name!, host name!, until moment!",
}
"""Table -> its columns, each with its type (``Words.types``); ``!``: never NULL."""
_KEYS = {
    "history": "key",
    "links": "key, target",
    "sources": "source",
    "cycle": "number",
    "holds": "source, host",
}
"""Table -> its primary key, if it is the same on every server."""
ITEM = "key uuid, kind word, url text, detail text, version text, identity identity"
"""Columns of a found item in a JSON array of objects."""
DONE = (
    "id bigint, state word, reason line, attempts int, bytes bigint, latency_s float, index_s float, "
    "version text, address text, ago_s float, grants json, targets json, failures json"
)
"""Columns of the result of an item in a JSON array of objects."""
GRANT, TARGET, FAILURE = (
    "principal text, rights text, allowed bool",
    "target uuid, url text",
    "stage word, failure word, message text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a server for the open parts of portable statements.

    Attributes:
        quoted: names of columns and tables that are keywords -> their quoted form.
        types: type of a column or JSON member -> its name.
        casts: type of a parameter -> its placeholder, with ``{}`` for its number; None: parameters become
            variables of their type.
        keys: keys of further tables, as a part of CREATE TABLE.
        storage: table -> text after its columns; "": for all other tables.
        indexes: statements that create further indexes.
        now: current time, in UTC if it has no zone.
        never: a time before all others.
        true: truth value.
        by_row: text after a table whose rows are changed one by one.
        exact: text after a text that is compared exactly.
        kept: text at the end of an insert into the queue that keeps existing rows.
        unqueued: condition that a known item (``h``) is not in the queue; for servers without ``kept``.
        looked_up: text at the end of an insert that joins a list row by row.
        queued: query whether the queue has rows.
        empties: statement that removes all rows of a table.
        whole: type of a sum.
        key_as_text: a key as text, for ``{}``.
        truth: a condition as a value that is not NULL.
        later: expression for the time a number of seconds from now.
        seconds: expression for the seconds between two times.
        second: expression for the second that contains a time.
        rows: returns SQL for the rows of a JSON expression, with an alias and with columns (name as written,
            type as written).
        values: returns a query for the values of a JSON array, with a type as written.
        json_object: returns SQL for a JSON object of two columns, as text.
        windowed: whether percentiles are window functions; otherwise they are aggregates.
    """

    quoted: Mapping[str, str]
    types: Mapping[str, str]
    casts: Mapping[str, str] | None
    keys: Mapping[str, str]
    storage: Mapping[str, str]
    indexes: tuple[str, ...]
    now: str
    never: str
    true: str = "1"
    by_row: str = ""
    exact: str = ""
    kept: str = ""
    unqueued: str = ""
    looked_up: str = ""
    queued: str = "EXISTS (SELECT 1 FROM our.queue)"
    empties: str = "TRUNCATE TABLE"
    whole: str = "bigint"
    key_as_text: str = "{}"
    truth: Callable[[str], str]
    later: Callable[[str], str]
    seconds: Callable[[str, str], str]
    second: Callable[[str], str]
    rows: Callable[[str, str, list[tuple[str, str]]], str]
    values: Callable[[str, str], str]
    json_object: Callable[[str, str], str]
    windowed: bool = True

    def name(self, name: str) -> str:
        """Return the name of a column or table as written for this server."""
        return self.quoted.get(name, name)

    def columns(self, given: str) -> list[tuple[str, str]]:
        """Return name and type of each column in ``name type, ...``, as written for this server."""
        result = []
        for each in given.split(", "):
            name, kind = each.split(" ")
            result.append((self.name(name), self.types[kind.rstrip("!")] + " NOT NULL" * kind.endswith("!")))
        return result

    def given(self, json: str, alias: str, columns: str) -> str:
        """Return SQL for the objects of a JSON array as rows. ``columns`` is ``name type, ...``."""
        return self.rows(json, alias, self.columns(columns))

    def listed(self, json: str, kind: str) -> str:
        """Return a query for the values of a JSON array."""
        return self.values(json, self.types[kind])

    def bound(self, signature: str, text: str) -> str:
        """Return a statement with parameters ``:name``.

        ``signature`` is ``name type, ...`` in their order.
        """
        parameters = [each.split(" ") for each in signature.split(", ")]
        begin, written = "", {name: f"@{name}" for name, _ in parameters}
        if self.casts is None:
            types = {name: self.types[kind].partition(" ")[0] for name, kind in parameters}
            declared = (f"@{name} {kind} = ${at}" for at, (name, kind) in enumerate(types.items(), 1))
            begin = f"\n    DECLARE {', '.join(declared)};"
        else:
            casts = [(name, self.casts.get(kind, "{}")) for name, kind in parameters]
            written = {name: cast.format(f"${at}") for at, (name, cast) in enumerate(casts, 1)}
        return begin + re.sub(r"(?<![:\w]):([a-z_]+)", lambda match: written[match[1]], text)


def added(words: Words, cycle: str, source: str, items: str, only: str = "") -> str:
    """Return SQL that adds items to the queue.

    Items that are in the queue at the start of the statement are not changed, even while the session that
    crawled them moves them to the history. If the statement waited for that session and found the item gone,
    the item would be crawled twice. Two sessions that each move what the other one found would wait for each
    other for ever.
    """
    key, its_cycle, identity = map(words.name, ("key", "cycle", "identity"))
    return f"""
    INSERT INTO our.queue ({its_cycle}, source, {key}, kind, leaf, url, detail, version, {identity})
    SELECT {cycle}, {source}, given.{key}, given.kind, {words.truth("given.kind = 'document'")}, given.url,
        given.detail, given.version, given.{identity}
    FROM {words.given(items, "given", ITEM)}
    WHERE NOT EXISTS (SELECT 1 FROM our.queue AS q WHERE q.{key} = given.{key})
        AND NOT EXISTS (
            SELECT 1 FROM our.history AS h WHERE h.{key} = given.{key}
                AND (h.{its_cycle} = {cycle} OR (given.kind = 'document' AND {same(words)})))
        {only}{words.looked_up}{words.kept}"""


def same(words: Words) -> str:
    """Return the condition that a document (``h``) is known in the version that was found (``given``)."""
    return f"h.state IN ('ok', 'skipped') AND given.version <> '' AND h.version = given.version{words.exact}"


def taken(words: Words, queue: str) -> str:
    """Return SQL for the rows of ``CrawlSql.take``: ``t`` are the taken rows in ``queue``."""
    key, cycle, identity = map(words.name, ("key", "cycle", "identity"))
    return f"""
    SELECT t.id, t.{cycle}, {words.key_as_text.format(f"t.{key}")}, t.source, t.kind, t.url, t.detail,
    t.version, t.{identity}, CASE WHEN h.state = 'ok' THEN h.version END, ( SELECT
    {words.json_object("o.host", words.seconds(words.now, "o.until"))} FROM our.holds AS o WHERE o.source =
    t.source AND o.until > {words.now}), {words.truth(f"h.{cycle} = t.{cycle} AND h.kind = t.kind")} FROM
    {queue} LEFT JOIN our.history AS h ON h.{key} = t.{key}
    ORDER BY t.id"""


def _created(words: Words) -> tuple[str, ...]:
    made = []
    for table, columns in _COLUMNS.items():
        listed = ", ".join(f"{name} {kind}" for name, kind in words.columns(columns))
        key = ", ".join(map(words.name, _KEYS[table].split(", "))) if table in _KEYS else ""
        further = f", PRIMARY KEY ({key})" if key else words.keys.get(table, "")
        storage = words.storage.get(table, words.storage.get("", ""))
        made.append(f"CREATE TABLE our.{words.name(table)} ({listed}{further}){storage}")
    return (
        *made,
        *words.indexes,
        "CREATE INDEX queue_turn ON our.queue (source, leaf, id)",
        "CREATE INDEX links_target ON our.links (target)",
        f"CREATE INDEX errors_key ON our.errors ({words.name('key')})",
        # The row before the first cycle.
        f"INSERT INTO our.{words.name('cycle')} (number, ended) VALUES (0, {words.now})",
    )


# a dictionary, because a server replaces some of the statements
def portable(words: Words) -> dict[str, Any]:
    """Return the statements of ``CrawlSql``, except those that differ on each server."""
    w, bound = words, words.bound
    key, cycle, identity = map(w.name, ("key", "cycle", "identity"))

    def queued_again(kind: str, leaf: str, condition: str, order: str = "") -> str:
        """Return SQL that queues known items that are not in the queue."""
        return f"""
    INSERT INTO our.queue ({cycle}, {key}, source, kind, leaf, url, detail, version, {identity})
    SELECT :cycle, h.{key}, h.source, {kind}, {leaf}, h.url, h.detail, '', h.{identity} FROM our.history AS h
    WHERE {condition}{w.unqueued}{order}{w.kept}"""

    def removed(signature: str, condition: str) -> str:
        gone = f"h.kind <> 'container' AND h.state <> 'deleted' AND {condition}"
        return bound(signature, queued_again("'removal'", w.true, gone))

    def container_failed(source: str) -> str:
        return f"""EXISTS (
            SELECT 1 FROM our.history AS f WHERE f.source = {source} AND f.{cycle} = :cycle
                AND f.kind <> 'document' AND f.state = 'failed')"""

    def how_many(condition: str) -> str:
        return f"CAST(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS {w.whole})"

    def percentile(share: float) -> str:
        return f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY latency_s){over}"

    over, grouped = (" OVER (PARTITION BY source)", "") if w.windowed else ("", " GROUP BY source")
    return {
        "create": _created(w),
        "unfinished": f"SELECT number FROM our.{cycle} WHERE ended IS NULL ORDER BY number DESC",
        "latest": f"SELECT MAX(number) FROM our.{cycle} WHERE started IS NOT NULL",
        "named": "SELECT source FROM our.sources",
        "counts": "SELECT (SELECT COUNT(*) FROM our.history), (SELECT COUNT(*) FROM our.queue)",
        "drop": bound(
            "holder uuid, ids json",
            f"""
    DELETE FROM our.queue WHERE id IN ({w.listed(":ids", "bigint")}) AND holder = :holder""",
        ),
        "renew": bound(
            "lease_s float, id bigint, holder uuid",
            f"""
    UPDATE our.queue{w.by_row} SET held_until = {w.later(":lease_s")} WHERE id = :id AND holder = :holder""",
        ),
        "add": bound("cycle int, source name, items json", added(w, ":cycle", ":source", ":items")),
        "finished": bound(
            "holder uuid, items json",
            f"""
    SELECT h.id FROM {w.given(":items", "item", "id bigint, key uuid")}
        JOIN our.history AS h ON h.{key} = item.{key} AND h.id = item.id
    WHERE h.holder = :holder""",
        ),
        "relink": bound(
            "cycle int, keys json",
            queued_again(
                "h.kind",
                w.true,
                f"""h.kind = 'document' AND h.state IN ('ok', 'skipped') AND h.{cycle} < :cycle
        AND h.seen < :cycle AND h.{key} IN (
            SELECT l.target FROM our.links AS l WHERE l.{key} IN ({w.listed(":keys", "uuid")}))""",
                # Otherwise sessions that find the same links at the same time would wait for each other.
                " ORDER BY h.url",
            ),
        ),
        "forget": removed(
            "cycle int, source name, identities json",
            f"""h.source = :source AND h.{identity} <> ''
        AND h.{identity} IN ({w.listed(":identities", "identity")})""",
        ),
        "moved": removed(
            "cycle int, source name, items json",
            f"""h.source = :source AND EXISTS (
            SELECT 1 FROM {w.given(":items", "given", ITEM)}
            WHERE h.{identity} = given.{identity}{w.exact} AND given.{identity} <> ''
                AND given.{key} <> h.{key})""",
        ),
        "sweep": removed(
            "cycle int",
            f"""h.seen < :cycle AND h.source IN (
            SELECT s.source FROM our.sources AS s
            WHERE s.enumerated = {w.true} AND s.{cycle} = :cycle AND NOT {container_failed("s.source")})""",
        ),
        "retry": bound(
            "cycle int, source name",
            queued_again(
                "h.kind",
                w.truth("h.kind <> 'container'"),
                f"h.source = :source AND h.state = 'failed' AND h.{cycle} < :cycle AND h.kind <> 'changes'",
            ),
        ),
        "state": bound(
            "holder uuid",
            f"""
    SELECT number, {w.truth("ended IS NOT NULL")},
        {w.truth(f"held_until >= {w.now} AND holder <> :holder")}, {w.truth(w.queued)},
        {
                w.seconds(
                    f'''(SELECT MIN(started) FROM our.{cycle} WHERE number > (
            SELECT MAX(number) FROM our.{cycle} WHERE started IS NULL))''',
                    "ended",
                )
            },
        {w.seconds("started", w.now)}
    FROM our.{cycle} WHERE number = (SELECT MAX(number) FROM our.{cycle})""",
        ),
        "claim": bound(
            "holder uuid, lease_s float, number int, ended bool",
            f"""
    UPDATE our.{cycle}{w.by_row} SET holder = :holder, held_until = {w.later(":lease_s")}
    WHERE number = :number AND {w.truth("ended IS NOT NULL")} = :ended
        AND (held_until < {w.now} OR holder = :holder) AND NOT ({w.queued})
        AND NOT EXISTS (SELECT 1 FROM our.{cycle} AS later WHERE later.number > :number)""",
        ),
        "give_back": bound(
            "number int, holder uuid",
            f"UPDATE our.{cycle} SET held_until = {w.never} WHERE number = :number AND holder = :holder",
        ),
        "begun": bound(
            "number int, holder uuid",
            f"SELECT started FROM our.{cycle} WHERE number = :number + 1 AND holder = :holder",
        ),
        "forget_all": tuple(
            f"{w.empties} our.{table}" for table in ("history", "access", "links", "errors", "sources")
        ),
        "tokens": "SELECT source, token FROM our.sources",
        "mark": bound(
            "source name, token text", "UPDATE our.sources SET next_token = :token WHERE source = :source"
        ),
        "keep_tokens": bound(
            "cycle int",
            f"""
    UPDATE our.sources SET token = next_token, next_token = NULL
    WHERE {cycle} = :cycle AND next_token IS NOT NULL AND NOT {container_failed("sources.source")}""",
        ),
        "summary": bound(
            "cycle int",
            f"""
    WITH crawled AS (
            SELECT h.*,
                CASE WHEN kind = 'document' AND state = 'ok' AND reason = '' THEN 1 ELSE 0 END AS indexed
            FROM our.history AS h WHERE h.{cycle} = :cycle),
        kinds AS (
            SELECT source, reason, COUNT(*) AS n FROM crawled WHERE state = 'failed' GROUP BY source, reason),
        spans AS (SELECT source, MIN(started) AS started, MAX(ended) AS ended FROM crawled GROUP BY source),
        latencies AS (
            SELECT DISTINCT source, AVG(latency_s){over} AS mean_s, {percentile(0.5)} AS p50_s,
                {percentile(0.95)} AS p95_s
            FROM crawled WHERE kind = 'document' AND latency_s IS NOT NULL{grouped})
    SELECT s.source, {how_many("c.indexed = 1")}, {how_many("c.state = 'failed'")},
        {how_many("c.state = 'skipped'")}, {how_many("c.state = 'deleted'")},
        {how_many("c.state = 'ok' AND c.reason <> ''")} + (
            SELECT COUNT(*) FROM our.history AS h
            WHERE h.source = s.source AND h.{cycle} < :cycle AND h.seen = :cycle),
        CAST(SUM(CASE WHEN c.indexed = 1 THEN c.bytes ELSE 0 END) AS {w.whole}), s.started, s.ended,
        (SELECT COALESCE(SUM({w.seconds("p.stopped", "p.resumed")}), 0) FROM our.pauses AS p
         WHERE p.stopped >= s.started AND p.resumed <= s.ended),
        COUNT(DISTINCT CASE WHEN c.indexed = 1 THEN {w.second("c.ended")} END),
        MAX(l.mean_s), MAX(l.p50_s), MAX(l.p95_s),
        (SELECT {w.json_object("k.reason", "k.n")} FROM kinds AS k WHERE k.source = s.source)
    FROM crawled AS c JOIN spans AS s ON s.source = c.source LEFT JOIN latencies AS l ON l.source = c.source
    GROUP BY s.source, s.started, s.ended""",
        ),
        "failures": bound(
            "cycle int, each int",
            f"""
    SELECT r.source, r.url, r.reason, COALESCE((
            SELECT e.message FROM our.errors AS e WHERE e.{key} = r.{key} AND e.{cycle} = :cycle
            ORDER BY e.at DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY), ''),
        r.attempts, r.ended
    FROM (SELECT h.*, ROW_NUMBER() OVER (PARTITION BY source, reason ORDER BY ended) AS place
          FROM our.history AS h WHERE h.{cycle} = :cycle AND h.state = 'failed') AS r
    WHERE r.place <= :each ORDER BY r.source, r.reason, r.ended""",
        ),
        "follow": f"INSERT INTO our.{cycle} (number, ended) SELECT MAX(number) + 1, {w.now} FROM our.{cycle}",
        "release": (
            f"UPDATE our.queue SET holder = NULL, held_until = {w.never} WHERE holder IS NOT NULL",
            f"UPDATE our.{cycle} SET held_until = {w.never}",
        ),
        "pause": f"""
    INSERT INTO our.pauses ({cycle}, stopped, resumed)
    SELECT n.number, MAX(t.at), {w.now}
    FROM (SELECT MAX(number) AS number FROM our.{cycle} WHERE ended IS NULL) AS n, (
        SELECT MAX(started) AS at FROM our.{cycle} UNION ALL SELECT MAX(ended) FROM our.history
        UNION ALL SELECT MAX(taken) FROM our.queue) AS t
    WHERE n.number IS NOT NULL GROUP BY n.number""",
    }
