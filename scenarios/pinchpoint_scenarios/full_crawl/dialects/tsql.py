"""The crawl database on SQL Server (2017 and later, for STRING_AGG): the same tables, the same steps.

Every statement is a batch: parameters are bound to variables first, in the order of ``CrawlSql``. Lists
travel as one JSON array of objects or values. Row locks that others hold are passed over (READPAST), what is
chosen is locked at once (UPDLOCK), and row by row (ROWLOCK): with page locks, two sessions would wait for
each other at the queue's head. A place among a source's workers is an application lock of the connection.

A connection there looks names up in its user's schema, not in one it chooses: every table is written with
``OURS`` before it, for which the schema's name is put (``within``).

No SQL Server has run these statements yet: they are parsed by the tests.
"""

# ruff: noqa: S608 - SQL put together of parts of ours alone; parameters travel apart from it

from __future__ import annotations

from typing import LiteralString

from .contract import CrawlSql

_BINARY = "COLLATE Latin1_General_100_BIN2"
"""As the other servers compare text; many a database here takes A for a, and OPENJSON's columns are as it."""
_CREATE = (
    f"""CREATE TABLE our.queue (
        id bigint IDENTITY NOT NULL, [key] uniqueidentifier NOT NULL,
        source nvarchar(200) {_BINARY} NOT NULL, kind varchar(20) NOT NULL, leaf bit NOT NULL,
        url nvarchar(max) NOT NULL, detail nvarchar(max) NOT NULL, version nvarchar(max) {_BINARY} NOT NULL,
        [identity] nvarchar(400) {_BINARY} NOT NULL, cycle int NOT NULL,
        holder uniqueidentifier, held_until datetime2 NOT NULL DEFAULT '0001-01-01', taken datetime2)""",
    # A key that is there already is passed over, not an error: two sessions may find the same link at once.
    # Clustered by it: of any other index that passes keys over, an insert locks the range up to the next one.
    "CREATE UNIQUE CLUSTERED INDEX queue_key ON our.queue ([key]) WITH (IGNORE_DUP_KEY = ON)",
    "CREATE UNIQUE INDEX queue_id ON our.queue (id)",
    "CREATE INDEX queue_turn ON our.queue (source, leaf, id)",
    f"""CREATE TABLE our.history (
        [key] uniqueidentifier PRIMARY KEY, source nvarchar(200) {_BINARY} NOT NULL,
        kind varchar(20) NOT NULL, url nvarchar(max) NOT NULL, state varchar(20) NOT NULL,
        reason nvarchar(4000) {_BINARY} NOT NULL, attempts int NOT NULL, bytes bigint NOT NULL,
        latency_s float, index_s float, started datetime2 NOT NULL, ended datetime2 NOT NULL,
        detail nvarchar(max) NOT NULL, version nvarchar(max) {_BINARY} NOT NULL,
        [identity] nvarchar(400) {_BINARY} NOT NULL, cycle int NOT NULL, seen int NOT NULL,
        holder uniqueidentifier NOT NULL, id bigint NOT NULL)""",
    "CREATE INDEX history_identity ON our.history (source, [identity])",
    f"""CREATE TABLE our.access (
        [key] uniqueidentifier NOT NULL, principal nvarchar(max) {_BINARY} NOT NULL,
        rights nvarchar(max) {_BINARY} NOT NULL, allowed bit NOT NULL)""",
    "CREATE INDEX access_key ON our.access ([key])",
    """CREATE TABLE our.links (
        [key] uniqueidentifier NOT NULL, target uniqueidentifier NOT NULL, url nvarchar(max) NOT NULL,
        PRIMARY KEY ([key], target))""",
    "CREATE INDEX links_target ON our.links (target)",
    """CREATE TABLE our.errors (
        [key] uniqueidentifier NOT NULL, cycle int NOT NULL, at datetime2 NOT NULL DEFAULT SYSUTCDATETIME(),
        stage varchar(40) NOT NULL, failure varchar(80) NOT NULL, message nvarchar(max) NOT NULL)""",
    "CREATE INDEX errors_key ON our.errors ([key])",
    f"""CREATE TABLE our.sources (
        source nvarchar(200) {_BINARY} PRIMARY KEY, cycle int NOT NULL, enumerated bit NOT NULL,
        token nvarchar(max), next_token nvarchar(max))""",
    """CREATE TABLE our.cycle (
        number int PRIMARY KEY, started datetime2, ended datetime2, holder uniqueidentifier,
        held_until datetime2 NOT NULL DEFAULT '0001-01-01')""",
    "CREATE TABLE our.pauses (cycle int NOT NULL, stopped datetime2 NOT NULL, resumed datetime2 NOT NULL)",
    f"""CREATE TABLE our.holds (
        source nvarchar(200) {_BINARY}, host nvarchar(200) {_BINARY}, until datetime2 NOT NULL,
        PRIMARY KEY (source, host))""",
    "INSERT INTO our.cycle (number, ended) VALUES (0, SYSUTCDATETIME())",
)
_LEFT = "(SELECT MIN(id) FROM our.queue WITH (INDEX(queue_id)))"
"""Of the queue; NULL where it is empty. Read in the order in which items come to it: who waits for one that
was just crawled goes on to what was found in it, which by any other order may lie behind him."""


