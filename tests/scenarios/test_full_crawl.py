"""Tests of full-crawl: every document is counted once, whatever fails."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from scenarios.full_crawl.folders import crawled
from scenarios.support import (
    Events,
    Recorder,
    Search,
    Site,
    crawl,
    cut,
    dripping,
    made,
    quiet,
    stalled,
    status,
)
from support import until

from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError

FAST = {"timeout_s": 1, "retries": 1}


def files(count: int, prefix: str = "file") -> dict[str, bytes]:
    return {f"{prefix}{number}.txt": f"document {prefix} {number}".encode() for number in range(count)}


@pytest.fixture
def search() -> Iterator[Search]:
    server = Search()
    with server.running():
        yield server


@contextmanager
def site(lists: dict[str, dict[str, bytes]], **options: Any) -> Iterator[Site]:
    server = Site(lists, **options)
    with server.running():
        yield server


@contextmanager
def prepared(driver: Scenario) -> Iterator[Scenario]:
    try:
        driver.prepare(quiet)
        yield driver
    finally:
        driver.finish(keep_data=False)


def ended(events: Events) -> dict[str, dict[str, Any]]:
    """Return source -> its entry of the only crawl_ended event."""
    (event,) = events.named("crawl_ended")
    return {source["source"]: source for source in event["sources"]}


def history(sql: Endpoint, what: str = "*") -> list[tuple[Any, ...]]:
    with psycopg.connect(sql.url) as connection:
        return connection.execute(f"SELECT {what} FROM pinchpoint_test.history".encode()).fetchall()  # noqa: S608 - the tests' own columns


def test_everything_is_found_fetched_indexed_and_counted_once(
    sql: Endpoint, search: Search, tmp_path: Path
) -> None:
    """With two sources, subsites, pages and unusual names, each document arrives unchanged, once."""
    zipped = gzip.compress(b"zipped")
    odd = {
        "it's 100% #1 & ü.txt": b"odd",
        "empty.txt": b"",
        "z.gz": zipped,
        "p.png": b"\x89PNG",
    }
    (tmp_path / "a b" / "c").mkdir(parents=True)
    for name, content in {b"x.txt": b"x", b"a b/\xff\xfe%20.txt": b"bytes", b"a b/c/e": b""}.items():
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(content)
    (tmp_path / "link").symlink_to(tmp_path / "x.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    search.documents["old"] = ("old", b"of an earlier crawl")
    events, recorder = Events(), Recorder()
    with site({"Documents": files(25), "John's": odd}, webs={"sub": Site({"More": files(7, "m")})}) as server:
        endpoints = {
            "sql": sql,
            "search": search.endpoint,
            "sharepoint": server.endpoint,
            "files": Endpoint("files", str(tmp_path)),
        }
        driver = made("full-crawl", endpoints, {"page_size": 10}, event=events)
        with prepared(driver):
            crawl(driver, 8, recorder)
            assert len(history(sql)) == 25 + 4 + 7 + 6 + 2 * 3 + (3 + 1 + 1) + 3
        fetched = {path: content for path, (_, content) in search.documents.items()}
    found = ended(events)
    assert {name: (each["count"], each["failures"], each["skipped"]) for name, each in found.items()} == {
        "sharepoint": (25 + 3 + 7, 0, 1),
        "files": (3, 0, 3),
    }
    assert recorder.counts() == {
        ("document:sharepoint", "ok"): 35,
        ("document:sharepoint", "skipped"): 1,
        ("document:files", "ok"): 3,
        ("document:files", "skipped"): 3,
    }
    assert search.resets == search.commits == 1
    assert max(search.given.values()) == 1
    assert sorted(fetched.values()) == sorted(
        [
            *files(25).values(),
            *files(7, "m").values(),
            b"odd",
            b"",
            zipped,
            b"x",
            b"bytes",
            b"",
        ]
    )
    assert f"file://{tmp_path}/a%20b/%FF%FE%2520.txt" in fetched
    assert f"{server.url}/John%27s/it%27s%20100%25%20%231%20%26%20%C3%BC.txt" in fetched
    sharepoint = found["sharepoint"]
    assert 0 < sharepoint["repository_latency_s"] < 1
    assert 0 < sharepoint["duration_s"] < 60
    assert sharepoint["bytes"] == sum(
        len(content) for url, content in fetched.items() if url.startswith("http")
    )
    (started,) = events.named("crawl_started")
    assert started["cycle"] == events.named("crawl_ended")[0]["cycle"] == 1
    assert started["started"].endswith("Z")


def test_stages_say_where_the_time_of_a_document_goes(sql: Endpoint, search: Search) -> None:
    """The fetch stage has the repository's latency, the index stage the search tier's; the total has both."""
    recorder = Recorder()
    with site({"L": files(6)}) as server:
        server.delay_s, search.delay_s = 0.05, 0.02
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints)
        with prepared(driver):
            crawl(driver, 1, recorder)
    assert server.connections == search.connections == 1, "connections are kept alive"
    stages = {
        name: count for (name, outcome), count in recorder.counts(stages=True).items() if outcome == "ok"
    }
    assert stages == {
        "document:sharepoint/fetch": 6,
        "document:sharepoint/index": 6,
        "document:sharepoint/enumerate": 4,  # the web, its webs, its lists, one page
        "document:sharepoint/crawl_db": 2 * (6 + 4),  # two statements each to take and to finish
        "crawl/reset": 1,
        "crawl/commit": 1,
    }

    def mean_s(operation: str) -> float:
        took = [(row.end_ns - row.start_ns) / 1e9 for row in recorder.rows if row.operation == operation]
        return sum(took) / len(took)

    assert mean_s("document:sharepoint/fetch") == pytest.approx(0.05, abs=0.03)
    assert mean_s("document:sharepoint/index") == pytest.approx(0.02, abs=0.03)
    assert mean_s("document:sharepoint") > 0.07


def test_failures_are_retried_named_and_counted(sql: Endpoint, search: Search) -> None:
    """Temporary failures are retried, permanent ones end the document, and a 404 is not retried."""
    events, recorder = Events(), Recorder()
    with site({"L": files(9)}) as server:

        def failing(number: int, *faults: Any) -> None:
            server.failing[f"/_api/web/getfilebyserverrelativeurl('/L/file{number}.txt')/$value"] = list(
                faults
            )

        failing(0, status(503))
        failing(1, status(503), status(503))
        failing(2, status(404), status(404))
        failing(3, cut)
        failing(4, stalled(1.5), stalled(1.5))
        failing(5, dripping, dripping)
        failing(6, status(403))
        failing(7, status(429, {"Retry-After": "1"}))
        search.failing["/documents"] = []
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints, FAST, event=events)
        with prepared(driver):
            crawl(driver, 6, recorder)
            rows = {url[-9:-4]: rest for url, *rest in history(sql, "url, state, reason, attempts")}
    assert rows["file0"] == ["ok", "", 2]
    assert rows["file1"] == ["failed", "http_503", 2]
    assert rows["file2"] == ["failed", "not_found", 1]
    assert rows["file3"] == ["ok", "", 2]
    assert rows["file4"] == ["failed", "timeout", 2]
    assert rows["file5"] == ["failed", "timeout", 2]
    assert rows["file6"] == ["failed", "permission", 1]
    assert rows["file7"] == ["ok", "", 2]
    assert rows["file8"] == ["ok", "", 1]
    source = ended(events)["sharepoint"]
    assert (source["count"], source["failures"]) == (4, 5)
    assert source["failures_by_kind"] == {"http_503": 1, "not_found": 1, "timeout": 2, "permission": 1}
    attempts = recorder.counts(stages=True)
    assert attempts["document:sharepoint/fetch", "http_503"] == 3
    assert attempts["document:sharepoint/fetch", "connection_lost"] == 1
    assert recorder.counts()["document:sharepoint", "ok"] == 4
    (asked,) = [row for row in recorder.rows if row[:2] == ("document:sharepoint/fetch", "http_429")]
    waited = [
        row for row in recorder.rows if row.operation == "document:sharepoint" and row.end_ns > asked.end_ns
    ]
    assert any(row.start_ns < asked.start_ns and row.end_ns - asked.end_ns > 0.9e9 for row in waited)


def test_a_search_tier_that_fails_fails_the_document(sql: Endpoint, search: Search) -> None:
    """A failure of the search tier is in the outcome's name."""
    events = Events()
    search.failing["/documents"] = [status(500)] * 4
    search.failing["/commit"] = [status(503)] * 2
    recorder = Recorder()
    with site({"L": files(5)}) as server:
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints, FAST, event=events)
        with prepared(driver):
            crawl(driver, 1, recorder)
    source = ended(events)["sharepoint"]
    assert (source["count"], source["failures"]) == (3, 2)
    assert source["failures_by_kind"] == {"index_http_500": 2}
    assert events.named("crawl_ended")[0]["commit"] == "index_http_503"
    assert recorder.counts()["crawl", "index_http_503"] == 1


