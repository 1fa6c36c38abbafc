"""Tests of batches, which take and finish many items at a time and must be counted exactly."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from scenarios.full_crawl.changelog import in_place_of_folders
from scenarios.full_crawl.folders import crawled, ended, fill, prepared, rows, source
from scenarios.support import Events, Recorder, crawl, made

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.dialects import TABLES
from pinchpoint_scenarios.full_crawl.records import Done, ItemResult
from pinchpoint_scenarios.full_crawl.sources import Item

NOWHERE = Endpoint("search", "", {"kind": "none"})


def test_a_batch_costs_two_statements(sql: Endpoint, tmp_path: Path) -> None:
    """Sixty documents in batches of twenty need six statements, and each document has its own time."""
    fill(tmp_path, 60)
    recorder = Recorder()
    params = {"sources": [source(tmp_path, "share", access=False)], "batch": 20}
    found = crawled({"sql": sql, "search": NOWHERE}, params, sessions=1, recorder=recorder)["share"]
    assert (found["count"], found["failures"]) == (60, 0)
    stages = recorder.counts(stages=True)
    assert stages["document:share/crawl_db", "ok"] == 2 * (1 + 3)  # the folder, and the documents
    documents = [row for row in recorder.rows if row.operation == "document:share"]
    assert len(documents) == 60
    for before, after in pairwise(documents):
        assert before.start_ns < before.end_ns <= after.start_ns < after.end_ns


def test_of_a_slow_source_no_batch_is_waited_for(
    sql: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow source's documents are finished at once, and the crawl log has each document's own time."""
    log = in_place_of_folders(monkeypatch, "abcdefgh")
    log.delay_s = 0.2
    recorder = Recorder()
    params: dict[str, Any] = {"sources": [source(tmp_path, "share")], "batch": 100}
    crawled({"sql": sql, "search": NOWHERE}, params, sessions=1, recorder=recorder, keep_data=True)
    handed_in = recorder.counts(stages=True)["document:share/crawl_db", "ok"] - 3
    assert 2 <= handed_in <= 4, "eight documents of 0.2 s, at most 0.5 s together"
    gaps = rows(
        sql,
        "SELECT min(gap) FROM (SELECT extract(epoch FROM ended - lag(ended) OVER (ORDER BY ended)) AS gap "
        "FROM history WHERE kind = 'document') AS gaps",
    )
    assert gaps[0][0] > 0.15


def test_killed_connections_lose_and_double_nothing_of_a_batch(sql: Endpoint, tmp_path: Path) -> None:
    """After killed connections, unfinished documents are crawled again, and each is in the log once."""
    fill(tmp_path, 300, folders=5)
    events, recorder = Events(), Recorder()
    over = threading.Event()

    def kill() -> None:
        with psycopg.connect(sql.url, autocommit=True) as connection:
            while not over.wait(0.1):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                    "'pinchpoint_test' AND query !~ 'advisory|COMMENT|CREATE' "
                    "AND backend_start < clock_timestamp() - interval '300 ms'"
                )

    params = {"sources": [source(tmp_path, "share")], "batch": 7, "timeout_s": 20, "retries": 0}
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, params, event=events)
    killer = threading.Thread(target=kill)
    with prepared(driver):
        killer.start()
        try:
            crawl(driver, 3, recorder, limit_s=40)
        finally:
            over.set()
            killer.join()
        logged = "SELECT count(*), count(DISTINCT url) FROM history WHERE kind = 'document' AND state = 'ok'"
        assert rows(sql, logged) == [(300, 300)]
        assert rows(sql, "SELECT count(*) FROM queue") == [(0,)]
    assert ended(events)["share"]["count"] == 300