def _later(seconds: LiteralString) -> LiteralString:
    """The moment so many seconds, a float, from now; a month of milliseconds is too long for an int."""
    return f"""DATEADD(second, FLOOR({seconds}),
            DATEADD(millisecond, ({seconds} - FLOOR({seconds})) * 1000, SYSUTCDATETIME()))"""


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
    END;
    SELECT t.id, t.cycle, LOWER(CONVERT(char(36), t.[key])), t.source, t.kind, t.url, t.detail, t.version,
        t.[identity], CASE WHEN h.state = 'ok' THEN h.version END, (
            SELECT CONCAT('{{', STRING_AGG(CONCAT('"', STRING_ESCAPE(o.host, 'json'), '":',
                DATEDIFF_BIG(millisecond, SYSUTCDATETIME(), o.until) / 1000.0), ','), '}}')
            FROM our.holds AS o WHERE o.source = t.source AND o.until > SYSUTCDATETIME()),
        CASE WHEN h.cycle = t.cycle AND h.kind = t.kind THEN 1 ELSE 0 END
    FROM @taken AS t LEFT JOIN our.history AS h ON h.[key] = t.[key]
    ORDER BY t.id"""
_ITEMS = """WITH (
        [key] uniqueidentifier, kind varchar(20), url nvarchar(max), detail nvarchar(max),
        version nvarchar(max), [identity] nvarchar(400)) AS new"""
_SAME = f"new.version <> '' AND h.version = new.version {_BINARY}"


def _added(items: LiteralString) -> LiteralString:
    """Puts items, a variable, into the queue of the variables ``@cycle`` and ``@source``.

    Looked up one by one, as in all that joins a list: reading a whole table would wait for what others lock.
    """
    return f"""
    INSERT INTO our.queue (cycle, source, [key], kind, leaf, url, detail, version, [identity])
    SELECT @cycle, @source, new.[key], new.kind, CASE WHEN new.kind = 'document' THEN 1 ELSE 0 END, new.url,
        new.detail, new.version, new.[identity]
    FROM OPENJSON({items}) {_ITEMS}
    WHERE NOT EXISTS (SELECT 1 FROM our.queue AS q WHERE q.[key] = new.[key])
        AND NOT EXISTS (
            SELECT 1 FROM our.history AS h WHERE h.[key] = new.[key]
                AND (h.cycle = @cycle OR (new.kind = 'document' AND h.state IN ('ok', 'skipped')
                    AND {_SAME})))
    OPTION (LOOP JOIN)"""


_ADD = "DECLARE @cycle int = $1, @source nvarchar(200) = $2, @items nvarchar(max) = $3;" + _added("@items")
_SEEN = f"""
    DECLARE @cycle int = $1, @items nvarchar(max) = $2;
    UPDATE h SET seen = @cycle
    FROM OPENJSON(@items) {_ITEMS} INNER LOOP JOIN our.history AS h ON h.[key] = new.[key]
    WHERE h.kind = 'document' AND h.cycle < @cycle AND h.seen < @cycle AND h.state IN ('ok', 'skipped')
        AND {_SAME}"""
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
    FROM OPENJSON(@items) WITH (
        id bigint, state varchar(20), reason nvarchar(4000), attempts int, bytes bigint, latency_s float,
        index_s float, version nvarchar(max), address nvarchar(max), ago_s float,
        grants nvarchar(max) AS JSON, targets nvarchar(max) AS JSON, failures nvarchar(max) AS JSON)
        AS g INNER LOOP JOIN our.queue AS q WITH (ROWLOCK, UPDLOCK) ON q.id = g.id
    WHERE q.holder = @holder;
    IF EXISTS (SELECT 1 FROM @done) {_added("@found")};
    DELETE q FROM @done AS d INNER LOOP JOIN our.queue AS q ON q.id = d.id;
    DELETE a FROM @done AS d INNER LOOP JOIN our.access AS a ON a.[key] = d.[key] WHERE d.grants IS NOT NULL;
    INSERT INTO our.access ([key], principal, rights, allowed)
    SELECT DISTINCT d.[key], g.principal {_BINARY}, g.rights {_BINARY}, g.allowed
    FROM @done AS d CROSS APPLY OPENJSON(d.grants) WITH (
        principal nvarchar(max), rights nvarchar(max), allowed bit) AS g;
    DELETE l FROM @done AS d INNER LOOP JOIN our.links AS l ON l.[key] = d.[key] WHERE d.targets IS NOT NULL;
    INSERT INTO our.links ([key], target, url)
    SELECT d.[key], g.target, MIN(g.url)
    FROM @done AS d CROSS APPLY OPENJSON(d.targets) WITH (target uniqueidentifier, url nvarchar(max)) AS g
    GROUP BY d.[key], g.target;
    INSERT INTO our.errors ([key], cycle, stage, failure, message)
    SELECT d.[key], d.cycle, g.stage, g.failure, g.message
    FROM @done AS d CROSS APPLY OPENJSON(d.failures) WITH (
        stage varchar(40), failure varchar(80), message nvarchar(max)) AS g;
    DELETE h FROM @done AS d INNER LOOP JOIN our.history AS h ON h.[key] = d.[key];
    INSERT INTO our.history (source, [key], kind, url, detail, [identity], state, reason, attempts, bytes,
        latency_s, index_s, version, cycle, seen, started, ended, holder, id)
    SELECT source, [key], kind, COALESCE(NULLIF(address, ''), url), detail, [identity], state, reason,
        attempts, bytes, latency_s, index_s, version, cycle, cycle, taken,
        DATEADD(millisecond, -1000 * ago_s, SYSUTCDATETIME()), @holder, id
    FROM @done;
    COMMIT TRANSACTION;
    SELECT id FROM @done"""
