"""Tests of top SQL statements: growth between two samples, on real servers and recorded Query Store rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from collectors.asking import asking
from collectors.mariadb_server import LOADER, PLAIN, WATCHER, mariadb
from collectors.test_sqlserver import ABOUT
from postgresserver import older_postgres

from pinchpoint_collectors.databases import sqlserver, top_statements
from pinchpoint_collectors.databases.base import RefusedError
from pinchpoint_collectors.databases.sqlserver import SqlserverCollector
from pinchpoint_collectors.databases.top_statements import (
    Counted,
    CountsStatements,
    Grown,
    UncountedError,
    growth,
    legible,
)


def counter(
    key: str, calls: float, time_s: float, rows: float | None = 0.0, text: str | None = "t"
) -> Counted:
    return Counted(key, key.partition("/")[0], "shop", calls, time_s, rows, text)


def test_growth_is_what_happened_in_between() -> None:
    """Growth includes new statements and sums counters; reset and idle statements are left out."""
    before = [counter("a/1", 10, 1.0), counter("b", 5, 9.0), counter("c", 50, 5.0), counter("gone", 1, 1.0)]
    after = [
        counter("a/1", 14, 3.0, 8.0),
        counter("a/2", 2, 0.5, 2.0),
        counter("b", 5, 9.0),
        counter("c", 3, 0.25, None),
        counter("new", 1, 4.0, 1.0, None),
    ]
    assert growth(before, after) == [
        Grown(None, "shop", 1, 4.0, 1.0),
        Grown("t", "shop", 6, 2.5, 10.0),
        Grown("t", "shop", 3, 0.25, None),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT  *\n FROM t WHERE a = $1", "SELECT * FROM t WHERE a = $1"),
        ("CREATE ROLE x PASSWORD 'it''s secret' LOGIN", "CREATE ROLE x PASSWORD '...' LOGIN"),
        ("ALTER ROLE x PASSWORD 'cut of", "ALTER ROLE x PASSWORD '...'"),
        ("DO $body$ BEGIN 'x' END $body$", "DO '...'"),
        ("SELECT " + "x" * 2000, "SELECT " + "x" * 992 + "…"),
    ],
)
def test_a_statement_is_one_line_without_the_texts_in_it(text: str, shown: str) -> None:
    assert legible(text) == shown
    assert len(legible(text)) <= top_statements.TEXT_LENGTH


def test_postgres_counts_statements_once_the_extension_is_there() -> None:
    """Without the extension the remedy is given; with it calls, rows and normalised text are the server's."""
    with older_postgres("shared_preload_libraries=pg_stat_statements") as server:
        options = {"user": "monitor", "password": "sesame"}
        with asking("postgres", "db1", "sql", server.admin, **options) as collector:
            assert isinstance(collector, CountsStatements)
            with pytest.raises(UncountedError, match="CREATE EXTENSION pg_stat_statements"):
                collector.statement_counts(texts=False)
            server.ask("CREATE EXTENSION pg_stat_statements")
            before = collector.statement_counts(texts=False)
            assert all(one.text is None for one in before)
            with psycopg.connect(server.loader, autocommit=True) as session:
                session.execute("CREATE TABLE thing (id int)")
                for number in range(7):
                    session.execute(f"INSERT INTO thing SELECT generate_series(1, {number + 1})")
                session.execute("SELECT pg_sleep(0.2)")
            collector.read()
            found = growth(before, collector.statement_counts(texts=True))
        texts = [one.text for one in found]
        assert texts[0] == "SELECT pg_sleep($1)", texts
        assert found[0].time_s == pytest.approx(0.2, abs=0.15)
        [insert] = [one for one in found if one.text == "INSERT INTO thing SELECT generate_series($1, $2)"]
        assert (insert.calls, insert.rows, insert.database) == (7, 28, "loadtest")
        own = ("pg_stat_activity", "pg_postmaster_start_time", "pg_stat_wal", "FROM pg_stat_statements")
        assert not [text for text in texts if text and any(name in text for name in own)], texts


def test_a_postgres_without_the_library_says_how_to_load_it() -> None:
    with older_postgres() as server, asking("postgres", "db1", "sql", server.admin) as collector:
        server.ask("CREATE EXTENSION pg_stat_statements")
        assert isinstance(collector, CountsStatements)
        with pytest.raises(UncountedError, match="set shared_preload_libraries = 'pg_stat_statements'"):
            collector.statement_counts(texts=False)


