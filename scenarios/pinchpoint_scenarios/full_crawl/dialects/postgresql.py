"""The crawl database on PostgreSQL (10 and later, for identity columns)."""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from typing import LiteralString

from .contract import CrawlSql

# An item is locked, leased and counted by its id. The lease is in no index: taking an item changes none
# (HOT).
_CREATE = (
    # key: a digest of source and url, because a url can be longer than an index entry may be
    """CREATE TABLE queue (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key uuid NOT NULL UNIQUE, source text NOT NULL,
        kind text NOT NULL, leaf boolean NOT NULL, url text NOT NULL, detail text NOT NULL,
        version text NOT NULL, identity text NOT NULL, cycle int NOT NULL,
        holder uuid, held_until timestamptz NOT NULL DEFAULT '-infinity', taken timestamptz)
        WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)""",
    "CREATE INDEX queue_turn ON queue (source, leaf, id)",
    """CREATE TABLE history (
        key uuid PRIMARY KEY, source text NOT NULL, kind text NOT NULL, url text NOT NULL, state text NOT
        NULL,
        reason text NOT NULL, attempts int NOT NULL, bytes bigint NOT NULL, latency_s float8, index_s float8,
        started timestamptz NOT NULL, ended timestamptz NOT NULL, detail text NOT NULL, version text NOT NULL,
        identity text NOT NULL, cycle int NOT NULL, seen int NOT NULL, holder uuid NOT NULL, id bigint NOT
        NULL)""",
    "CREATE INDEX history_identity ON history (source, identity) WHERE identity <> ''",
    """CREATE TABLE access (
        key uuid NOT NULL, principal text NOT NULL, rights text NOT NULL, allowed boolean NOT NULL,
        PRIMARY KEY (key, principal, rights, allowed))""",
    """CREATE TABLE links (
        key uuid NOT NULL, target uuid NOT NULL, url text NOT NULL, PRIMARY KEY (key, target))""",
    "CREATE INDEX links_target ON links (target)",
    """CREATE TABLE errors (
        key uuid NOT NULL, cycle int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
        stage text NOT NULL, failure text NOT NULL, message text NOT NULL)""",
    "CREATE INDEX errors_key ON errors (key)",
    """CREATE TABLE sources (
        source text PRIMARY KEY, cycle int NOT NULL, enumerated boolean NOT NULL, token text, next_token
        text)""",
    """CREATE TABLE cycle (
        number int PRIMARY KEY, started timestamptz, ended timestamptz,
        holder uuid, held_until timestamptz NOT NULL DEFAULT '-infinity')""",
    "CREATE TABLE pauses (cycle int NOT NULL, stopped timestamptz NOT NULL, resumed timestamptz NOT NULL)",
    """CREATE TABLE holds (
        source text, host text, until timestamptz NOT NULL, PRIMARY KEY (source, host))""",
    "INSERT INTO cycle (number, ended) VALUES (0, now())",  # what the first cycle follows
)

# Parameters are of types that the fast path binds: numbers, truth values, text. Lists are JSON, as text.
# A statement finds few rows, by an index. It is planned once, maybe while a table is so small that reading
# all of it would be faster, and used on when it is large.
_GREET = """
    SELECT set_config(name, 'off', false) FROM pg_settings
    WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')"""
# Who asks for more has finished what it had: what the queue still calls its own it took without hearing so,
# or could not finish. Items are of one turn: what is found in a batch is noted for the source of all of it.
# OFFSET keeps a turn from being looked at twice, and LIMIT the turns behind it from being looked at.
_TAKE = """
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
            WHERE found.ids <> '{}'
            LIMIT 1)::int8[])
        RETURNING id, cycle, key, source, kind, url, detail, version, identity)
    SELECT taken.id, taken.cycle, taken.key::text, taken.source, taken.kind, taken.url, taken.detail,
        taken.version, taken.identity, CASE WHEN known.state = 'ok' THEN known.version END,
        (SELECT json_object_agg(host, extract(epoch FROM until - clock_timestamp()))::text FROM holds
         WHERE holds.source = taken.source AND until > clock_timestamp()),
        coalesce(known.cycle = taken.cycle AND known.kind = taken.kind, false)
    FROM taken LEFT JOIN history AS known ON known.key = taken.key ORDER BY taken.id"""