def test_a_source_that_is_away_fails_and_the_others_go_on(
    sql: Endpoint, search: Search, tmp_path: Path
) -> None:
    """An unreachable source fails, and the others are crawled."""
    (tmp_path / "x").write_bytes(b"x")
    events, recorder = Events(), Recorder()
    sources = [
        {"kind": "sharepoint", "name": "away", "url": "http://127.0.0.1:1"},
        {"kind": "files", "name": "share", "path": str(tmp_path)},
        {"kind": "files", "name": "gone", "path": str(tmp_path / "nothing")},
    ]
    driver = made(
        "full-crawl", {"sql": sql, "search": search.endpoint}, {"sources": sources, **FAST}, event=events
    )
    with prepared(driver):
        crawl(driver, 3, recorder)
    found = ended(events)
    assert {name: (each["count"], each["failures_by_kind"]) for name, each in found.items()} == {
        "away": (0, {"unreachable": 1}),
        "share": (1, {}),
        "gone": (0, {"not_found": 1}),
    }
    assert found["away"]["repository_latency_s"] is None
    assert recorder.counts()["document:away", "unreachable"] == 1


def test_what_a_dead_session_held_is_taken_over(sql: Endpoint, search: Search) -> None:
    """After a dead session's lease expires its items are crawled once; its late reply does not count."""
    events, recorder = Events(), Recorder()
    with site({"L": files(20)}) as server:
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints, {"timeout_s": 0.3, "retries": 0, "batch": 4}, event=events)
        with prepared(driver):
            dead: Any = driver.session(0)
            while len(dead._mine) < 3:
                dead.perform(recorder)
            held, unheard = list(dead._mine), len(dead._done)
            crawl(driver, 4, recorder)
            late = Recorder()
            dead._mine.extend(held)
            dead.perform(late)
            dead.close()
    assert ended(events)["sharepoint"]["count"] == 20
    # Documents that it had crawled without reporting are crawled again.
    assert recorder.counts()["document:sharepoint", "ok"] == 20 + unheard
    assert late.counts() == {("document:sharepoint", "lease_lost"): 1}


