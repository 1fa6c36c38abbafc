"""The crawl database on SQL Server (2016 and later, for OPENJSON): the same tables, the same steps.

Every statement is a batch: parameters are bound to variables first, in the order of ``CrawlSql``. Lists
travel as one
JSON array of objects or values. Row locks that others hold are passed over (READPAST), what is chosen is
locked at
once (UPDLOCK), and row by row (ROWLOCK): with page locks, two sessions would wait for each other at the
queue's head.
A place among a source's workers is an application lock of the connection.

Nothing drives these statements yet: they are parsed by the tests, not run.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from typing import LiteralString

from .contract import CrawlSql

_CREATE = (
    """CREATE TABLE queue (
        id bigint IDENTITY PRIMARY KEY, [key] uniqueidentifier NOT NULL UNIQUE, source nvarchar(200) NOT NULL,
        kind varchar(20) NOT NULL, leaf bit NOT NULL, url nvarchar(max) NOT NULL, detail nvarchar(max) NOT
        NULL,
        version nvarchar(400) NOT NULL, [identity] nvarchar(400) NOT NULL, cycle int NOT NULL,
        holder uniqueidentifier, held_until datetime2 NOT NULL DEFAULT '0001-01-01', taken datetime2)""",
    "CREATE INDEX queue_turn ON queue (source, leaf, id)",
    """CREATE TABLE history (
        [key] uniqueidentifier PRIMARY KEY, source nvarchar(200) NOT NULL, kind varchar(20) NOT NULL,
        url nvarchar(max) NOT NULL, state varchar(20) NOT NULL, reason nvarchar(400) NOT NULL, attempts int
        NOT NULL,
        bytes bigint NOT NULL, latency_s float, index_s float, started datetime2 NOT NULL, ended datetime2
        NOT NULL,
        detail nvarchar(max) NOT NULL, version nvarchar(400) NOT NULL, [identity] nvarchar(400) NOT NULL,
        cycle int NOT NULL, seen int NOT NULL, holder uniqueidentifier NOT NULL, id bigint NOT NULL)""",
    "CREATE INDEX history_identity ON history (source, [identity]) WHERE [identity] <> ''",
    """CREATE TABLE access (
        [key] uniqueidentifier NOT NULL, principal nvarchar(200) NOT NULL, rights nvarchar(200) NOT NULL,
        allowed bit NOT NULL, PRIMARY KEY ([key], principal, rights, allowed))""",
    """CREATE TABLE links (
        [key] uniqueidentifier NOT NULL, target uniqueidentifier NOT NULL, url nvarchar(max) NOT NULL,
        PRIMARY KEY ([key], target))""",
    "CREATE INDEX links_target ON links (target)",
    """CREATE TABLE errors (
        [key] uniqueidentifier NOT NULL, cycle int NOT NULL, at datetime2 NOT NULL DEFAULT SYSUTCDATETIME(),
        stage varchar(40) NOT NULL, failure varchar(80) NOT NULL, message nvarchar(400) NOT NULL)""",
    "CREATE INDEX errors_key ON errors ([key])",
    """CREATE TABLE sources (
        source nvarchar(200) PRIMARY KEY, cycle int NOT NULL, enumerated bit NOT NULL, token nvarchar(max),
        next_token nvarchar(max))""",
    """CREATE TABLE cycle (
        number int PRIMARY KEY, started datetime2, ended datetime2, holder uniqueidentifier,
        held_until datetime2 NOT NULL DEFAULT '0001-01-01')""",
    "CREATE TABLE pauses (cycle int NOT NULL, stopped datetime2 NOT NULL, resumed datetime2 NOT NULL)",
    """CREATE TABLE holds (
        source nvarchar(200), host nvarchar(200), until datetime2 NOT NULL, PRIMARY KEY (source, host))""",
    "INSERT INTO cycle (number, ended) VALUES (0, SYSUTCDATETIME())",
)
_TAKE = """
    DECLARE @holder uniqueidentifier = ?, @lease_s float = ?, @turns nvarchar(max) = ?, @limit int = ?;
    DECLARE @taken TABLE (
        id bigint, cycle int, [key] uniqueidentifier, source nvarchar(200), kind varchar(20), url
        nvarchar(max),
        detail nvarchar(max), version nvarchar(400), [identity] nvarchar(400));
    DECLARE @turn int = 0, @source nvarchar(200), @leaf bit;
    SELECT @source = JSON_VALUE(value, '$.source'), @leaf = CASE JSON_VALUE(value, '$.leaf')
        WHEN 'true' THEN 1 ELSE 0 END FROM OPENJSON(@turns) WHERE [key] = @turn;
    WHILE @source IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @taken)
    BEGIN
        WITH free AS (
            SELECT TOP (@limit) * FROM queue WITH (ROWLOCK, UPDLOCK, READPAST)
            WHERE source = @source AND leaf = @leaf AND (held_until < SYSUTCDATETIME() OR holder = @holder)
            ORDER BY id)
        UPDATE free SET holder = @holder, taken = SYSUTCDATETIME(),
            held_until = DATEADD(millisecond, @lease_s * 1000, SYSUTCDATETIME())
        OUTPUT inserted.id, inserted.cycle, inserted.[key], inserted.source, inserted.kind, inserted.url,
            inserted.detail, inserted.version, inserted.[identity] INTO @taken;
        SET @turn = @turn + 1;
        SET @source = NULL;
        SELECT @source = JSON_VALUE(value, '$.source'), @leaf = CASE JSON_VALUE(value, '$.leaf')
            WHEN 'true' THEN 1 ELSE 0 END FROM OPENJSON(@turns) WHERE [key] = @turn;
    END;
    SELECT t.*, CASE WHEN h.state = 'ok' THEN h.version END, (
        SELECT CONCAT('{', STRING_AGG(CONCAT('"', STRING_ESCAPE(o.host, 'json'), '":',
            DATEDIFF_BIG(millisecond, SYSUTCDATETIME(), o.until) / 1000.0), ','), '}')
        FROM holds AS o WHERE o.source = t.source AND o.until > SYSUTCDATETIME()),
        CASE WHEN h.cycle = t.cycle AND h.kind = t.kind THEN 1 ELSE 0 END
    FROM @taken AS t LEFT JOIN history AS h ON h.[key] = t.[key]
    ORDER BY t.id"""
_ITEMS = """WITH (
        [key] uniqueidentifier, kind varchar(20), url nvarchar(max), detail nvarchar(max),
        version nvarchar(400), [identity] nvarchar(400)) AS new"""


def _added(items: LiteralString) -> LiteralString:
    """Puts items, a variable, into the queue of the variables ``@cycle`` and ``@source``."""
    return f"""
    INSERT INTO queue (cycle, source, [key], kind, leaf, url, detail, version, [identity])
    SELECT @cycle, @source, new.[key], new.kind, CASE WHEN new.kind = 'document' THEN 1 ELSE 0 END, new.url,
        new.detail, new.version, new.[identity]
    FROM OPENJSON({items}) {_ITEMS}
    WHERE NOT EXISTS (SELECT 1 FROM queue WITH (UPDLOCK, HOLDLOCK) WHERE queue.[key] = new.[key])
        AND NOT EXISTS (
            SELECT 1 FROM history AS h WHERE h.[key] = new.[key]
                AND (h.cycle = @cycle OR (new.kind = 'document' AND h.state IN ('ok', 'skipped')
                    AND new.version <> '' AND h.version = new.version)))"""


_ADD = "DECLARE @cycle int = ?, @source nvarchar(200) = ?, @items nvarchar(max) = ?;" + _added("@items")
_SEEN = f"""
    DECLARE @cycle int = ?, @items nvarchar(max) = ?;
    UPDATE h SET seen = @cycle
    FROM history AS h JOIN OPENJSON(@items) {_ITEMS} ON h.[key] = new.[key]
    WHERE h.kind = 'document' AND h.cycle < @cycle AND h.seen < @cycle AND h.state IN ('ok', 'skipped')
        AND new.version <> '' AND h.version = new.version"""
_FINISH = f"""
    DECLARE @holder uniqueidentifier = ?, @items nvarchar(max) = ?, @cycle int = ?,
        @source nvarchar(200) = ?, @found nvarchar(max) = ?;
    DECLARE @done TABLE (
        id bigint, [key] uniqueidentifier, source nvarchar(200), kind varchar(20), url nvarchar(max),
        detail nvarchar(max), [identity] nvarchar(400), cycle int, taken datetime2, state varchar(20),
        reason nvarchar(400), attempts int, bytes bigint, latency_s float, index_s float,
        version nvarchar(400), address nvarchar(max), ago_s float, grants nvarchar(max),
        targets nvarchar(max), failures nvarchar(max));
    SET XACT_ABORT ON;
    BEGIN TRANSACTION;
    INSERT INTO @done (id, [key], source, kind, url, detail, [identity], cycle, taken, state, reason,
        attempts, bytes, latency_s, index_s, version, address, ago_s, grants, targets, failures)
    SELECT q.id, q.[key], q.source, q.kind, q.url, q.detail, q.[identity], q.cycle, q.taken, g.state,
        g.reason, g.attempts, g.bytes, g.latency_s, g.index_s, g.version, g.address, g.ago_s, g.grants,
        g.targets, g.failures
    FROM queue AS q WITH (ROWLOCK, UPDLOCK) JOIN OPENJSON(@items) WITH (
        id bigint, state varchar(20), reason nvarchar(400), attempts int, bytes bigint, latency_s float,
        index_s float, version nvarchar(400), address nvarchar(max), ago_s float,
        grants nvarchar(max) AS JSON, targets nvarchar(max) AS JSON, failures nvarchar(max) AS JSON)
        AS g ON g.id = q.id
    WHERE q.holder = @holder;
    IF EXISTS (SELECT 1 FROM @done) {_added("@found")};
    DELETE q FROM queue AS q JOIN @done AS d ON q.id = d.id;
    DELETE a FROM access AS a JOIN @done AS d ON a.[key] = d.[key] WHERE d.grants IS NOT NULL;
    INSERT INTO access ([key], principal, rights, allowed)
    SELECT DISTINCT d.[key], g.principal, g.rights, g.allowed
    FROM @done AS d CROSS APPLY OPENJSON(d.grants) WITH (
        principal nvarchar(200), rights nvarchar(200), allowed bit) AS g;
    DELETE l FROM links AS l JOIN @done AS d ON l.[key] = d.[key] WHERE d.targets IS NOT NULL;
    INSERT INTO links ([key], target, url)
    SELECT DISTINCT d.[key], g.target, g.url
    FROM @done AS d CROSS APPLY OPENJSON(d.targets) WITH (target uniqueidentifier, url nvarchar(4000)) AS g;
    INSERT INTO errors ([key], cycle, stage, failure, message)
    SELECT d.[key], d.cycle, g.stage, g.failure, g.message
    FROM @done AS d CROSS APPLY OPENJSON(d.failures) WITH (
        stage varchar(40), failure varchar(80), message nvarchar(400)) AS g;
    DELETE h FROM history AS h JOIN @done AS d ON h.[key] = d.[key];
    INSERT INTO history (source, [key], kind, url, detail, [identity], state, reason, attempts, bytes,
        latency_s, index_s, version, cycle, seen, started, ended, holder, id)
    SELECT source, [key], kind, COALESCE(NULLIF(address, ''), url), detail, [identity], state, reason,
        attempts, bytes, latency_s, index_s, version, cycle, cycle, taken,
        DATEADD(millisecond, -1000 * ago_s, SYSUTCDATETIME()), @holder, id
    FROM @done;
    COMMIT TRANSACTION;
    SELECT id FROM @done"""
_RELINK = """
    DECLARE @cycle int = ?, @keys nvarchar(max) = ?;
    INSERT INTO queue (cycle, [key], source, kind, leaf, url, detail, version, [identity])
    SELECT @cycle, h.[key], h.source, h.kind, 1, h.url, h.detail, '', h.[identity] FROM history AS h
    WHERE h.kind = 'document' AND h.state IN ('ok', 'skipped') AND h.cycle < @cycle AND h.seen < @cycle
        AND h.[key] IN (
            SELECT l.target FROM links AS l WHERE l.[key] IN (SELECT value FROM OPENJSON(@keys)))
        AND NOT EXISTS (SELECT 1 FROM queue WITH (UPDLOCK, HOLDLOCK) WHERE queue.[key] = h.[key])"""
_REMOVE = """
    INSERT INTO queue (cycle, [key], source, kind, leaf, url, detail, version, [identity])
    SELECT @cycle, h.[key], h.source, 'removal', 1, h.url, h.detail, '', h.[identity] FROM history AS h
    WHERE h.kind <> 'container' AND h.state <> 'deleted'
        AND NOT EXISTS (SELECT 1 FROM queue WITH (UPDLOCK, HOLDLOCK) WHERE queue.[key] = h.[key]) AND """
_FAILED_CONTAINER = """EXISTS (
        SELECT 1 FROM history AS f WHERE f.source = s.source AND f.cycle = @cycle AND f.kind <> 'document'
            AND f.state = 'failed')"""
_STATE = """
    DECLARE @holder uniqueidentifier = ?;
    SELECT TOP (1) number, CASE WHEN ended IS NULL THEN 0 ELSE 1 END,
        CASE WHEN held_until >= SYSUTCDATETIME() AND holder <> @holder THEN 1 ELSE 0 END,
        CASE WHEN EXISTS (SELECT 1 FROM queue) THEN 1 ELSE 0 END,
        DATEDIFF_BIG(microsecond, (SELECT MIN(started) FROM cycle WHERE number > (
            SELECT MAX(number) FROM cycle WHERE started IS NULL)), ended) / 1e6,
        DATEDIFF_BIG(microsecond, started, SYSUTCDATETIME()) / 1e6
    FROM cycle ORDER BY number DESC"""
_CLAIM = """
    DECLARE @holder uniqueidentifier = ?, @lease_s float = ?, @number int = ?, @ended bit = ?;
    UPDATE cycle WITH (ROWLOCK, UPDLOCK) SET holder = @holder,
        held_until = DATEADD(millisecond, @lease_s * 1000, SYSUTCDATETIME())
    WHERE number = @number AND CASE WHEN ended IS NULL THEN 0 ELSE 1 END = @ended
        AND (held_until < SYSUTCDATETIME() OR holder = @holder) AND NOT EXISTS (SELECT 1 FROM queue)
        AND NOT EXISTS (SELECT 1 FROM cycle AS later WHERE later.number > @number)"""
_SUMMARY = """
    DECLARE @cycle int = ?;
    WITH crawled AS (
        SELECT *, CASE WHEN kind = 'document' AND state = 'ok' AND reason = '' THEN 1 ELSE 0 END AS indexed,
            PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CASE WHEN kind = 'document' THEN latency_s END)
                OVER (PARTITION BY source) AS p50_s,
            PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY CASE WHEN kind = 'document' THEN latency_s END)
                OVER (PARTITION BY source) AS p95_s
        FROM history WHERE cycle = @cycle),
    spans AS (SELECT source, MIN(started) AS started, MAX(ended) AS ended FROM crawled GROUP BY source)
    SELECT c.source, SUM(c.indexed), SUM(CASE WHEN c.state = 'failed' THEN 1 ELSE 0 END),
        SUM(CASE WHEN c.state = 'skipped' THEN 1 ELSE 0 END), SUM(CASE WHEN c.state = 'deleted' THEN 1 ELSE 0
        END),
        SUM(CASE WHEN c.state = 'ok' AND c.reason <> '' THEN 1 ELSE 0 END)
            + (SELECT COUNT(*) FROM history AS h WHERE h.source = c.source AND h.cycle < @cycle AND h.seen =
            @cycle),
        SUM(CASE WHEN c.indexed = 1 THEN c.bytes ELSE 0 END), s.started, s.ended,
        (SELECT COALESCE(SUM(DATEDIFF_BIG(microsecond, p.stopped, p.resumed)) / 1e6, 0) FROM pauses AS p
         WHERE p.stopped >= s.started AND p.resumed <= s.ended),
        COUNT(DISTINCT CASE WHEN c.indexed = 1 THEN DATEDIFF(second, s.started, c.ended) END),
        AVG(CASE WHEN c.kind = 'document' THEN c.latency_s END), MAX(c.p50_s), MAX(c.p95_s),
        (SELECT CONCAT('{', STRING_AGG(k.pair, ','), '}') FROM (
            SELECT CONCAT('"', h.reason, '":', COUNT(*)) AS pair FROM history AS h
            WHERE h.source = c.source AND h.cycle = @cycle AND h.state = 'failed' GROUP BY h.reason) AS k)
    FROM crawled AS c JOIN spans AS s ON s.source = c.source GROUP BY c.source, s.started, s.ended"""
_FAILURES = """
    DECLARE @cycle int = ?, @each int = ?;
    SELECT r.source, r.url, r.reason, COALESCE(
        (SELECT TOP (1) e.message FROM errors AS e WHERE e.[key] = r.[key] AND e.cycle = @cycle ORDER BY e.at
        DESC), ''),
        r.attempts, r.ended
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY source, reason ORDER BY ended) AS place
          FROM history WHERE cycle = @cycle AND state = 'failed') AS r
    WHERE r.place <= @each ORDER BY r.source, r.reason, r.ended"""

SQL = CrawlSql(
    create=_CREATE,
    there="""
    SELECT COUNT(*) FROM sys.tables WHERE schema_id = SCHEMA_ID() AND name IN (
        'cycle', 'queue', 'history', 'access', 'links', 'errors', 'sources', 'pauses', 'holds')""",
    greet="SET XACT_ABORT ON",
    take=_TAKE,
    drop="""
    DECLARE @holder uniqueidentifier = ?, @ids nvarchar(max) = ?;
    DELETE FROM queue WHERE id IN (SELECT value FROM OPENJSON(@ids)) AND holder = @holder""",
    renew="""
    DECLARE @lease_s float = ?, @id bigint = ?, @holder uniqueidentifier = ?;
    UPDATE queue WITH (ROWLOCK) SET held_until = DATEADD(millisecond, @lease_s * 1000, SYSUTCDATETIME())
    WHERE id = @id AND holder = @holder""",
    add=_ADD,
    seen=_SEEN,
    finish=_FINISH,
    finished="""
    DECLARE @holder uniqueidentifier = ?, @items nvarchar(max) = ?;
    SELECT h.id FROM OPENJSON(@items) WITH (id bigint, [key] uniqueidentifier) AS item
        JOIN history AS h ON h.[key] = item.[key] AND h.id = item.id
    WHERE h.holder = @holder""",
    relink=_RELINK,
    hold="""
    DECLARE @source nvarchar(200) = ?, @host nvarchar(200) = ?, @seconds float = ?;
    DECLARE @until datetime2 = DATEADD(millisecond, @seconds * 1000, SYSUTCDATETIME());
    UPDATE holds WITH (UPDLOCK, HOLDLOCK) SET until = CASE WHEN until < @until THEN @until ELSE until END
    WHERE source = @source AND host = @host;
    IF @@ROWCOUNT = 0
        INSERT INTO holds (source, host, until) VALUES (@source, @host, @until)""",
    forget="DECLARE @cycle int = ?, @source nvarchar(200) = ?, @identities nvarchar(max) = ?;"
    + _REMOVE
    + """h.source = @source AND h.[identity] <> ''
        AND h.[identity] IN (SELECT value FROM OPENJSON(@identities))""",
    moved="DECLARE @cycle int = ?, @source nvarchar(200) = ?, @items nvarchar(max) = ?;"
    + _REMOVE
    + """h.source = @source AND EXISTS (
        SELECT 1 FROM OPENJSON(@items) """
    + _ITEMS
    + """
        WHERE new.[identity] = h.[identity] AND new.[identity] <> '' AND new.[key] <> h.[key])""",
    sweep="DECLARE @cycle int = ?;"
    + _REMOVE
    + "h.seen < @cycle AND h.source IN (SELECT s.source FROM sources AS s WHERE s.enumerated = 1"
    + " AND s.cycle = @cycle AND NOT "
    + _FAILED_CONTAINER
    + ")",
    state=_STATE,
    claim=_CLAIM,
    give_back="""
    DECLARE @number int = ?, @holder uniqueidentifier = ?;
    UPDATE cycle SET held_until = '0001-01-01' WHERE number = @number AND holder = @holder""",
    end="""
    DECLARE @number int = ?, @holder uniqueidentifier = ?;
    UPDATE cycle SET ended = COALESCE(ended, SYSUTCDATETIME())
    OUTPUT inserted.started, inserted.ended WHERE number = @number AND holder = @holder""",
    begin="""
    DECLARE @number int = ?, @holder uniqueidentifier = ?;
    INSERT INTO cycle (number, started, holder)
    SELECT c.number + 1, SYSUTCDATETIME(), c.holder FROM cycle AS c WITH (UPDLOCK, HOLDLOCK)
    WHERE c.number = @number AND c.holder = @holder
        AND NOT EXISTS (SELECT 1 FROM cycle AS later WHERE later.number = @number + 1)""",
    begun="""
    DECLARE @number int = ?, @holder uniqueidentifier = ?;
    SELECT started FROM cycle WHERE number = @number + 1 AND holder = @holder""",
    forget_all=(
        "TRUNCATE TABLE history",
        "TRUNCATE TABLE access",
        "TRUNCATE TABLE links",
        "TRUNCATE TABLE errors",
        "TRUNCATE TABLE sources",
    ),
    retry="""
    DECLARE @cycle int = ?, @source nvarchar(200) = ?;
    INSERT INTO queue (cycle, [key], source, kind, leaf, url, detail, version, [identity])
    SELECT @cycle, h.[key], h.source, h.kind, CASE WHEN h.kind = 'container' THEN 0 ELSE 1 END, h.url,
    h.detail, '',
        h.[identity]
    FROM history AS h
    WHERE h.source = @source AND h.state = 'failed' AND h.cycle < @cycle AND h.kind <> 'changes'
        AND NOT EXISTS (SELECT 1 FROM queue WITH (UPDLOCK, HOLDLOCK) WHERE queue.[key] = h.[key])""",
    source="""
    DECLARE @source nvarchar(200) = ?, @cycle int = ?, @enumerated bit = ?;
    UPDATE sources WITH (UPDLOCK, HOLDLOCK) SET cycle = @cycle, enumerated = @enumerated, next_token = NULL
    WHERE source = @source;
    IF @@ROWCOUNT = 0
        INSERT INTO sources (source, cycle, enumerated) VALUES (@source, @cycle, @enumerated)""",
    tokens="SELECT source, token FROM sources",
    mark="""
    DECLARE @source nvarchar(200) = ?, @token nvarchar(max) = ?;
    UPDATE sources SET next_token = @token WHERE source = @source""",
    keep_tokens="""
    DECLARE @cycle int = ?;
    UPDATE s SET token = s.next_token, next_token = NULL FROM sources AS s
    WHERE s.cycle = @cycle AND s.next_token IS NOT NULL AND NOT """
    + _FAILED_CONTAINER,
    summary=_SUMMARY,
    failures=_FAILURES,
    place="""
    DECLARE @class int = ?, @places int = ?;
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
    leave="""
    DECLARE @class int = ?, @place int = ?;
    DECLARE @resource nvarchar(255) = CONCAT('pinchpoint:', @class, ':', @place);
    EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Session'""",
    follow="INSERT INTO cycle (number, ended) SELECT MAX(number) + 1, SYSUTCDATETIME() FROM cycle",
    release=(
        "UPDATE queue SET holder = NULL, held_until = '0001-01-01' WHERE holder IS NOT NULL",
        "UPDATE cycle SET held_until = '0001-01-01'",
    ),
    pause="""
    INSERT INTO pauses (cycle, stopped, resumed)
    SELECT TOP (1) c.number, (
        SELECT MAX(t.at) FROM (
            SELECT c.started AS at UNION ALL SELECT MAX(ended) FROM history UNION ALL SELECT MAX(taken) FROM
            queue
        ) AS t), SYSUTCDATETIME()
    FROM cycle AS c WHERE c.ended IS NULL ORDER BY c.number DESC""",
)
"""The statements of ``CrawlSql``."""