@pytest.mark.parametrize("batch", [1, 4])
def test_a_row_that_is_refused_for_good_is_a_failure_of_its_own(
    sql: Endpoint, tmp_path: Path, batch: int
) -> None:
    """A row that the server always refuses is one failure; the crawl ends without any other failure."""
    fill(tmp_path, 12)
    events, recorder = Events(), Recorder()
    params = {"sources": [source(tmp_path, "share")], "batch": batch, "timeout_s": 5, "retries": 0}
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, params, event=events)
    with prepared(driver):
        with psycopg.connect(sql.url, autocommit=True) as connection:
            connection.execute(
                "ALTER TABLE pinchpoint_test.history ADD CONSTRAINT not_this_one "
                "CHECK (url NOT LIKE '%00007.txt' OR state <> 'ok')"
            )
        crawl(driver, 2, recorder, limit_s=30)
        assert rows(sql, "SELECT state, count(*) FROM history WHERE kind = 'document' GROUP BY 1") == [
            ("failed", 1),
            ("ok", 11),
        ]
        assert rows(sql, "SELECT count(*) FROM queue") == [(0,)]
    found = ended(events)["share"]
    assert (found["count"], found["failures"]) == (11, 1)
    [kind] = found["failures_by_kind"]
    assert kind.startswith("crawl_db_")
    assert "not_this_one" in found["failed"][0]["message"]
    assert found["failed"][0]["url"].endswith("00007.txt")


def test_a_lease_that_was_lost_costs_that_item_alone(sql: Endpoint, tmp_path: Path) -> None:
    """Of four items with one lost lease, three count and the fourth belongs to the other session."""
    fill(tmp_path, 4)
    params = {"sources": [source(tmp_path, "share")], "batch": 4, "timeout_s": 5, "retries": 0}
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, params)
    recorder = Recorder()
    with prepared(driver):
        session: Any = driver.session(0)
        while len(session._mine) < 3:
            assert session.perform(recorder)
        with psycopg.connect(sql.url, autocommit=True) as connection:
            connection.execute(
                "UPDATE pinchpoint_test.queue SET holder = gen_random_uuid() WHERE id = %s",
                [session._mine[0].id],
            )
        while session._mine:
            assert session.perform(recorder)
        assert rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'") == [(3,)]
        assert rows(sql, "SELECT count(*) FROM queue") == [(1,)]
        session.close()
    stages = recorder.counts(stages=True)
    assert stages["document:share/crawl_db", "lease_lost"] == 1


def test_what_another_session_is_moving_is_neither_waited_for_nor_queued_again(
    sql: Endpoint, tmp_path: Path
) -> None:
    """Two sessions finish pages that link to each other without waiting for each other's transaction.

    Waiting would deadlock if both did it; finding the page gone from the queue later would crawl it a second
    time.
    """
    fill(tmp_path, 2)
    params = {"sources": [source(tmp_path, "share")], "timeout_s": 5}
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, params)
    with prepared(driver):
        first: Any = driver.session(0)
        second: Any = driver.session(1)
        while rows(sql, "SELECT count(*) FROM queue WHERE leaf") != [(2,)]:
            assert first.perform(Recorder())
        (one,) = first._frontier.take([("share", True)], 1)
        (two,) = second._frontier.take([("share", True)], 1)
        new = Item("document", "file:///new")
        with first._connection.transaction():
            first._frontier._move([Done(one, ItemResult("ok", found=(two.item,)), 0)], [two.item])
            begun = time.monotonic()
            assert second._frontier.finish([Done(two, ItemResult("ok", found=(one.item, new)), 0)]) == [True]
            assert time.monotonic() - begun < 4
        first.close()
        second.close()
        assert rows(sql, "SELECT url FROM queue") == [("file:///new",)]
        assert rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'") == [(2,)]


