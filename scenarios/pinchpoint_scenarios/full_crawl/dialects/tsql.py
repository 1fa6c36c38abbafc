"""Statements of the crawl database for SQL Server (2017 and later, for STRING_AGG).

Every statement is a batch: parameters are first bound to variables, in the order of ``CrawlSql``. Lists are
one JSON array of objects or values. Row locks of others are skipped (READPAST), and chosen rows are locked at
once (UPDLOCK) and one by one (ROWLOCK). With page locks, two sessions would wait for each other at the head
of the queue. A place among a source's workers is an application lock of the connection.

SQL Server looks names up in the schema of the user and not in one that the connection chooses. Therefore
``OURS`` stands before every table, and is replaced by the name of the schema (``within``).

The statements have not run on a SQL Server yet; tests parse them.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from .contract import CrawlSql
from .portable import DONE, FAILURE, GRANT, ITEM, TARGET, Words, added, portable, same, taken

_BINARY = "COLLATE Latin1_General_100_BIN2"
"""Collation that compares text as the other servers do. Many databases treat A and a as equal, and so do
OPENJSON's columns."""
_LEFT = "(SELECT MIN(id) FROM our.queue WITH (INDEX(queue_id)))"
"""The next item of the queue; NULL if it is empty. Items are read in the order in which they were added. A
session that waits for an item that was just crawled then continues with the items found in it. In another
order, these could come before its position."""


def _later(seconds: str) -> str:
    """Return the time a number of seconds (a float) from now.

    A month in milliseconds is too long for an int.
    """
    return f"""DATEADD(second, FLOOR({seconds}),
            DATEADD(millisecond, ({seconds} - FLOOR({seconds})) * 1000, SYSUTCDATETIME()))"""


_WORDS = Words(
    quoted={"key": "[key]", "identity": "[identity]"},
    types={
        "text": "nvarchar(max)",
        "exact": f"nvarchar(max) {_BINARY}",
        "line": f"nvarchar(4000) {_BINARY}",
        "identity": f"nvarchar(400) {_BINARY}",
        "name": f"nvarchar(200) {_BINARY}",
        "word": "varchar(80)",
        "numbered": "bigint IDENTITY NOT NULL",
        "uuid": "uniqueidentifier",
        "int": "int",
        "bigint": "bigint",
        "float": "float",
        "bool": "bit",
        "json": "nvarchar(max) AS JSON",
        "moment": "datetime2",
        "lease": "datetime2 NOT NULL DEFAULT '0001-01-01'",
        "stamp": "datetime2 NOT NULL DEFAULT SYSUTCDATETIME()",
    },
    casts=None,
    keys={},
    storage={},
    indexes=(
        # An existing key is skipped and is no error, because two sessions may find the same link at once. The
        # index is clustered by the key: with any other index that skips keys, an insert locks the range up to
        # the next key.
        "CREATE UNIQUE CLUSTERED INDEX queue_key ON our.queue ([key]) WITH (IGNORE_DUP_KEY = ON)",
        "CREATE UNIQUE INDEX queue_id ON our.queue (id)",
        "CREATE INDEX history_identity ON our.history (source, [identity])",
        "CREATE INDEX access_key ON our.access ([key])",
    ),
    now="SYSUTCDATETIME()",
    never="'0001-01-01'",
    by_row=" WITH (ROWLOCK, UPDLOCK)",
    exact=f" {_BINARY}",
    unqueued=" AND NOT EXISTS (SELECT 1 FROM our.queue AS q WHERE q.[key] = h.[key])",
    # Rows are read one by one, as in all joins with a list: reading a whole table would wait for locks of
    # others.
    looked_up=" OPTION (LOOP JOIN)",
    queued=f"{_LEFT} IS NOT NULL",
    truth="CASE WHEN {} THEN 1 ELSE 0 END".format,
    later=_later,
    seconds="DATEDIFF_BIG(microsecond, {}, {}) / 1e6".format,
    second="DATEDIFF(second, '2000-01-01', {})".format,
    rows=lambda json, alias, columns: "OPENJSON({}) WITH ({}) AS {}".format(
        json, ", ".join(f"{name} {kind.partition(' COLLATE')[0]}" for name, kind in columns), alias
    ),
    values=lambda json, kind: f"SELECT value {kind.partition(' ')[2]} FROM OPENJSON({json})",
    json_object=lambda name, value: (
        f"CONCAT('{{', STRING_AGG(CONCAT('\"', STRING_ESCAPE({name}, 'json'), '\":', {value}), ','), '}}')"
    ),
)
_TURN = """SELECT @source = JSON_VALUE(value, '$.source'),
        @leaf = CASE JSON_VALUE(value, '$.leaf') WHEN 'true' THEN 1 ELSE 0 END
    FROM OPENJSON(@turns) WHERE [key] = @turn"""