def test_mariadb_counts_digests() -> None:
    """With the performance schema calls, rows and normalised text are counted, else the remedy is given."""
    with mariadb("--performance-schema=ON") as server:
        with asking("mariadb", "db1", "sql", server.url(WATCHER)) as collector:
            assert isinstance(collector, CountsStatements)
            server.admin(
                "UPDATE performance_schema.setup_instruments SET ENABLED='NO' WHERE NAME LIKE 'statement/%'"
            )
            with pytest.raises(UncountedError, match=r"run: UPDATE performance_schema\.setup_instruments"):
                collector.statement_counts(texts=False)
            server.admin(
                "UPDATE performance_schema.setup_instruments SET ENABLED='YES', TIMED='YES' "
                "WHERE NAME LIKE 'statement/%'"
            )
            before = collector.statement_counts(texts=False)
            with server.session(LOADER) as session:
                session.execute("CREATE TABLE counted_things (id int)")
                for number in range(5):
                    session.execute("INSERT INTO counted_things VALUES (%s), (1)", (number,))
                session.execute("SELECT SLEEP(0.2)")
            found = growth(before, collector.statement_counts(texts=True))
            assert found[0].text is not None
            assert found[0].text.startswith("SELECT `SLEEP`"), found
            assert found[0].time_s == pytest.approx(0.2, abs=0.15)
            [insert] = [one for one in found if one.text and "INSERT INTO `counted_things`" in one.text]
            assert (insert.calls, insert.rows, insert.database) == (5, 10, "loadtest")
        with asking("mariadb", "db1", "sql", server.url(PLAIN)) as collector:
            assert isinstance(collector, CountsStatements)
            with pytest.raises(UncountedError, match=r"may not read performance_schema; run: GRANT SELECT"):
                collector.statement_counts(texts=False)


STORE: dict[str, Any] = {"db": "shop", "state": 2, "reason": 0}
ROWS = [
    {
        "id": "7/0/41",
        "statement": 3,
        "db": "shop",
        "calls": 100,
        "time_s": 2.0,
        "amount": 100.0,
        "text": None,
    },
    {"id": "9/0/41", "statement": 5, "db": "shop", "calls": 4, "time_s": 1.0, "amount": 0.0, "text": None},
]
ORDERS = "(@1 int)SELECT * FROM o WHERE id=@1"
LATER = [
    {**ROWS[0], "calls": 130, "time_s": 2.5, "amount": 130.0, "text": ORDERS},
    {**ROWS[1], "text": "DELETE FROM o"},
    {**ROWS[0], "id": "8/0/42", "calls": 70, "time_s": 6.5, "amount": 70.0, "text": ORDERS},
]  # fmt: skip


class QueryStore:
    """Replaces a Query Store: answers the collector from rows of the documented form."""

    session = user = None

    def __init__(self, state: dict[str, Any] | None, *answers: Sequence[dict[str, Any]]) -> None:
        self._state, self._answers = state, iter(answers)

    def ask(self, question: str) -> list[dict[str, Any]]:
        if question == sqlserver.COUNTING:
            if self._state == {}:
                raise RefusedError("VIEW DATABASE STATE permission was denied")
            return [] if self._state is None else [self._state]
        return list(next(self._answers))


def query_store(database: str, *given: Any) -> SqlserverCollector:
    collector = object.__new__(SqlserverCollector)
    collector._server = QueryStore(*given)  # type: ignore[assignment]
    collector._about = {**ABOUT, "database_name": database}
    return collector


def test_the_query_store_counts_plans_by_interval() -> None:
    """Plans and intervals of a statement are added; idle statements are left out."""
    collector = query_store("shop", STORE, ROWS, LATER)
    before = collector.statement_counts(texts=False)
    assert growth(before, collector.statement_counts(texts=True)) == [
        Grown("(@1 int)SELECT * FROM o WHERE id=@1", "shop", 100, 7.0, 100.0)
    ]


@pytest.mark.parametrize(
    ("database", "state", "said"),
    [
        ("shop", {**STORE, "state": 0}, r"is off; run: ALTER DATABASE \[shop\] SET QUERY_STORE = ON"),
        (
            "shop",
            {**STORE, "state": 1, "reason": 65536},
            r"is read-only \(reason 65536\); run: ALTER DATABASE",
        ),
        ("master", STORE, "master has no Query Store; name the load's database in the endpoint's url"),
        ("shop", None, "shop has no Query Store"),
        ("shop", {}, r"watcher may not read the Query Store of shop; run there: GRANT VIEW DATABASE STATE"),
    ],
)
def test_a_query_store_that_takes_nothing_says_so(database: str, state: Any, said: str) -> None:
    with pytest.raises(UncountedError, match=said):
        query_store(database, state).statement_counts(texts=False)