def test_what_was_queued_too_late_is_not_crawled_again(sql: Endpoint, tmp_path: Path) -> None:
    """An item that is queued after it was crawled, by a session that began earlier, is dropped."""
    fill(tmp_path, 2)
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, {"sources": [source(tmp_path, "share")]})
    with prepared(driver):
        session: Any = driver.session(0)
        while rows(sql, "SELECT count(*) FROM history WHERE kind = 'document'") != [(1,)]:
            assert session.perform(Recorder())
        with psycopg.connect(sql.url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO pinchpoint_test.queue "
                "(cycle, key, source, kind, leaf, url, detail, version, identity) "
                "SELECT cycle, key, source, kind, true, url, detail, version, identity "
                "FROM pinchpoint_test.history WHERE kind = 'document'"
            )
        (other,) = session._frontier.take([("share", True)], 5)
        assert other.item.url not in {url for (url,) in rows(sql, "SELECT url FROM history")}
        assert rows(sql, "SELECT count(*) FROM queue") == [(1,)]
        session.close()


def test_what_was_found_by_a_session_that_lost_all_it_had_is_not_queued(
    sql: Endpoint, tmp_path: Path
) -> None:
    """Items found by a session that lost its leases are not queued, because another session finds them."""
    fill(tmp_path, 1)
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, {"sources": [source(tmp_path, "share")]})
    with prepared(driver):
        session: Any = driver.session(0)
        while rows(sql, "SELECT count(*) FROM queue WHERE leaf") != [(1,)]:
            assert session.perform(Recorder())
        (taken,) = session._frontier.take([("share", True)], 1)
        with psycopg.connect(sql.url, autocommit=True) as connection:
            connection.execute("UPDATE pinchpoint_test.queue SET holder = gen_random_uuid()")
        lost = Done(taken, ItemResult("ok", found=(Item("document", "file:///new"),)), 0)
        assert session._frontier.finish([lost]) == [False]
        assert rows(sql, "SELECT count(*) FROM queue") == [(1,)]
        with psycopg.connect(sql.url, autocommit=True) as connection:
            connection.execute("UPDATE pinchpoint_test.queue SET holder = %s", [session._frontier._holder])
        assert session._frontier.finish([lost]) == [True]
        assert rows(sql, "SELECT url FROM queue") == [("file:///new",)], "it was not taken for known"
        session.close()


def test_dropping_waits_for_sessions_and_they_for_it_in_one_order(sql: Endpoint, tmp_path: Path) -> None:
    """Sessions lock the crawl's tables in one order, so that dropping the tables cannot deadlock.

    Each table in turn is locked as by a drop while a crawl runs; the server then reports which other tables
    the waiting sessions have locked.
    """
    fill(tmp_path, 30, folders=3)
    place = {table: number for number, table in enumerate(TABLES)}
    # One item at a time: a session that ends has no item that the others wait for.
    params = {"sources": [source(tmp_path, "share")], "timeout_s": 20}
    driver = made("full-crawl", {"sql": sql, "search": NOWHERE}, params, repeat_s=None)
    waited: set[str] = set()
    over = threading.Event()
    with prepared(driver), psycopg.connect(sql.url, autocommit=True) as connection:
        sessions = [driver.session(number) for number in range(3)]

        def work(session: Any) -> None:
            while not over.is_set():
                assert session.perform(Recorder())
            session.close()

        threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        try:
            begun = time.monotonic()
            while time.monotonic() - begun < 15 and not {"cycle", "queue", "history"} <= waited:
                for table in TABLES:
                    for held in _held_while_locked(connection, table):
                        waited.add(table)
                        assert not held or min(place[each] for each in held) < place[table], (table, held)
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert {"cycle", "queue", "history"} <= waited, "nobody was met waiting"


def _held_while_locked(connection: psycopg.Connection[Any], table: str) -> list[set[str]]:
    """Return, for each session that waits for the table, the crawl's tables that it has locked."""
    waiting = """
        SELECT waiting.pid, coalesce(array_agg(held.relation::regclass::text)
            FILTER (WHERE held.granted), '{}')
        FROM pg_locks AS waiting LEFT JOIN pg_locks AS held
            ON held.pid = waiting.pid AND held.locktype = 'relation' AND held.relation IN (
                SELECT oid FROM pg_class
                WHERE relnamespace = 'pinchpoint_test'::regnamespace AND relkind = 'r')
        WHERE waiting.locktype = 'relation' AND NOT waiting.granted GROUP BY waiting.pid"""
    with connection.transaction():
        connection.execute(f"LOCK TABLE pinchpoint_test.{table} IN ACCESS EXCLUSIVE MODE".encode())
        time.sleep(0.03)
        rows = connection.execute(waiting.encode()).fetchall()
    return [{name.rpartition(".")[2] for name in held} for _, held in rows]