_ITEMS = "(key uuid, kind text, url text, detail text, version text, identity text)"


def _added(cycle: LiteralString, source: LiteralString, items: LiteralString) -> LiteralString:
    """Puts items into the queue; each argument is a parameter of the statement.

    What is in the queue as the statement begins is left alone even while whoever crawled it is moving it to
    the history: to wait for that, and find it gone, would be to crawl it twice; and two who move what the
    other one found would wait for each other for ever.
    """
    return f"""
    INSERT INTO queue (cycle, source, key, kind, leaf, url, detail, version, identity)
    SELECT {cycle}::int4, {source}::text, key, kind, kind = 'document', url, detail, version, identity
    FROM json_to_recordset({items}::text::json) AS new {_ITEMS}
    WHERE NOT EXISTS (SELECT FROM queue WHERE queue.key = new.key)
        AND NOT EXISTS (
            SELECT FROM history WHERE history.key = new.key
                AND (cycle = {cycle} OR (new.kind = 'document' AND state IN ('ok', 'skipped')
                    AND new.version <> '' AND history.version = new.version)))"""


_SEEN = f"""
    UPDATE history SET seen = $1 FROM json_to_recordset($2::text::json) AS new {_ITEMS}
    WHERE history.key = new.key AND history.kind = 'document' AND cycle < $1 AND seen < $1
        AND state IN ('ok', 'skipped') AND new.version <> '' AND history.version = new.version"""