_TAKE = f"""
    DECLARE @holder uniqueidentifier = $1, @lease_s float = $2, @turns nvarchar(max) = $3, @limit int = $4;
    DECLARE @taken TABLE (
        id bigint, cycle int, [key] uniqueidentifier, source nvarchar(200) {_BINARY}, kind varchar(20),
        url nvarchar(max), detail nvarchar(max), version nvarchar(max), [identity] nvarchar(400));
    DECLARE @turn int = 0, @source nvarchar(200), @leaf bit;
    {_TURN};
    WHILE @source IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @taken)
    BEGIN
        WITH free AS (
            SELECT TOP (@limit) * FROM our.queue WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK)
            WHERE source = @source AND leaf = @leaf AND (held_until < SYSUTCDATETIME() OR holder = @holder)
            ORDER BY id)
        UPDATE free SET holder = @holder, taken = SYSUTCDATETIME(),
            held_until = {_later("@lease_s")}
        OUTPUT inserted.id, inserted.cycle, inserted.[key], inserted.source, inserted.kind, inserted.url,
            inserted.detail, inserted.version, inserted.[identity] INTO @taken;
        SET @turn = @turn + 1;
        SET @source = NULL;
        {_TURN};
    END;{taken(_WORDS, "@taken AS t")}"""
_FINISH = f"""
    DECLARE @holder uniqueidentifier = $1, @items nvarchar(max) = $2, @cycle int = $3,
        @source nvarchar(200) = $4, @found nvarchar(max) = $5;
    DECLARE @done TABLE (
        id bigint, [key] uniqueidentifier, source nvarchar(200), kind varchar(20), url nvarchar(max),
        detail nvarchar(max), [identity] nvarchar(400), cycle int, taken datetime2, state varchar(20),
        reason nvarchar(4000), attempts int, bytes bigint, latency_s float, index_s float,
        version nvarchar(max), address nvarchar(max), ago_s float, grants nvarchar(max),
        targets nvarchar(max), failures nvarchar(max));
    SET XACT_ABORT ON;
    BEGIN TRANSACTION;
    INSERT INTO @done (id, [key], source, kind, url, detail, [identity], cycle, taken, state, reason,
        attempts, bytes, latency_s, index_s, version, address, ago_s, grants, targets, failures)
    SELECT q.id, q.[key], q.source, q.kind, q.url, q.detail, q.[identity], q.cycle, q.taken, g.state,
        g.reason, g.attempts, g.bytes, g.latency_s, g.index_s, g.version, g.address, g.ago_s, g.grants,
        g.targets, g.failures
    FROM {_WORDS.given("@items", "g", DONE)}
        INNER LOOP JOIN our.queue AS q WITH (ROWLOCK, UPDLOCK) ON q.id = g.id
    WHERE q.holder = @holder;
    IF EXISTS (SELECT 1 FROM @done) {added(_WORDS, "@cycle", "@source", "@found")};
    DELETE q FROM @done AS d INNER LOOP JOIN our.queue AS q ON q.id = d.id;
    DELETE a FROM @done AS d INNER LOOP JOIN our.access AS a ON a.[key] = d.[key] WHERE d.grants IS NOT NULL;
    INSERT INTO our.access ([key], principal, rights, allowed)
    SELECT DISTINCT d.[key], g.principal {_BINARY}, g.rights {_BINARY}, g.allowed
    FROM @done AS d CROSS APPLY {_WORDS.given("d.grants", "g", GRANT)};
    DELETE l FROM @done AS d INNER LOOP JOIN our.links AS l ON l.[key] = d.[key] WHERE d.targets IS NOT NULL;
    INSERT INTO our.links ([key], target, url)
    SELECT d.[key], g.target, MIN(g.url)
    FROM @done AS d CROSS APPLY {_WORDS.given("d.targets", "g", TARGET)}
    GROUP BY d.[key], g.target;
    INSERT INTO our.errors ([key], cycle, stage, failure, message)
    SELECT d.[key], d.cycle, g.stage, g.failure, g.message
    FROM @done AS d CROSS APPLY {_WORDS.given("d.failures", "g", FAILURE)};
    DELETE h FROM @done AS d INNER LOOP JOIN our.history AS h ON h.[key] = d.[key];
    INSERT INTO our.history (source, [key], kind, url, detail, [identity], state, reason, attempts, bytes,
        latency_s, index_s, version, cycle, seen, started, ended, holder, id)
    SELECT source, [key], kind, COALESCE(NULLIF(address, ''), url), detail, [identity], state, reason,
        attempts, bytes, latency_s, index_s, version, cycle, cycle, taken,
        DATEADD(millisecond, -1000 * ago_s, SYSUTCDATETIME()), @holder, id
    FROM @done;
    COMMIT TRANSACTION;
    SELECT id FROM @done"""