OF = "SELECT source, url FROM history"

MOST_AT_ONCE = """
    SELECT max(n) FROM (
        SELECT sum(step) OVER (ORDER BY at, step) AS n FROM (
            SELECT started AS at, 1 AS step FROM history WHERE source = '{0}'
            UNION ALL SELECT ended, -1 FROM history WHERE source = '{0}') AS steps) AS levels"""


def test_a_source_has_no_more_workers_than_it_allows(sql: Endpoint, tmp_path: Path) -> None:
    """With eight sessions a source's limit of two workers is kept, and another source is not delayed."""
    fill(tmp_path / "shy", 60)
    fill(tmp_path / "open", 60)
    sources = [source(tmp_path / "shy", "shy", workers=2), source(tmp_path / "open", "open")]
    found = crawled({"sql": sql, "search": NOWHERE}, {"sources": sources}, sessions=8, keep_data=True)
    assert {name: each["count"] for name, each in found.items()} == {"shy": 60, "open": 60}
    assert {name: each["workers"] for name, each in found.items()} == {"shy": 2, "open": None}
    assert rows(sql, MOST_AT_ONCE.format("shy"))[0][0] <= 2
    assert rows(sql, MOST_AT_ONCE.format("open"))[0][0] >= 1


def test_documents_are_fetched_while_folders_are_still_enumerated(sql: Endpoint, tmp_path: Path) -> None:
    """With forty folders the first documents are fetched long before the last folder is listed."""
    fill(tmp_path, 400, folders=40)
    recorder = Recorder()
    crawled(
        {"sql": sql, "search": NOWHERE},
        {"sources": [source(tmp_path, "share")]},
        recorder=recorder,
        keep_data=True,
    )
    order = [kind for (kind,) in rows(sql, "SELECT kind FROM history ORDER BY ended")]
    assert order.count("container") == 41
    documents_before_half = order[: order.index("document") + 100].count("document")
    assert order.index("document") < 12, "the first documents waited for folders"
    assert documents_before_half > 60, "enumeration was nearly all there was at first"
    assert len(order) - 1 - order[::-1].index("container") > 150, "folders were all listed at the beginning"


@pytest.mark.parametrize("sessions", [1, 5])
def test_a_batch_is_of_one_source(sql: Endpoint, tmp_path: Path, sessions: int) -> None:
    """Items found in a batch belong to the source of the batch, however small the batch is."""
    names = [f"s{number}" for number in range(4)]
    for name in names:
        fill(tmp_path / name, 12, folders=6)
    params = {"sources": [source(tmp_path / name, name) for name in names], "batch": 50}
    found = crawled({"sql": sql, "search": NOWHERE}, params, sessions=sessions, keep_data=True)
    assert {name: (each["count"], each["failures"]) for name, each in found.items()} == dict.fromkeys(
        names, (12, 0)
    )
    logged = {(of, url.removeprefix(f"file://{tmp_path}/").partition("/")[0]) for of, url in rows(sql, OF)}
    assert logged == {(name, name) for name in names}


def test_all_sources_begin_together(sql: Endpoint, tmp_path: Path) -> None:
    """A large source does not delay the others: each is crawled among the first items."""
    names = [f"s{number}" for number in range(5)]
    for name in names:
        fill(tmp_path / name, 200 if name == "s0" else 10)
    crawled(
        {"sql": sql, "search": NOWHERE},
        {"sources": [source(tmp_path / name, name) for name in names]},
        sessions=2,
        keep_data=True,
    )
    first = rows(sql, "SELECT source FROM history ORDER BY ended LIMIT 40")
    assert {name for (name,) in first} == set(names)