# All tables stand in the WITH, in the order in which they are to be locked: those of its main part a prepared
# statement locks first.
_FINISH = f"""
    WITH given AS (SELECT * FROM json_to_recordset($2::text::json) AS item (
            id bigint, state text, reason text, attempts int, bytes bigint, latency_s float8, index_s float8,
            version text, address text, ago_s float8, grants json, targets json, failures json)),
        gone AS (DELETE FROM queue WHERE id IN (SELECT id FROM given) AND holder = $1::text::uuid
            RETURNING id, key, source, kind, url, detail, identity, cycle, taken),
        added AS ({_added("$3", "$4", "$5")}
            AND EXISTS (SELECT FROM gone)
            ON CONFLICT DO NOTHING),
        done AS (SELECT *, ARRAY(SELECT target FROM json_to_recordset(targets) AS item (target uuid)) AS kept
            FROM gone JOIN given USING (id)),
        revoked AS (DELETE FROM access USING done WHERE access.key = done.key AND grants IS NOT NULL
            AND NOT EXISTS (
                SELECT FROM json_to_recordset(grants) AS same (principal text, rights text, allowed boolean)
                WHERE (same.principal, same.rights, same.allowed)
                    = (access.principal, access.rights, access.allowed))),
        granted AS (INSERT INTO access (key, principal, rights, allowed)
            SELECT key, new.* FROM done, json_to_recordset(coalesce(grants, '[]'))
                AS new (principal text, rights text, allowed boolean)
            ON CONFLICT DO NOTHING),
        unlinked AS (DELETE FROM links USING done
            WHERE links.key = done.key AND targets IS NOT NULL AND target <> ALL (kept)),
        linked AS (INSERT INTO links (key, target, url)
            SELECT key, new.* FROM done, json_to_recordset(coalesce(targets, '[]'))
                AS new (target uuid, url text)
            ON CONFLICT DO NOTHING),
        failed AS (INSERT INTO errors (key, cycle, stage, failure, message)
            SELECT key, cycle, new.* FROM done, json_to_recordset(coalesce(failures, '[]'))
                AS new (stage text, failure text, message text)),
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
_RELINK = """
    INSERT INTO queue (cycle, key, source, kind, leaf, url, detail, version, identity)
    SELECT DISTINCT $1::int4, known.key, source, kind, true, known.url, detail, '', identity
    FROM links JOIN history AS known ON known.key = links.target
    WHERE links.key IN (SELECT value::uuid FROM json_array_elements_text($2::text::json))
        AND kind = 'document' AND state IN ('ok', 'skipped')
        AND cycle < $1 AND seen < $1
    ORDER BY known.url ON CONFLICT DO NOTHING"""
_REMOVE = """
    INSERT INTO queue (cycle, key, source, kind, leaf, url, detail, version, identity)
    SELECT $1::int4, key, source, 'removal', true, url, detail, '', identity FROM history
    WHERE kind <> 'container' AND state <> 'deleted' AND """
_STATE = """
    SELECT number, ended IS NOT NULL, held_until >= clock_timestamp() AND holder <> $1::text::uuid,
        EXISTS (SELECT FROM queue),
        extract(epoch FROM ended - (SELECT min(started) FROM cycle WHERE number > (
            SELECT max(number) FROM cycle WHERE started IS NULL)))::float8,
        extract(epoch FROM clock_timestamp() - started)::float8
    FROM cycle ORDER BY number DESC LIMIT 1"""
_CLAIM = """
    UPDATE cycle SET holder = $1::text::uuid, held_until = clock_timestamp() + $2::float8 * interval '1 s'
    WHERE number = $3 AND (ended IS NOT NULL) = $4
        AND (held_until < clock_timestamp() OR holder = $1::text::uuid)
        AND NOT EXISTS (SELECT FROM queue) AND NOT EXISTS (SELECT FROM cycle WHERE number > $3)"""
_RETRY = """
    INSERT INTO queue (cycle, key, source, kind, leaf, url, detail, version, identity)
    SELECT $1::int4, key, source, kind, kind <> 'container', url, detail, '', identity FROM history
    WHERE source = $2 AND state = 'failed' AND cycle < $1 AND kind <> 'changes' ON CONFLICT DO NOTHING"""
_SUMMARY = """
    WITH crawled AS (SELECT *, kind = 'document' AND state = 'ok' AND reason = '' AS indexed
                     FROM history WHERE cycle = $1),
        kinds AS (SELECT source, reason, count(*) AS n FROM crawled WHERE state = 'failed' GROUP BY 1, 2),
        spans AS (SELECT source, min(started) AS started, max(ended) AS ended FROM crawled GROUP BY 1)
    SELECT spans.source, count(*) FILTER (WHERE indexed), count(*) FILTER (WHERE state = 'failed'),
        count(*) FILTER (WHERE state = 'skipped'), count(*) FILTER (WHERE state = 'deleted'),
        count(*) FILTER (WHERE state = 'ok' AND reason <> '')
            + (SELECT count(*) FROM history WHERE history.source = spans.source AND cycle < $1 AND seen = $1),
        coalesce(sum(bytes) FILTER (WHERE indexed), 0)::bigint, spans.started, spans.ended,
        (SELECT coalesce(extract(epoch FROM sum(resumed - stopped)), 0)::float8 FROM pauses
         WHERE stopped >= spans.started AND resumed <= spans.ended),
        count(DISTINCT date_trunc('second', crawled.ended)) FILTER (WHERE indexed),
        avg(latency_s) FILTER (WHERE kind = 'document'),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_s) FILTER (WHERE kind = 'document'),
        percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_s) FILTER (WHERE kind = 'document'),
        (SELECT coalesce(jsonb_object_agg(reason, n), '{}')::text FROM kinds WHERE kinds.source =
        spans.source)
    FROM crawled JOIN spans ON spans.source = crawled.source
    GROUP BY spans.source, spans.started, spans.ended"""
_FAILURES = """
    SELECT source, url, reason, coalesce(
        (SELECT message FROM errors WHERE errors.key = ranked.key AND cycle = $1 ORDER BY at DESC LIMIT 1),
        ''),
        attempts, ended
    FROM (SELECT *, row_number() OVER (PARTITION BY source, reason ORDER BY ended) AS place
          FROM history WHERE cycle = $1 AND state = 'failed') AS ranked
    WHERE place <= $2 ORDER BY source, reason, ended"""

SQL = CrawlSql(
    create=_CREATE,
    there="""
    SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename IN (
        'cycle', 'queue', 'history', 'access', 'links', 'errors', 'sources', 'pauses', 'holds')""",
    greet=_GREET,
    take=_TAKE,
    drop="""
    DELETE FROM queue WHERE id IN (SELECT value::int8 FROM json_array_elements_text($2::text::json))
        AND holder = $1::text::uuid""",
    renew="""
    UPDATE queue SET held_until = clock_timestamp() + $1::float8 * interval '1 s'
    WHERE id = $2 AND holder = $3::text::uuid""",
    add=_added("$1", "$2", "$3") + " ON CONFLICT DO NOTHING",
    seen=_SEEN,
    finish=_FINISH,
    finished="""
    SELECT history.id FROM json_to_recordset($2::text::json) AS item (id bigint, key uuid)
        JOIN history USING (id, key)
    WHERE holder = $1::text::uuid""",
    relink=_RELINK,
    hold="""
    INSERT INTO holds (source, host, until) VALUES ($1, $2, clock_timestamp() + $3::float8 * interval '1 s')
    ON CONFLICT (source, host) DO UPDATE SET until = greatest(holds.until, excluded.until)""",
    forget=_REMOVE
    + """source = $2 AND identity <> ''
        AND identity IN (SELECT json_array_elements_text($3::text::json)) ON CONFLICT DO NOTHING""",
    moved=_REMOVE
    + f"""source = $2 AND EXISTS (
        SELECT FROM json_to_recordset($3::text::json) AS new {_ITEMS}
        WHERE new.identity = history.identity AND new.identity <> '' AND new.key <> history.key)
    ON CONFLICT DO NOTHING""",
    sweep=_REMOVE
    + """seen < $1 AND source IN (
        SELECT source FROM sources WHERE enumerated AND sources.cycle = $1 AND NOT EXISTS (
            SELECT FROM history AS other
            WHERE other.source = sources.source AND other.cycle = $1 AND other.kind <> 'document'
                AND other.state = 'failed'))
    ON CONFLICT DO NOTHING""",
    state=_STATE,
    claim=_CLAIM,
    give_back="UPDATE cycle SET held_until = '-infinity' WHERE number = $1 AND holder = $2::text::uuid",
    end="""
    UPDATE cycle SET ended = coalesce(ended, clock_timestamp()) WHERE number = $1 AND holder = $2::text::uuid
    RETURNING started, ended""",
    begin="""
    INSERT INTO cycle (number, started, holder) SELECT number + 1, clock_timestamp(), holder FROM cycle
    WHERE number = $1 AND holder = $2::text::uuid ON CONFLICT DO NOTHING""",
    begun="SELECT started FROM cycle WHERE number = $1 + 1 AND holder = $2::text::uuid",
    forget_all=("TRUNCATE history, access, links, errors, sources",),
    retry=_RETRY,
    source="""
    INSERT INTO sources (source, cycle, enumerated) VALUES ($1, $2, $3)
    ON CONFLICT (source) DO UPDATE SET cycle = excluded.cycle, enumerated = excluded.enumerated, next_token =
    NULL""",
    tokens="SELECT source, token FROM sources",
    mark="UPDATE sources SET next_token = $2 WHERE source = $1",
    keep_tokens="""
    UPDATE sources SET token = next_token, next_token = NULL
    WHERE cycle = $1 AND next_token IS NOT NULL AND NOT EXISTS (
        SELECT FROM history WHERE history.source = sources.source AND history.cycle = $1
            AND history.kind <> 'document' AND history.state = 'failed')""",
    summary=_SUMMARY,
    failures=_FAILURES,
    # One place a statement: the filter is asked row by row, and no more once there is one.
    place="""
    SELECT number FROM generate_series(0, $2::int4 - 1) AS number
    WHERE pg_try_advisory_lock($1::int4, number) LIMIT 1""",
    leave="SELECT pg_advisory_unlock($1::int4, $2::int4)",
    follow="INSERT INTO cycle (number, ended) SELECT max(number) + 1, clock_timestamp() FROM cycle",
    release=(
        "UPDATE queue SET holder = NULL, held_until = '-infinity' WHERE holder IS NOT NULL",
        "UPDATE cycle SET held_until = '-infinity'",
    ),
    pause="""
    INSERT INTO pauses
    SELECT number, greatest(started, (SELECT max(ended) FROM history), (SELECT max(taken) FROM queue)),
        clock_timestamp()
    FROM cycle WHERE ended IS NULL ORDER BY number DESC LIMIT 1""",
)
"""The statements of ``CrawlSql``."""
