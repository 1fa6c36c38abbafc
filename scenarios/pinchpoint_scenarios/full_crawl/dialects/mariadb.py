"""The crawl database on MariaDB (10.6 and later, for SKIP LOCKED).

No statement there changes two tables or returns what it changed, so what PostgreSQL does by one is a script:
its first part sets variables of the connection from the parameters, its second is a block that does all of it
in one transaction, unless it is part of a longer one. Both are a message each.

An item is locked by its row (READ COMMITTED), past rows that others have locked. Times are UTC. Keys are
text: of 150 such digests a column of the server's own type UUID took 107, in silence (10.11.19). What is
there already is left alone by ON DUPLICATE KEY: INSERT IGNORE would pass over every other error, too.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from typing import LiteralString

from .contract import NEXT, CrawlSql

_NEVER = "'1000-01-01'"
_TABLE = "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_CREATE = (
    f"""CREATE TABLE queue (
        id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `key` char(36) NOT NULL UNIQUE,
        source varchar(200) NOT NULL, kind varchar(20) NOT NULL, leaf boolean NOT NULL,
        url longtext NOT NULL, detail longtext NOT NULL,
        version longtext NOT NULL, identity longtext NOT NULL, `cycle` int NOT NULL,
        holder char(36), held_until datetime(6) NOT NULL DEFAULT {_NEVER}, taken datetime(6),
        KEY queue_turn (source, leaf, id)) {_TABLE}""",
    f"""CREATE TABLE history (
        `key` char(36) NOT NULL PRIMARY KEY, source varchar(200) NOT NULL, kind varchar(20) NOT NULL,
        url longtext NOT NULL, state varchar(20) NOT NULL, reason longtext NOT NULL, attempts int NOT NULL,
        bytes bigint NOT NULL, latency_s double, index_s double, started datetime(6) NOT NULL,
        ended datetime(6) NOT NULL, detail longtext NOT NULL, version longtext NOT NULL,
        identity longtext NOT NULL, `cycle` int NOT NULL, seen int NOT NULL, holder char(36) NOT NULL,
        id bigint NOT NULL, KEY history_identity (source, identity(255))) {_TABLE}""",
    f"""CREATE TABLE access (
        `key` char(36) NOT NULL, principal longtext NOT NULL, rights longtext NOT NULL,
        allowed boolean NOT NULL, KEY access_key (`key`)) {_TABLE}""",
    f"""CREATE TABLE links (
        `key` char(36) NOT NULL, target char(36) NOT NULL, url longtext NOT NULL, PRIMARY KEY (`key`, target),
        KEY links_target (target)) {_TABLE}""",
    f"""CREATE TABLE errors (
        `key` char(36) NOT NULL, `cycle` int NOT NULL, at datetime(6) NOT NULL, stage varchar(40) NOT NULL,
        failure varchar(80) NOT NULL, message longtext NOT NULL, KEY errors_key (`key`)) {_TABLE}""",
    f"""CREATE TABLE sources (
        source varchar(200) NOT NULL PRIMARY KEY, `cycle` int NOT NULL, enumerated boolean NOT NULL,
        token longtext, next_token longtext) {_TABLE}""",
    f"""CREATE TABLE `cycle` (
        number int NOT NULL PRIMARY KEY, started datetime(6), ended datetime(6), holder char(36),
        held_until datetime(6) NOT NULL DEFAULT {_NEVER}) {_TABLE}""",
    f"""CREATE TABLE pauses (
        `cycle` int NOT NULL, stopped datetime(6) NOT NULL, resumed datetime(6) NOT NULL) {_TABLE}""",
    f"""CREATE TABLE holds (
        source varchar(200) NOT NULL, host varchar(200) NOT NULL, until datetime(6) NOT NULL,
        PRIMARY KEY (source, host)) {_TABLE}""",
    "INSERT INTO `cycle` (number, ended) VALUES (0, UTC_TIMESTAMP(6))",  # what the first cycle follows
)
_GREET = f"""SET SESSION collation_connection = utf8mb4_bin, SESSION innodb_lock_wait_timeout = 10
{NEXT}CREATE OR REPLACE TEMPORARY TABLE done (
    id bigint PRIMARY KEY, `key` char(36), source varchar(200), kind varchar(20), url longtext,
    detail longtext, identity longtext, `cycle` int, taken datetime(6), state varchar(20),
    reason longtext, attempts int, bytes bigint, latency_s double, index_s double, version longtext,
    address longtext, ago_s double, grants longtext, targets longtext, failures longtext) {_TABLE}"""


def _block(variables: LiteralString, steps: LiteralString, answer: LiteralString = "") -> LiteralString:
    """A script whose steps are one transaction, unless the connection is in one already.

    Args:
        variables: ``@name = $1, ...``.
        steps: declarations and statements, each ended.
        answer: the query whose rows it gives, outside of the transaction.
    """
    given = f"{answer};" if answer else ""
    return f"""SET {variables}
{NEXT}BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF @@autocommit THEN ROLLBACK; END IF; RESIGNAL; END;
    IF @@autocommit THEN START TRANSACTION; END IF;
    BEGIN {steps} END;
    IF @@autocommit THEN COMMIT; END IF;
    {given}
