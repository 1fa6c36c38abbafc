"""Statements of the crawl database for PostgreSQL (10 and later, for identity columns)."""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from .contract import CrawlSql, within
from .portable import DONE, FAILURE, GRANT, ITEM, TARGET, Words, added, portable, same, taken

_WORDS = Words(
    quoted={},
    types={
        **dict.fromkeys(("text", "exact", "name", "word", "line", "identity"), "text"),
        "numbered": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "uuid": "uuid",
        "int": "int",
        "bigint": "bigint",
        "float": "float8",
        "bool": "boolean",
        "json": "json",
        "moment": "timestamptz",
        "lease": "timestamptz NOT NULL DEFAULT '-infinity'",
        "stamp": "timestamptz NOT NULL DEFAULT clock_timestamp()",
    },
    # Parameters have the types that the fast path binds: numbers, truth values, text. Lists are JSON text.
    casts={
        "uuid": "{}::text::uuid",
        "json": "{}::text::json",
        "float": "{}::float8",
        "int": "{}::int4",
        "bigint": "{}::int8",
        "bool": "{}::bool",
        "name": "{}::text",
        "text": "{}::text",
    },
    # An item is locked, leased and counted by its id. The lease is not part of an index, so taking an item
    # changes no index (HOT).
    keys={"queue": ", UNIQUE (key)", "access": ", PRIMARY KEY (key, principal, rights, allowed)"},
    storage={"queue": " WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)"},
    indexes=("CREATE INDEX history_identity ON our.history (source, identity) WHERE identity <> ''",),
    now="clock_timestamp()",
    never="'-infinity'",
    true="true",
    kept=" ON CONFLICT DO NOTHING",
    key_as_text="{}::text",
    truth="coalesce({}, false)".format,
    later="clock_timestamp() + {} * interval '1 s'".format,
    seconds="extract(epoch FROM {1} - {0})::float8".format,
    second="date_trunc('second', {})".format,
    rows=lambda json, alias, columns: (
        f"json_to_recordset({json}) AS {alias} ({', '.join(' '.join(column) for column in columns)})"
    ),
    values="SELECT value::{1} FROM json_array_elements_text({0})".format,
    json_object="coalesce(json_object_agg({}, {})::text, '{{}}')".format,
    windowed=False,
)
# A statement finds few rows by an index. It is planned once, perhaps while a table is so small that a full
# scan would be faster, and the plan is still used when the table is large.
_GREET = """
    SELECT set_config(name, 'off', false) FROM pg_settings
    WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')"""
# A session that asks for more items has finished its last ones. If the queue still has items of this session,
# the session took them without receiving the answer, or could not finish them. All items are of one turn,
# because items found in a batch are recorded for its source. OFFSET prevents that a turn is read twice, and
# LIMIT that later turns are read.
_TAKE = f"""
    WITH taken AS (
        UPDATE queue
        SET holder = $1::text::uuid, taken = clock_timestamp(),
            held_until = clock_timestamp() + $2::float8 * interval '1 s'
        WHERE id = ANY ((
            SELECT found.ids
            FROM json_to_recordset($3::text::json) AS turn (source text, leaf boolean), LATERAL (
                SELECT ARRAY(
                    SELECT id FROM queue
                    WHERE queue.source = turn.source AND queue.leaf = turn.leaf
                        AND (held_until < clock_timestamp() OR holder = $1::text::uuid)
                    ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED) AS ids
                OFFSET 0) AS found
            WHERE found.ids <> '{{}}'
            LIMIT 1)::int8[])
        RETURNING id, cycle, key, source, kind, url, detail, version, identity)
    {taken(_WORDS, "taken AS t")}"""