_RELINK = """
    DECLARE @cycle int = $1, @keys nvarchar(max) = $2;
    INSERT INTO our.queue (cycle, [key], source, kind, leaf, url, detail, version, [identity])
    SELECT @cycle, h.[key], h.source, h.kind, 1, h.url, h.detail, '', h.[identity] FROM our.history AS h
    WHERE h.kind = 'document' AND h.state IN ('ok', 'skipped') AND h.cycle < @cycle AND h.seen < @cycle
        AND h.[key] IN (
            SELECT l.target FROM our.links AS l WHERE l.[key] IN (SELECT value FROM OPENJSON(@keys)))
        AND NOT EXISTS (SELECT 1 FROM our.queue AS q WHERE q.[key] = h.[key])"""
_REMOVE = """
    INSERT INTO our.queue (cycle, [key], source, kind, leaf, url, detail, version, [identity])
    SELECT @cycle, h.[key], h.source, 'removal', 1, h.url, h.detail, '', h.[identity] FROM our.history AS h
    WHERE h.kind <> 'container' AND h.state <> 'deleted'
        AND NOT EXISTS (SELECT 1 FROM our.queue AS q WHERE q.[key] = h.[key]) AND """
_FAILED_CONTAINER = """EXISTS (
        SELECT 1 FROM our.history AS f WHERE f.source = s.source AND f.cycle = @cycle AND f.kind <> 'document'
            AND f.state = 'failed')"""