def test_killed_connections_to_the_crawl_database_lose_and_double_nothing(
    sql: Endpoint, search: Search
) -> None:
    """After killed connections the count is exact, and no session waits for a lease."""
    events, recorder = Events(), Recorder()
    over = threading.Event()

    def kill() -> None:
        """Kill all connections after every 30 documents, on slow and on fast machines."""
        killed = 0
        with psycopg.connect(sql.url, autocommit=True) as connection:
            while not over.wait(0.01):
                done = recorder.counts()["document:sharepoint", "ok"]
                if done >= killed + 30:
                    killed = done
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                        "'pinchpoint_test' AND query !~ 'advisory|COMMENT|CREATE'"
                    )

    with site({"L": files(300)}) as server:
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints, {"timeout_s": 20, "retries": 0, "page_size": 20}, event=events)
        killer = threading.Thread(target=kill)
        with prepared(driver):
            killer.start()
            try:
                crawl(driver, 4, recorder, limit_s=30)  # shorter than a lease, so that no lease has to expire
            finally:
                over.set()
                killer.join()
            assert len({url for (url,) in history(sql, "url")}) == 300 + 3 + 15
    assert ended(events)["sharepoint"]["count"] == 300
    counts = recorder.counts()
    assert counts["document:sharepoint", "ok"] == 300
    lost = recorder.counts(stages=True)["document:sharepoint/crawl_db", "connection_lost"]
    assert counts["crawl", "crawl_db_connection_lost"] + lost > 0, "the test killed nothing"