# All tables are in the WITH clause, in the order in which they must be locked, because a prepared statement
# first locks the tables of its main part.
_FINISH = f"""
    WITH given AS (SELECT * FROM {_WORDS.given("$2::text::json", "item", DONE)}),
        gone AS (DELETE FROM queue WHERE id IN (SELECT id FROM given) AND holder = $1::text::uuid
            RETURNING id, key, source, kind, url, detail, identity, cycle, taken),
        added AS ({added(_WORDS, "$3::int4", "$4::text", "$5::text::json", "AND EXISTS (SELECT FROM gone)")}),
        done AS (SELECT *, ARRAY(SELECT target FROM json_to_recordset(targets) AS item (target uuid)) AS kept
            FROM gone JOIN given USING (id)),
        revoked AS (DELETE FROM access USING done WHERE access.key = done.key AND grants IS NOT NULL
            AND NOT EXISTS (
                SELECT FROM {_WORDS.given("grants", "same", GRANT)}
                WHERE (same.principal, same.rights, same.allowed)
                    = (access.principal, access.rights, access.allowed))),
        granted AS (INSERT INTO access (key, principal, rights, allowed)
            SELECT key, new.* FROM done, {_WORDS.given("coalesce(grants, '[]')", "new", GRANT)}
            ON CONFLICT DO NOTHING),
        unlinked AS (DELETE FROM links USING done
            WHERE links.key = done.key AND targets IS NOT NULL AND target <> ALL (kept)),
        linked AS (INSERT INTO links (key, target, url)
            SELECT key, new.* FROM done, {_WORDS.given("coalesce(targets, '[]')", "new", TARGET)}
            ON CONFLICT DO NOTHING),
        failed AS (INSERT INTO errors (key, cycle, stage, failure, message)
            SELECT key, cycle, new.* FROM done, {_WORDS.given("coalesce(failures, '[]')", "new", FAILURE)}),
        logged AS (INSERT INTO history (source, key, kind, url, detail, identity, state, reason, attempts,
                bytes, latency_s, index_s, version, cycle, seen, started, ended, holder, id)
            SELECT source, key, kind, coalesce(nullif(address, ''), url), detail, identity, state, reason,
                attempts, bytes, latency_s, index_s, version, cycle, cycle, taken,
                clock_timestamp() - ago_s * interval '1 s', $1::text::uuid, id
            FROM done
            ON CONFLICT (key) DO UPDATE SET kind = excluded.kind, url = excluded.url,
                detail = excluded.detail, identity = excluded.identity, state = excluded.state,
                reason = excluded.reason, attempts = excluded.attempts, bytes = excluded.bytes,
                latency_s = excluded.latency_s, index_s = excluded.index_s, version = excluded.version,
                cycle = excluded.cycle, seen = excluded.seen, started = excluded.started,
                ended = excluded.ended, holder = excluded.holder, id = excluded.id
            RETURNING id)
    SELECT id FROM logged"""

SQL = within(
    CrawlSql(
        **portable(_WORDS)
        | {
            "there": """
    SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename IN (
        'cycle', 'queue', 'history', 'access', 'links', 'errors', 'sources', 'pauses', 'holds')""",
            "greet": _GREET,
            "take": _TAKE,
            "finish": _FINISH,
            "hold": """
    INSERT INTO holds (source, host, until) VALUES ($1, $2, clock_timestamp() + $3::float8 * interval '1 s')
    ON CONFLICT (source, host) DO UPDATE SET until = greatest(holds.until, excluded.until)""",
            "end": """
    UPDATE cycle SET ended = coalesce(ended, clock_timestamp()) WHERE number = $1 AND holder = $2::text::uuid
    RETURNING started, ended""",
            "begin": """
    INSERT INTO cycle (number, started, holder) SELECT number + 1, clock_timestamp(), holder FROM cycle
    WHERE number = $1 AND holder = $2::text::uuid ON CONFLICT DO NOTHING""",
            "source": """
    INSERT INTO sources (source, cycle, enumerated) VALUES ($1, $2, $3)
    ON CONFLICT (source) DO UPDATE SET cycle = excluded.cycle, enumerated = excluded.enumerated, next_token =
    NULL""",
            "place": """
    SELECT number FROM generate_series(0, $2::int4 - 1) AS number
    WHERE pg_try_advisory_lock($1::int4, number) LIMIT 1""",
            "leave": "SELECT pg_advisory_unlock($1::int4, $2::int4)",
            "seen": f"""
    UPDATE history AS h SET seen = $1 FROM {_WORDS.given("$2::text::json", "given", ITEM)}
    WHERE h.key = given.key AND h.kind = 'document' AND cycle < $1 AND seen < $1 AND {same(_WORDS)}""",
        }
    ),
    "",
)
"""Statements of ``CrawlSql``."""