END"""


_CHOSEN = "JSON_TABLE(@chosen, '$[*]' COLUMNS (id bigint PATH '$')) AS chosen"
_HOLDS = """(SELECT JSON_OBJECTAGG(host, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), until) / 1e6) FROM holds
        WHERE holds.source = queue.source AND until > UTC_TIMESTAMP(6))"""
_TAKE = _block(
    "@holder = $1, @lease_s = $2, @turns = $3, @most = $4, @chosen = NULL",
    """
        DECLARE mine char(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT @holder;
        DECLARE most, turn int DEFAULT @most;
        DECLARE moment datetime(6) DEFAULT UTC_TIMESTAMP(6);
        SET turn = 0;
        WHILE turn < JSON_LENGTH(@turns) AND @chosen IS NULL DO
            SELECT JSON_ARRAYAGG(id) INTO @chosen FROM (
                SELECT id FROM queue
                WHERE source = JSON_VALUE(@turns, CONCAT('$[', turn, '].source'))
                    AND leaf = (JSON_EXTRACT(@turns, CONCAT('$[', turn, '].leaf')) = 'true')
                    AND (held_until < moment OR holder = mine)
                ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED) AS free;
            SET turn = turn + 1;
        END WHILE;
        UPDATE """
    + _CHOSEN
    + """ STRAIGHT_JOIN queue ON queue.id = chosen.id
        SET holder = mine, taken = moment, held_until = moment + INTERVAL @lease_s * 1e6 MICROSECOND;""",
    f"""SELECT queue.id, queue.`cycle`, queue.`key`, queue.source, queue.kind, queue.url,
        queue.detail, queue.version, queue.identity, CASE WHEN known.state = 'ok' THEN known.version END,
        {_HOLDS}, COALESCE(known.`cycle` = queue.`cycle` AND known.kind = queue.kind, 0)
    FROM {_CHOSEN} STRAIGHT_JOIN queue ON queue.id = chosen.id
        LEFT JOIN history AS known ON known.`key` = queue.`key`
    ORDER BY queue.id""",
)
_ITEMS = """COLUMNS (
        `key` char(36) PATH '$.key', kind varchar(20) PATH '$.kind', url longtext PATH '$.url',
        detail longtext PATH '$.detail', version longtext PATH '$.version',
        identity longtext PATH '$.identity')"""


_KEPT = "ON DUPLICATE KEY UPDATE queue.id = queue.id"


def _added(cycle: LiteralString, source: LiteralString, items: LiteralString) -> LiteralString:
    """Puts items into the queue; what is in it as the statement begins is left alone.

    Read without locks (a consistent read), for the reason that stands with PostgreSQL's.
    """
    return f"""
    INSERT INTO queue (`cycle`, source, `key`, kind, leaf, url, detail, version, identity)
    SELECT {cycle}, {source}, given.`key`, given.kind, given.kind = 'document', given.url, given.detail,
        given.version, given.identity
    FROM JSON_TABLE({items}, '$[*]' {_ITEMS}) AS given
    WHERE NOT EXISTS (SELECT 1 FROM queue AS there WHERE there.`key` = given.`key`)
        AND NOT EXISTS (
            SELECT 1 FROM history AS known WHERE known.`key` = given.`key`
                AND (known.`cycle` = {cycle} OR (given.kind = 'document' AND known.state IN ('ok', 'skipped')
                    AND given.version <> '' AND known.version = given.version)))
    {_KEPT}"""


_FINISH = _block(
    "@holder = $1, @items = $2, @cycle = $3, @source = $4, @found = $5",
    f"""
        DECLARE mine char(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT @holder;
        DECLARE moment datetime(6) DEFAULT UTC_TIMESTAMP(6);
        DELETE FROM done;
        INSERT INTO done (id, `key`, source, kind, url, detail, identity, `cycle`, taken, state, reason,
            attempts, bytes, latency_s, index_s, version, address, ago_s, grants, targets, failures)
        SELECT queue.id, queue.`key`, queue.source, queue.kind, queue.url, queue.detail, queue.identity,
            queue.`cycle`, queue.taken, given.state, given.reason, given.attempts, given.bytes,
            given.latency_s, given.index_s, given.version, given.address, given.ago_s, given.grants,
            given.targets, given.failures
        FROM JSON_TABLE(@items, '$[*]' COLUMNS (
            id bigint PATH '$.id', state varchar(20) PATH '$.state', reason longtext PATH '$.reason',
            attempts int PATH '$.attempts', bytes bigint PATH '$.bytes', latency_s double PATH '$.latency_s',
            index_s double PATH '$.index_s', version longtext PATH '$.version',
            address longtext PATH '$.address', ago_s double PATH '$.ago_s', grants json PATH '$.grants',
            targets json PATH '$.targets', failures json PATH '$.failures')) AS given
            STRAIGHT_JOIN queue ON queue.id = given.id
        WHERE queue.holder = mine FOR UPDATE;
        IF EXISTS (SELECT 1 FROM done) THEN
            DELETE queue FROM done STRAIGHT_JOIN queue ON queue.id = done.id;
            {_added("@cycle", "@source", "@found")};
            DELETE access FROM done STRAIGHT_JOIN access ON access.`key` = done.`key`
            WHERE done.grants IS NOT NULL;
            INSERT INTO access (`key`, principal, rights, allowed)
            SELECT DISTINCT done.`key`, granted.principal, granted.rights, granted.allowed
            FROM done, JSON_TABLE(done.grants, '$[*]' COLUMNS (
                principal longtext PATH '$.principal', rights longtext PATH '$.rights',
                allowed boolean PATH '$.allowed')) AS granted;
            DELETE links FROM done STRAIGHT_JOIN links ON links.`key` = done.`key`
            WHERE done.targets IS NOT NULL;
            INSERT INTO links (`key`, target, url)
            SELECT done.`key`, linked.target, linked.url
            FROM done, JSON_TABLE(done.targets, '$[*]' COLUMNS (
                target char(36) PATH '$.target', url longtext PATH '$.url')) AS linked
            ON DUPLICATE KEY UPDATE links.url = linked.url;
            INSERT INTO errors (`key`, `cycle`, at, stage, failure, message)
            SELECT done.`key`, done.`cycle`, moment, failed.stage, failed.failure, failed.message
            FROM done, JSON_TABLE(done.failures, '$[*]' COLUMNS (
                stage varchar(40) PATH '$.stage', failure varchar(80) PATH '$.failure',
                message longtext PATH '$.message')) AS failed;
            REPLACE INTO history (source, `key`, kind, url, detail, identity, state, reason, attempts, bytes,
                latency_s, index_s, version, `cycle`, seen, started, ended, holder, id)
            SELECT source, `key`, kind, COALESCE(NULLIF(address, ''), url), detail, identity, state, reason,
                attempts, bytes, latency_s, index_s, version, `cycle`, `cycle`, taken,
                moment - INTERVAL ago_s * 1e6 MICROSECOND, mine, id
            FROM done;
        END IF;""",
    "SELECT id FROM done",
)
_REMOVE = """
    INSERT INTO queue (`cycle`, `key`, source, kind, leaf, url, detail, version, identity)
    SELECT $1, known.`key`, known.source, 'removal', 1, known.url, known.detail, '', known.identity
    FROM history AS known WHERE known.kind <> 'container' AND known.state <> 'deleted' AND """
_CONTAINER_FAILED = """EXISTS (
        SELECT 1 FROM history AS other WHERE other.source = sources.source AND other.`cycle` = $1
            AND other.kind <> 'document' AND other.state = 'failed')"""
_STATE = """
    SELECT number, ended IS NOT NULL, COALESCE(held_until >= UTC_TIMESTAMP(6) AND holder <> $1, 0),
        EXISTS (SELECT 1 FROM queue),
        TIMESTAMPDIFF(MICROSECOND, (SELECT MIN(started) FROM `cycle` WHERE number > (
            SELECT MAX(number) FROM `cycle` WHERE started IS NULL)), ended) / 1e6,
        TIMESTAMPDIFF(MICROSECOND, started, UTC_TIMESTAMP(6)) / 1e6
    FROM `cycle` ORDER BY number DESC LIMIT 1"""
_CLAIM = """
    UPDATE `cycle` SET holder = $1, held_until = UTC_TIMESTAMP(6) + INTERVAL $2 * 1e6 MICROSECOND
    WHERE number = $3 AND (ended IS NOT NULL) = $4 AND (held_until < UTC_TIMESTAMP(6) OR holder = $1)
        AND NOT EXISTS (SELECT 1 FROM queue)
        AND NOT EXISTS (SELECT 1 FROM `cycle` AS later WHERE later.number > $3)"""
_SUMMARY = """
    WITH crawled AS (
            SELECT *, kind = 'document' AND state = 'ok' AND reason = '' AS indexed
            FROM history WHERE `cycle` = $1),
        kinds AS (SELECT source, reason, COUNT(*) AS n FROM crawled WHERE state = 'failed'
            GROUP BY source, reason),
        spans AS (SELECT source, MIN(started) AS started, MAX(ended) AS ended FROM crawled GROUP BY source),
        latencies AS (
            SELECT DISTINCT source, AVG(latency_s) OVER (PARTITION BY source) AS mean_s,
                PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY latency_s) OVER (PARTITION BY source) AS p50_s,
                PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY latency_s) OVER (PARTITION BY source) AS p95_s
            FROM crawled WHERE kind = 'document' AND latency_s IS NOT NULL)
    SELECT spans.source, CAST(SUM(indexed) AS signed), CAST(SUM(state = 'failed') AS signed),
        CAST(SUM(state = 'skipped') AS signed), CAST(SUM(state = 'deleted') AS signed),
        CAST(SUM(state = 'ok' AND reason <> '') + (
            SELECT COUNT(*) FROM history
            WHERE history.source = spans.source AND history.`cycle` < $1 AND history.seen = $1) AS signed),
        CAST(COALESCE(SUM(CASE WHEN indexed THEN bytes END), 0) AS signed), spans.started, spans.ended,
        (SELECT COALESCE(SUM(TIMESTAMPDIFF(MICROSECOND, stopped, resumed)), 0) / 1e6 FROM pauses
         WHERE stopped >= spans.started AND resumed <= spans.ended),
        COUNT(DISTINCT CASE WHEN indexed THEN TIMESTAMPDIFF(SECOND, '2000-01-01', crawled.ended) END),
        MAX(mean_s), MAX(p50_s), MAX(p95_s),
        (SELECT COALESCE(JSON_OBJECTAGG(reason, n), '{}') FROM kinds WHERE kinds.source = spans.source)
    FROM crawled JOIN spans ON spans.source = crawled.source
        LEFT JOIN latencies ON latencies.source = crawled.source
    GROUP BY spans.source, spans.started, spans.ended"""
_FAILURES = """
    SELECT source, url, reason, COALESCE((
            SELECT message FROM errors WHERE errors.`key` = ranked.`key` AND errors.`cycle` = $1
            ORDER BY at DESC LIMIT 1), ''),
        attempts, ended
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY source, reason ORDER BY ended) AS place
          FROM history WHERE `cycle` = $1 AND state = 'failed') AS ranked
    WHERE place <= $2 ORDER BY source, reason, ended"""

SQL = CrawlSql(
    create=_CREATE,
    there="""
    SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (
        'cycle', 'queue', 'history', 'access', 'links', 'errors', 'sources', 'pauses', 'holds')""",
    greet=_GREET,
    take=_TAKE,
    drop="""
    DELETE queue FROM JSON_TABLE($2, '$[*]' COLUMNS (id bigint PATH '$')) AS gone
        STRAIGHT_JOIN queue ON queue.id = gone.id
    WHERE holder = $1""",
    renew="""
    UPDATE queue SET held_until = UTC_TIMESTAMP(6) + INTERVAL $1 * 1e6 MICROSECOND
    WHERE id = $2 AND holder = $3""",
    add=_added("$1", "$2", "$3"),
    seen=f"""
    UPDATE JSON_TABLE($2, '$[*]' {_ITEMS}) AS given STRAIGHT_JOIN history ON history.`key` = given.`key`
    SET seen = $1
    WHERE history.kind = 'document' AND history.`cycle` < $1 AND seen < $1
        AND state IN ('ok', 'skipped') AND given.version <> '' AND history.version = given.version""",
    finish=_FINISH,
    finished="""
    SELECT history.id FROM JSON_TABLE($2, '$[*]' COLUMNS (
            id bigint PATH '$.id', `key` char(36) PATH '$.key')) AS item
        JOIN history ON history.`key` = item.`key` AND history.id = item.id
    WHERE holder = $1""",
    relink="""
    INSERT INTO queue (`cycle`, `key`, source, kind, leaf, url, detail, version, identity)
    SELECT DISTINCT $1, known.`key`, known.source, known.kind, 1, known.url, known.detail, '', known.identity
    FROM JSON_TABLE($2, '$[*]' COLUMNS (`key` char(36) PATH '$')) AS same
        JOIN links ON links.`key` = same.`key` JOIN history AS known ON known.`key` = links.target
    WHERE known.kind = 'document' AND known.state IN ('ok', 'skipped')
        AND known.`cycle` < $1 AND known.seen < $1
    ORDER BY known.url """
    + _KEPT,
    hold="""
    INSERT INTO holds (source, host, until)
    VALUES ($1, $2, UTC_TIMESTAMP(6) + INTERVAL $3 * 1e6 MICROSECOND)
    ON DUPLICATE KEY UPDATE until = GREATEST(until, VALUES(until))""",
    forget=_REMOVE
    + """known.source = $2 AND known.identity <> '' AND known.identity IN (
        SELECT identity FROM JSON_TABLE($3, '$[*]' COLUMNS (identity longtext PATH '$')) AS gone) """
    + _KEPT,
    moved=_REMOVE
    + f"""known.source = $2 AND EXISTS (
        SELECT 1 FROM JSON_TABLE($3, '$[*]' {_ITEMS}) AS given
        WHERE given.identity = known.identity AND given.identity <> '' AND given.`key` <> known.`key`)
    {_KEPT}""",
    sweep=_REMOVE
    + """known.seen < $1 AND known.source IN (
        SELECT source FROM sources WHERE enumerated AND sources.`cycle` = $1 AND NOT """
    + _CONTAINER_FAILED
    + ") "
    + _KEPT,
    state=_STATE,
    claim=_CLAIM,
    give_back=f"UPDATE `cycle` SET held_until = {_NEVER} WHERE number = $1 AND holder = $2",
    end=_block(
        "@number = $1, @holder = $2",
        """
        DECLARE mine char(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT @holder;
        UPDATE `cycle` SET ended = COALESCE(ended, UTC_TIMESTAMP(6))
        WHERE number = @number AND holder = mine;""",
        "SELECT started, ended FROM `cycle` WHERE number = @number AND holder = @holder",
    ),
    begin="""
    INSERT IGNORE INTO `cycle` (number, started, holder)
    SELECT number + 1, UTC_TIMESTAMP(6), holder FROM `cycle` WHERE number = $1 AND holder = $2""",
    begun="SELECT started FROM `cycle` WHERE number = $1 + 1 AND holder = $2",
    # Not TRUNCATE, which would commit: a cycle that has begun and has no sources would end at once.
    forget_all=(
        "DELETE FROM history",
        "DELETE FROM access",
        "DELETE FROM links",
        "DELETE FROM errors",
        "DELETE FROM sources",
    ),
    retry="""
    INSERT INTO queue (`cycle`, `key`, source, kind, leaf, url, detail, version, identity)
    SELECT $1, history.`key`, history.source, history.kind, history.kind <> 'container', history.url,
        history.detail, '', history.identity FROM history
    WHERE history.source = $2 AND state = 'failed' AND history.`cycle` < $1 AND history.kind <> 'changes' """
    + _KEPT,
    source="""
    INSERT INTO sources (source, `cycle`, enumerated) VALUES ($1, $2, $3)
    ON DUPLICATE KEY UPDATE `cycle` = VALUES(`cycle`), enumerated = VALUES(enumerated), next_token = NULL""",
    tokens="SELECT source, token FROM sources",
    mark="UPDATE sources SET next_token = $2 WHERE source = $1",
    keep_tokens="""
    UPDATE sources SET token = next_token, next_token = NULL
    WHERE sources.`cycle` = $1 AND next_token IS NOT NULL AND NOT """
    + _CONTAINER_FAILED,
    summary=_SUMMARY,
    failures=_FAILURES,
    place=f"""SET @class = $1, @places = $2
{NEXT}BEGIN NOT ATOMIC
    DECLARE place, found int DEFAULT NULL;
    SET place = 0;
    WHILE place < @places AND found IS NULL DO
        IF GET_LOCK(CONCAT('pinchpoint:', @class, ':', place), 0) = 1 THEN SET found = place; END IF;
        SET place = place + 1;
    END WHILE;
    SELECT found FROM DUAL WHERE found IS NOT NULL;
END""",
    leave="SELECT RELEASE_LOCK(CONCAT('pinchpoint:', $1, ':', $2))",
    follow="INSERT INTO `cycle` (number, ended) SELECT MAX(number) + 1, UTC_TIMESTAMP(6) FROM `cycle`",
    release=(
        f"UPDATE queue SET holder = NULL, held_until = {_NEVER} WHERE holder IS NOT NULL",
        f"UPDATE `cycle` SET held_until = {_NEVER}",
    ),
    pause="""
    INSERT INTO pauses (`cycle`, stopped, resumed)
    SELECT number, GREATEST(started, COALESCE((SELECT MAX(ended) FROM history), started),
        COALESCE((SELECT MAX(taken) FROM queue), started)), UTC_TIMESTAMP(6)
    FROM `cycle` WHERE ended IS NULL ORDER BY number DESC LIMIT 1""",
)
"""The statements of ``CrawlSql``."""