def test_a_crawl_that_repeats_starts_anew(sql: Endpoint, search: Search) -> None:
    """A repeating crawl resets the index and crawls everything again in each cycle."""
    events, recorder = Events(), Recorder()
    with site({"L": files(5)}) as server, ExitStack() as stack:
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints, repeat_s=None, event=events)
        stack.enter_context(prepared(driver))
        sessions = [driver.session(number) for number in range(3)]
        over = threading.Event()

        def work(number: int) -> None:
            while not over.is_set():
                assert sessions[number].perform(recorder)
            sessions[number].close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: len(events.named("crawl_ended")) >= 3)
        over.set()
        for thread in threads:
            thread.join()
    cycles = [event["cycle"] for event in events.named("crawl_ended")]
    assert cycles[:3] == [1, 2, 3]
    assert [event["cycle"] for event in events.named("crawl_started")][:3] == [1, 2, 3]
    assert {event["sources"][0]["count"] for event in events.named("crawl_ended")} == {5}
    assert search.resets >= 3


def test_a_search_tier_that_is_away_keeps_the_crawl_from_starting(sql: Endpoint) -> None:
    """An unreachable search tier fails the crawl, not a document, and the session stays in use."""
    recorder = Recorder()
    endpoints = {
        "sql": sql,
        "search": Endpoint("search", "http://127.0.0.1:1"),
        "sharepoint": Endpoint("sharepoint", "http://127.0.0.1:1"),
    }
    driver = made("full-crawl", endpoints, FAST)
    with prepared(driver):
        session = driver.session(0)
        assert session.perform(recorder)
        assert session.perform(recorder)
        session.close()
    assert recorder.counts() == {("crawl", "index_unreachable"): 2}


def test_a_token_opens_the_site_and_goes_nowhere_else(sql: Endpoint, search: Search) -> None:
    """A next link to another host is followed on the site's own host; without a token nothing is fetched."""
    with site({"L": files(12)}, token="secret") as server:  # the site's next links name elsewhere.example
        for endpoint, count, failures in (
            (server.endpoint, 12, {}),
            (Endpoint("sharepoint", server.url), 0, {"authentication": 1}),
        ):
            events = Events()
            endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": endpoint}
            driver = made("full-crawl", endpoints, {"page_size": 5}, event=events)
            with prepared(driver):
                crawl(driver, 2, Recorder())
            assert ended(events)["sharepoint"]["count"] == count
            assert ended(events)["sharepoint"]["failures_by_kind"] == failures


def test_one_login_opens_several_sites(sql: Endpoint, search: Search) -> None:
    """One login works for several sites of a kind, each at its own address."""
    with (
        site({"A": {"a.txt": b"a"}}, token="right") as one,
        site({"B": {"b.txt": b"b"}}, token="right") as two,
    ):
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": one.endpoint}
        other = {"kind": "sharepoint", "name": "other", "url": two.url}
        with_login = other | {"login": "sharepoint"}
        found = crawled(endpoints, {"sources": [{"kind": "sharepoint"}, with_login]})
        assert {name: each["count"] for name, each in found.items()} == {"sharepoint": 1, "other": 1}
        found = crawled(endpoints, {"sources": [other]})
        assert found["other"]["failures_by_kind"] == {"authentication": 1}
        with pytest.raises(ScenarioError, match=r"'other'.*'sharepiont'"):
            made("full-crawl", endpoints, {"sources": [other | {"login": "sharepiont"}]})


