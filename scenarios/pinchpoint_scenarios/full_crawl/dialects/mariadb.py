"""Statements of the crawl database for MariaDB (10.6 and later, for SKIP LOCKED).

No statement of MariaDB changes two tables or returns changed rows. A single PostgreSQL statement is therefore
a script here. Its first part sets variables of the connection from the parameters. Its second part is a block
that does everything in one transaction, unless it is part of a longer one. Each part is one message.

An item is locked by its row (READ COMMITTED), and rows that others have locked are skipped. Times are UTC.
Keys are text, because a column of the server's type UUID silently took only 107 of 150 such digests
(10.11.19). ON DUPLICATE KEY keeps existing rows; INSERT IGNORE would also ignore every other error.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from .contract import NEXT, CrawlSql, within
from .portable import DONE, FAILURE, GRANT, ITEM, TARGET, Words, added, portable, same, taken

_NEVER = "'1000-01-01'"
_TABLE = " ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_WORDS = Words(
    quoted={"key": "`key`", "cycle": "`cycle`"},
    types={
        **dict.fromkeys(("text", "exact", "line", "identity"), "longtext"),
        "numbered": "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
        "uuid": "char(36)",
        "int": "int",
        "bigint": "bigint",
        "float": "double",
        "bool": "boolean",
        "json": "json",
        "name": "varchar(200)",
        "word": "varchar(80)",
        "moment": "datetime(6)",
        "lease": f"datetime(6) NOT NULL DEFAULT {_NEVER}",
        "stamp": "datetime(6) NOT NULL",
    },
    casts={},
    keys={"queue": ", UNIQUE (`key`)"},
    storage={"": _TABLE},
    indexes=(
        "CREATE INDEX history_identity ON our.history (source, identity(255))",
        "CREATE INDEX access_key ON our.access (`key`)",
    ),
    now="UTC_TIMESTAMP(6)",
    never=_NEVER,
    kept=" ON DUPLICATE KEY UPDATE queue.id = queue.id",
    # TRUNCATE would commit, and a new cycle without sources would end at once.
    empties="DELETE FROM",
    whole="signed",
    truth="COALESCE({}, 0)".format,
    later="UTC_TIMESTAMP(6) + INTERVAL {} * 1e6 MICROSECOND".format,
    seconds="TIMESTAMPDIFF(MICROSECOND, {}, {}) / 1e6".format,
    second="TIMESTAMPDIFF(SECOND, '2000-01-01', {})".format,
    rows=lambda json, alias, columns: "JSON_TABLE({}, '$[*]' COLUMNS ({})) AS {}".format(
        json, ", ".join(f"{name} {kind} PATH '$.{name.strip('`')}'" for name, kind in columns), alias
    ),
    values="SELECT value FROM JSON_TABLE({}, '$[*]' COLUMNS (value {} PATH '$')) AS listed".format,
    json_object="COALESCE(JSON_OBJECTAGG({}, {}), '{{}}')".format,
)
_GREET = f"""SET SESSION collation_connection = utf8mb4_bin, SESSION innodb_lock_wait_timeout = 10
{NEXT}CREATE OR REPLACE TEMPORARY TABLE done (
    id bigint PRIMARY KEY, `key` char(36), source varchar(200), kind varchar(20), url longtext,
    detail longtext, identity longtext, `cycle` int, taken datetime(6), state varchar(20),
    reason longtext, attempts int, bytes bigint, latency_s double, index_s double, version longtext,
    address longtext, ago_s double, grants longtext, targets longtext, failures longtext) {_TABLE}"""


def _block(variables: str, steps: str, answer: str = "") -> str:
    """Return a script whose steps are one transaction, unless the connection is in a transaction already.

    Args:
        variables: ``@name = $1, ...``.
        steps: declarations and statements, each with its end.
        answer: query for the rows, outside of the transaction.
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
    taken(_WORDS, f"{_CHOSEN} STRAIGHT_JOIN queue AS t ON t.id = chosen.id"),
)
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
        FROM {_WORDS.given("@items", "given", DONE)}
            STRAIGHT_JOIN queue ON queue.id = given.id
        WHERE queue.holder = mine FOR UPDATE;
        IF EXISTS (SELECT 1 FROM done) THEN
            DELETE queue FROM done STRAIGHT_JOIN queue ON queue.id = done.id;
            {added(_WORDS, "@cycle", "@source", "@found")};
            DELETE access FROM done STRAIGHT_JOIN access ON access.`key` = done.`key`
            WHERE done.grants IS NOT NULL;
            INSERT INTO access (`key`, principal, rights, allowed)
            SELECT DISTINCT done.`key`, granted.principal, granted.rights, granted.allowed
            FROM done, {_WORDS.given("done.grants", "granted", GRANT)};
            DELETE links FROM done STRAIGHT_JOIN links ON links.`key` = done.`key`
            WHERE done.targets IS NOT NULL;
            INSERT INTO links (`key`, target, url)
            SELECT done.`key`, linked.target, linked.url
            FROM done, {_WORDS.given("done.targets", "linked", TARGET)}
            ON DUPLICATE KEY UPDATE links.url = linked.url;
            INSERT INTO errors (`key`, `cycle`, at, stage, failure, message)
            SELECT done.`key`, done.`cycle`, moment, failed.stage, failed.failure, failed.message
            FROM done, {_WORDS.given("done.failures", "failed", FAILURE)};
            REPLACE INTO history (source, `key`, kind, url, detail, identity, state, reason, attempts, bytes,
                latency_s, index_s, version, `cycle`, seen, started, ended, holder, id)
            SELECT source, `key`, kind, COALESCE(NULLIF(address, ''), url), detail, identity, state, reason,
                attempts, bytes, latency_s, index_s, version, `cycle`, `cycle`, taken,
                moment - INTERVAL ago_s * 1e6 MICROSECOND, mine, id
            FROM done;
        END IF;""",
    "SELECT id FROM done",
)

SQL = within(
    CrawlSql(
        **portable(_WORDS)
        | {
            "there": """
    SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (
        'cycle', 'queue', 'history', 'access', 'links', 'errors', 'sources', 'pauses', 'holds')""",
            "drop": """
    DELETE queue FROM JSON_TABLE($2, '$[*]' COLUMNS (id bigint PATH '$')) AS gone
        STRAIGHT_JOIN queue ON queue.id = gone.id
    WHERE holder = $1""",
            "hold": """
    INSERT INTO holds (source, host, until)
    VALUES ($1, $2, UTC_TIMESTAMP(6) + INTERVAL $3 * 1e6 MICROSECOND)
    ON DUPLICATE KEY UPDATE until = GREATEST(until, VALUES(until))""",
            "end": _block(
                "@number = $1, @holder = $2",
                """
        DECLARE mine char(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT @holder;
        UPDATE `cycle` SET ended = COALESCE(ended, UTC_TIMESTAMP(6))
        WHERE number = @number AND holder = mine;""",
                "SELECT started, ended FROM `cycle` WHERE number = @number AND holder = @holder",
            ),
            "begin": """
    INSERT IGNORE INTO `cycle` (number, started, holder)
    SELECT number + 1, UTC_TIMESTAMP(6), holder FROM `cycle` WHERE number = $1 AND holder = $2""",
            "source": """
    INSERT INTO sources (source, `cycle`, enumerated) VALUES ($1, $2, $3)
    ON DUPLICATE KEY UPDATE `cycle` = VALUES(`cycle`), enumerated = VALUES(enumerated), next_token = NULL""",
            "place": f"""SET @class = $1, @places = $2
{NEXT}BEGIN NOT ATOMIC
    DECLARE place, found int DEFAULT NULL;
    SET place = 0;
    WHILE place < @places AND found IS NULL DO
        IF GET_LOCK(CONCAT('pinchpoint:', @class, ':', place), 0) = 1 THEN SET found = place; END IF;
        SET place = place + 1;
    END WHILE;
    SELECT found FROM DUAL WHERE found IS NOT NULL;
END""",
            "leave": "SELECT RELEASE_LOCK(CONCAT('pinchpoint:', $1, ':', $2))",
            "greet": _GREET,
            "take": _TAKE,
            "finish": _FINISH,
            "seen": f"""
    UPDATE {_WORDS.given("$2", "given", ITEM)} STRAIGHT_JOIN history AS h ON h.`key` = given.`key`
    SET seen = $1 WHERE h.kind = 'document' AND h.`cycle` < $1 AND seen < $1 AND {same(_WORDS)}""",
        }
    ),
    "",
)
"""Statements of ``CrawlSql``."""