_STATE = f"""
    DECLARE @holder uniqueidentifier = $1;
    SELECT TOP (1) number, CASE WHEN ended IS NULL THEN 0 ELSE 1 END,
        CASE WHEN held_until >= SYSUTCDATETIME() AND holder <> @holder THEN 1 ELSE 0 END,
        CASE WHEN {_LEFT} IS NULL THEN 0 ELSE 1 END,
        DATEDIFF_BIG(microsecond, (SELECT MIN(started) FROM our.cycle WHERE number > (
            SELECT MAX(number) FROM our.cycle WHERE started IS NULL)), ended) / 1e6,
        DATEDIFF_BIG(microsecond, started, SYSUTCDATETIME()) / 1e6
    FROM our.cycle ORDER BY number DESC"""
_CLAIM = f"""
    DECLARE @holder uniqueidentifier = $1, @lease_s float = $2, @number int = $3, @ended bit = $4;
    UPDATE our.cycle WITH (ROWLOCK, UPDLOCK) SET holder = @holder,
        held_until = {_later("@lease_s")}
    WHERE number = @number AND CASE WHEN ended IS NULL THEN 0 ELSE 1 END = @ended
        AND (held_until < SYSUTCDATETIME() OR holder = @holder) AND {_LEFT} IS NULL
        AND NOT EXISTS (SELECT 1 FROM our.cycle AS later WHERE later.number > @number)"""
_SUMMARY = """
    DECLARE @cycle int = $1;
    WITH crawled AS (
        SELECT *, CASE WHEN kind = 'document' AND state = 'ok' AND reason = '' THEN 1 ELSE 0 END AS indexed,
            PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CASE WHEN kind = 'document' THEN latency_s END)
                OVER (PARTITION BY source) AS p50_s,
            PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY CASE WHEN kind = 'document' THEN latency_s END)
                OVER (PARTITION BY source) AS p95_s
        FROM our.history WHERE cycle = @cycle),
    spans AS (SELECT source, MIN(started) AS started, MAX(ended) AS ended FROM crawled GROUP BY source)
    SELECT c.source, SUM(c.indexed), SUM(CASE WHEN c.state = 'failed' THEN 1 ELSE 0 END),
        SUM(CASE WHEN c.state = 'skipped' THEN 1 ELSE 0 END), SUM(CASE WHEN c.state = 'deleted' THEN 1 ELSE 0
        END),
        SUM(CASE WHEN c.state = 'ok' AND c.reason <> '' THEN 1 ELSE 0 END)
            + (SELECT COUNT(*) FROM our.history AS h WHERE h.source = c.source
                AND h.cycle < @cycle AND h.seen = @cycle),
        SUM(CASE WHEN c.indexed = 1 THEN c.bytes ELSE 0 END), s.started, s.ended,
        (SELECT COALESCE(SUM(DATEDIFF_BIG(microsecond, p.stopped, p.resumed)) / 1e6, 0) FROM our.pauses AS p
         WHERE p.stopped >= s.started AND p.resumed <= s.ended),
        COUNT(DISTINCT CASE WHEN c.indexed = 1 THEN DATEDIFF(second, s.started, c.ended) END),
        AVG(CASE WHEN c.kind = 'document' THEN c.latency_s END), MAX(c.p50_s), MAX(c.p95_s),
        (SELECT CONCAT('{', STRING_AGG(k.pair, ','), '}') FROM (
            SELECT CONCAT('"', h.reason, '":', COUNT(*)) AS pair FROM our.history AS h
            WHERE h.source = c.source AND h.cycle = @cycle AND h.state = 'failed' GROUP BY h.reason) AS k)
    FROM crawled AS c JOIN spans AS s ON s.source = c.source GROUP BY c.source, s.started, s.ended"""