def test_check_reaches_everything_and_changes_nothing(sql: Endpoint, search: Search, tmp_path: Path) -> None:
    """``check`` reaches every endpoint and creates no schema and no reset."""
    with site({}, token="secret") as server:
        endpoints = {
            "sql": sql,
            "search": search.endpoint,
            "sharepoint": server.endpoint,
            "files": Endpoint("files", str(tmp_path)),
        }
        facts = made("full-crawl", endpoints).check()
    assert facts["sources"] == {
        "sharepoint": {"kind": "sharepoint", "title": "Test"},
        "files": {"kind": "files", "path": str(tmp_path)},
    }
    assert facts["search"] == {"documents": 0}
    assert facts["sql"]["version"]
    assert search.resets == 0
    with psycopg.connect(sql.url) as connection:
        assert not connection.execute("SELECT FROM pg_namespace WHERE nspname ~ 'pinchpoint'").fetchall()


def test_what_cannot_be_reached_is_explained(sql: Endpoint, search: Search, tmp_path: Path) -> None:
    """Each unreachable endpoint gives one sentence with address, cause and remedy, without the token."""
    with site({}, token="right") as server:
        wrong = Endpoint("sharepoint", server.url, {"auth": "bearer", "token": "wr0ng"})
        cases: list[tuple[dict[str, Endpoint], str]] = [
            ({"sharepoint": wrong}, "the server refused the credentials"),
            ({"sharepoint": Endpoint("sharepoint", "http://127.0.0.1:1")}, "connection refused"),
            ({"files": Endpoint("files", str(tmp_path / "gone"))}, "not found there"),
            (
                {
                    "files": Endpoint("files", str(tmp_path)),
                    "search": Endpoint("search", "http://127.0.0.1:1"),
                },
                "endpoint search (127.0.0.1:1): connection refused",
            ),
        ]
        for changed, cause in cases:
            endpoints = {"sql": sql, "search": search.endpoint, **changed}
            with pytest.raises(EndpointUnreachable) as caught:
                made("full-crawl", endpoints, FAST).check()
            assert cause in str(caught.value)
            assert "wr0ng" not in str(caught.value)


def test_a_crawl_of_nothing_is_refused(sql: Endpoint, search: Search) -> None:
    """No source, an unknown endpoint or missing credentials are refused when the scenario is created."""
    endpoints = {"sql": sql, "search": search.endpoint}
    with pytest.raises(
        ScenarioError, match="nothing to crawl; add one of the endpoints files, sharepoint, web"
    ):
        made("full-crawl", endpoints)
    with pytest.raises(ScenarioError, match="unknown endpoint 'fils'; allowed: search, sql"):
        made("full-crawl", endpoints, {"sources": [{"kind": "files", "endpoint": "fils"}]})
    for options, said in (
        (
            {"auth": "ntml"},
            "unknown auth 'ntml'; allowed: basic, bearer, cookies, entra, kerberos, none, ntlm",
        ),
        ({"auth": "bearer"}, "auth bearer needs token"),
    ):
        with pytest.raises(ScenarioError, match=said):
            made("full-crawl", {**endpoints, "sharepoint": Endpoint("sharepoint", "http://x", options)})
    with pytest.raises(ScenarioError, match="unknown kind 'solr'"):
        made(
            "full-crawl",
            {
                **endpoints,
                "search": Endpoint("search", "http://x", {"kind": "solr"}),
                "files": Endpoint("files", "/"),
            },
        )


def test_a_short_crawl_repeats_until_its_time_is_over(sql: Endpoint, search: Search) -> None:
    """A short crawl repeats until ``repeat_s`` has passed, and its last cycle is complete."""
    events, recorder = Events(), Recorder()
    with site({"L": files(5)}) as server, ExitStack() as stack:
        endpoints = {"sql": sql, "search": search.endpoint, "sharepoint": server.endpoint}
        driver = made("full-crawl", endpoints, repeat_s=1.5, event=events)
        stack.enter_context(prepared(driver))
        begun = time.monotonic()
        crawl(driver, 3, recorder)
        lasted = time.monotonic() - begun
    ended = events.named("crawl_ended")
    assert lasted >= 1.5
    assert len(ended) > 1
    assert all(event["sources"][0]["count"] == 5 for event in ended)
    assert recorder.counts()["document:sharepoint", "ok"] == 5 * len(ended)