SQL = CrawlSql(
    **portable(_WORDS)
    | {
        "there": """
    SELECT COUNT(OBJECT_ID(name, 'U')) FROM (VALUES ('our.cycle'), ('our.queue'), ('our.history'),
        ('our.access'), ('our.links'), ('our.errors'), ('our.sources'), ('our.pauses'), ('our.holds'))
        AS made (name)""",
        "greet": "SET XACT_ABORT ON",
        "hold": f"""
    DECLARE @source nvarchar(200) = $1, @host nvarchar(200) = $2, @seconds float = $3;
    DECLARE @until datetime2 = {_later("@seconds")};
    INSERT INTO our.holds (source, host, until)
    SELECT @source, @host, @until
    WHERE NOT EXISTS (
        SELECT 1 FROM our.holds WITH (UPDLOCK, HOLDLOCK) WHERE source = @source AND host = @host);
    UPDATE our.holds SET until = @until WHERE source = @source AND host = @host AND until < @until""",
        "end": """
    DECLARE @number int = $1, @holder uniqueidentifier = $2;
    UPDATE our.cycle SET ended = COALESCE(ended, SYSUTCDATETIME())
    OUTPUT inserted.started, inserted.ended WHERE number = @number AND holder = @holder""",
        "begin": """
    DECLARE @number int = $1, @holder uniqueidentifier = $2;
    INSERT INTO our.cycle (number, started, holder)
    SELECT c.number + 1, SYSUTCDATETIME(), c.holder FROM our.cycle AS c WITH (UPDLOCK, HOLDLOCK)
    WHERE c.number = @number AND c.holder = @holder
        AND NOT EXISTS (SELECT 1 FROM our.cycle AS later WHERE later.number = @number + 1)""",
        "source": """
    DECLARE @source nvarchar(200) = $1, @cycle int = $2, @enumerated bit = $3;
    UPDATE our.sources WITH (UPDLOCK, HOLDLOCK) SET cycle = @cycle, enumerated = @enumerated,
        next_token = NULL
    WHERE source = @source;
    IF @@ROWCOUNT = 0
        INSERT INTO our.sources (source, cycle, enumerated) VALUES (@source, @cycle, @enumerated)""",
        "place": """
    DECLARE @class int = $1, @places int = $2;
    DECLARE @place int = 0, @found int, @got int, @resource nvarchar(255);
    WHILE @place < @places AND @found IS NULL
    BEGIN
        SET @resource = CONCAT('pinchpoint:', @class, ':', @place);
        EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Session',
            @LockTimeout = 0;
        IF @got >= 0 SET @found = @place;
        SET @place = @place + 1;
    END;
    SELECT @found WHERE @found IS NOT NULL""",
        "leave": """
    DECLARE @class int = $1, @place int = $2;
    DECLARE @resource nvarchar(255) = CONCAT('pinchpoint:', @class, ':', @place);
    EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Session'""",
        "take": _TAKE,
        "finish": _FINISH,
        "seen": f"""
    DECLARE @cycle int = $1, @items nvarchar(max) = $2;
    UPDATE h SET seen = @cycle
    FROM {_WORDS.given("@items", "given", ITEM)} INNER LOOP JOIN our.history AS h ON h.[key] = given.[key]
    WHERE h.kind = 'document' AND h.cycle < @cycle AND h.seen < @cycle AND {same(_WORDS)}""",
    }
)
"""Statements of ``CrawlSql``."""