_FAILURES = """
    DECLARE @cycle int = $1, @each int = $2;
    SELECT r.source, r.url, r.reason, COALESCE(
        (SELECT TOP (1) e.message FROM our.errors AS e WHERE e.[key] = r.[key] AND e.cycle = @cycle
            ORDER BY e.at DESC), ''),
        r.attempts, r.ended
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY source, reason ORDER BY ended) AS place
          FROM our.history WHERE cycle = @cycle AND state = 'failed') AS r
    WHERE r.place <= @each ORDER BY r.source, r.reason, r.ended"""

SQL = CrawlSql(
    create=_CREATE,
    there="""
    SELECT COUNT(OBJECT_ID(name, 'U')) FROM (VALUES ('our.cycle'), ('our.queue'), ('our.history'),
        ('our.access'), ('our.links'), ('our.errors'), ('our.sources'), ('our.pauses'), ('our.holds'))
        AS made (name)""",
    unfinished="SELECT number FROM our.cycle WHERE ended IS NULL ORDER BY number DESC",
    latest="SELECT MAX(number) FROM our.cycle WHERE started IS NOT NULL",
    named="SELECT source FROM our.sources",
    counts="SELECT (SELECT COUNT(*) FROM our.history), (SELECT COUNT(*) FROM our.queue)",
    greet="SET XACT_ABORT ON",
    take=_TAKE,
    drop="""
    DECLARE @holder uniqueidentifier = $1, @ids nvarchar(max) = $2;
    DELETE FROM our.queue WHERE id IN (SELECT value FROM OPENJSON(@ids)) AND holder = @holder""",
    renew=f"""
    DECLARE @lease_s float = $1, @id bigint = $2, @holder uniqueidentifier = $3;
    UPDATE our.queue WITH (ROWLOCK) SET held_until = {_later("@lease_s")}
    WHERE id = @id AND holder = @holder""",
    add=_ADD,
    seen=_SEEN,
    finish=_FINISH,
    finished="""
    DECLARE @holder uniqueidentifier = $1, @items nvarchar(max) = $2;
    SELECT h.id FROM OPENJSON(@items) WITH (id bigint, [key] uniqueidentifier) AS item
        JOIN our.history AS h ON h.[key] = item.[key] AND h.id = item.id
    WHERE h.holder = @holder""",
    relink=_RELINK,
    hold=f"""
    DECLARE @source nvarchar(200) = $1, @host nvarchar(200) = $2, @seconds float = $3;
    DECLARE @until datetime2 = {_later("@seconds")};
    INSERT INTO our.holds (source, host, until)
    SELECT @source, @host, @until
    WHERE NOT EXISTS (
        SELECT 1 FROM our.holds WITH (UPDLOCK, HOLDLOCK) WHERE source = @source AND host = @host);
    UPDATE our.holds SET until = @until WHERE source = @source AND host = @host AND until < @until""",
    forget="DECLARE @cycle int = $1, @source nvarchar(200) = $2, @identities nvarchar(max) = $3;"
    + _REMOVE
    + """h.source = @source AND h.[identity] <> ''
        AND h.[identity] IN (SELECT value """
    + _BINARY
    + " FROM OPENJSON(@identities))",
    moved="DECLARE @cycle int = $1, @source nvarchar(200) = $2, @items nvarchar(max) = $3;"
    + _REMOVE
    + """h.source = @source AND EXISTS (
        SELECT 1 FROM OPENJSON(@items) """
    + _ITEMS
    + """
        WHERE h.[identity] = new.[identity] """
    + _BINARY
    + """ AND new.[identity] <> '' AND new.[key] <> h.[key])""",
    sweep="DECLARE @cycle int = $1;"
    + _REMOVE
    + "h.seen < @cycle AND h.source IN (SELECT s.source FROM our.sources AS s WHERE s.enumerated = 1"
    + " AND s.cycle = @cycle AND NOT "
    + _FAILED_CONTAINER
    + ")",
    state=_STATE,
    claim=_CLAIM,
    give_back="""
    DECLARE @number int = $1, @holder uniqueidentifier = $2;
    UPDATE our.cycle SET held_until = '0001-01-01' WHERE number = @number AND holder = @holder""",
    end="""
    DECLARE @number int = $1, @holder uniqueidentifier = $2;
    UPDATE our.cycle SET ended = COALESCE(ended, SYSUTCDATETIME())
    OUTPUT inserted.started, inserted.ended WHERE number = @number AND holder = @holder""",
    begin="""
    DECLARE @number int = $1, @holder uniqueidentifier = $2;
    INSERT INTO our.cycle (number, started, holder)
    SELECT c.number + 1, SYSUTCDATETIME(), c.holder FROM our.cycle AS c WITH (UPDLOCK, HOLDLOCK)
    WHERE c.number = @number AND c.holder = @holder
        AND NOT EXISTS (SELECT 1 FROM our.cycle AS later WHERE later.number = @number + 1)""",
    begun="""
    DECLARE @number int = $1, @holder uniqueidentifier = $2;
    SELECT started FROM our.cycle WHERE number = @number + 1 AND holder = @holder""",
    forget_all=(
        "TRUNCATE TABLE our.history",
        "TRUNCATE TABLE our.access",
        "TRUNCATE TABLE our.links",
        "TRUNCATE TABLE our.errors",
        "TRUNCATE TABLE our.sources",
    ),
    retry="""
    DECLARE @cycle int = $1, @source nvarchar(200) = $2;
    INSERT INTO our.queue (cycle, [key], source, kind, leaf, url, detail, version, [identity])
    SELECT @cycle, h.[key], h.source, h.kind, CASE WHEN h.kind = 'container' THEN 0 ELSE 1 END, h.url,
    h.detail, '',
        h.[identity]
    FROM our.history AS h
    WHERE h.source = @source AND h.state = 'failed' AND h.cycle < @cycle AND h.kind <> 'changes'
        AND NOT EXISTS (SELECT 1 FROM our.queue AS q WHERE q.[key] = h.[key])""",
    source="""
    DECLARE @source nvarchar(200) = $1, @cycle int = $2, @enumerated bit = $3;
    UPDATE our.sources WITH (UPDLOCK, HOLDLOCK) SET cycle = @cycle, enumerated = @enumerated,
        next_token = NULL
    WHERE source = @source;
    IF @@ROWCOUNT = 0
        INSERT INTO our.sources (source, cycle, enumerated) VALUES (@source, @cycle, @enumerated)""",
    tokens="SELECT source, token FROM our.sources",
    mark="""
    DECLARE @source nvarchar(200) = $1, @token nvarchar(max) = $2;
    UPDATE our.sources SET next_token = @token WHERE source = @source""",
    keep_tokens="""
    DECLARE @cycle int = $1;
    UPDATE s SET token = s.next_token, next_token = NULL FROM our.sources AS s
    WHERE s.cycle = @cycle AND s.next_token IS NOT NULL AND NOT """
    + _FAILED_CONTAINER,
    summary=_SUMMARY,
    failures=_FAILURES,
    place="""
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
    leave="""
    DECLARE @class int = $1, @place int = $2;
    DECLARE @resource nvarchar(255) = CONCAT('pinchpoint:', @class, ':', @place);
    EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Session'""",
    follow="INSERT INTO our.cycle (number, ended) SELECT MAX(number) + 1, SYSUTCDATETIME() FROM our.cycle",
    release=(
        "UPDATE our.queue SET holder = NULL, held_until = '0001-01-01' WHERE holder IS NOT NULL",
        "UPDATE our.cycle SET held_until = '0001-01-01'",
    ),
    pause="""
    INSERT INTO our.pauses (cycle, stopped, resumed)
    SELECT TOP (1) c.number, (
        SELECT MAX(t.at) FROM (
            SELECT c.started AS at UNION ALL SELECT MAX(ended) FROM our.history
            UNION ALL SELECT MAX(taken) FROM our.queue) AS t), SYSUTCDATETIME()
    FROM our.cycle AS c WHERE c.ended IS NULL ORDER BY c.number DESC""",
)
"""The statements of ``CrawlSql``."""
