"""Tests of the data table: parallel loading, reuse of complete data, and hot rows."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import closing
from itertools import pairwise
from random import Random

import psycopg
import pytest
from scenarios.sql_mix.helpers import SMALL, ask, number, other_url, performed, prepared, with_options
from scenarios.sql_mix.server import Server, small_tablespace
from scenarios.support import made, quiet
from scipy.stats import chisquare

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.schema import OwnedSchema
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.skew import picker, zipfian_rank

READS = {"operations": {"point_read": 1}}
TABLE_ID = "SELECT 'pinchpoint_test.data'::regclass::oid::int8"


def test_kept_data_is_used_again_and_the_log_starts_empty(sql: Endpoint) -> None:
    """``keep_data`` keeps the data; the next run reuses the data table and empties the log."""
    driver = made("sql-mix", {"sql": sql}, {"scale": SMALL})
    driver.prepare(quiet)
    performed(driver, 50)
    driver.finish(keep_data=True)
    versions = "SELECT sum(version) FROM pinchpoint_test.data"
    before = number(sql, TABLE_ID), number(sql, versions)
    with prepared(sql, {"scale": SMALL}):
        assert (number(sql, TABLE_ID), number(sql, versions)) == before
        assert number(sql, "SELECT count(*) FROM pinchpoint_test.log") == 0
    assert before[1] > 0
    with prepared(sql, {"scale": 2 * SMALL}):
        assert number(sql, TABLE_ID) != before[0], "another size is loaded anew"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM pinchpoint_test.data WHERE id = 17",
        "UPDATE pinchpoint_test.data SET id = -1 WHERE id = 17",
        "COMMENT ON TABLE pinchpoint_test.data IS NULL",
        "ALTER TABLE pinchpoint_test.data DROP CONSTRAINT data_pkey",
        "ALTER TABLE pinchpoint_test.data RENAME TO log",
    ],
)
def test_data_that_is_not_whole_is_loaded_anew(sql: Endpoint, damage: str) -> None:
    """Data with a missing or foreign row, or without label, index or table, is loaded again."""
    driver = made("sql-mix", {"sql": sql}, {**READS, "scale": SMALL})
    driver.prepare(quiet)
    driver.finish(keep_data=True)
    rows = number(sql, "SELECT count(*) FROM pinchpoint_test.data")
    before = number(sql, TABLE_ID)
    ask(sql, damage)
    with prepared(sql, {**READS, "scale": SMALL}):
        assert number(sql, TABLE_ID) != before
        assert ask(sql, "SELECT count(*), min(id), max(id) FROM pinchpoint_test.data") == [(rows, 1, rows)]


def test_the_data_table_is_as_large_as_was_asked_for(sql: Endpoint) -> None:
    """Without ``scale`` the table is twice the server's cache, so that at least half of the reads miss it."""
    with prepared(sql, READS):
        size = number(sql, "SELECT pg_relation_size('pinchpoint_test.data')")
        rows = number(sql, "SELECT count(*) FROM pinchpoint_test.data")
    assert size == pytest.approx(2 * 64 * 2**20, rel=0.05)
    assert rows == 2 * 64 * 2**20 // 2048


def test_four_rows_lie_in_one_page(sql: Endpoint) -> None:
    """Rows 1 to 4 share a page, with any number of loading connections."""
    with prepared(sql, {**READS, "scale": SMALL}):
        apart = number(
            sql,
            "SELECT count(*) FROM (SELECT (id - 1) / 4 FROM pinchpoint_test.data GROUP BY 1 "
            "HAVING count(DISTINCT (ctid::text::point)[0]) > 1) each_page",
        )
        pages = number(sql, "SELECT count(*) / 4 FROM pinchpoint_test.data")
    assert apart < 0.01 * pages


def test_loading_says_how_far_it_is_and_how_long_it_will_take(sql: Endpoint) -> None:
    """Several connections load; messages give the size, the share, the rate and an estimate."""
    said: list[str] = []
    driver = made("sql-mix", {"sql": sql}, {**READS, "loaders": 3})
    loaders = set[int]()
    watching, stop = psycopg.connect(sql.url, autocommit=True), threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            loaders.update(
                row[0]
                for row in watching.execute(
                    "SELECT pid FROM pg_stat_activity "
                    "WHERE application_name = 'pinchpoint_test' AND query LIKE 'INSERT INTO data%%'"
                )
            )  # fmt: skip -- the query is read as a whole

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        driver.prepare(said.append)
    finally:
        stop.set()
        thread.join()
        watching.close()
        driver.finish(keep_data=False)
    text = "\n".join(said)
    assert "the data table will take 129 MiB; the server does not report its free space" in text
    assert "loaded the data table: 128 MiB in " in text
    assert "MiB/s" in text
    assert len(loaders) == 3


def test_a_servers_timeouts_do_not_end_the_loading(sql: Endpoint) -> None:
    """A role's short statement timeout does not end the loading."""
    with prepared(with_options(sql, statement_timeout="20"), {**READS, "scale": SMALL}) as driver:
        assert performed(driver, 20).counts() == {("point_read", "ok"): 20}


def test_a_load_that_was_cut_off_is_done_again(server: Server) -> None:
    """A server that stops during the load gives one sentence, and the next run loads all again."""
    driver = made("sql-mix", {"sql": server.endpoint}, {**READS, "loaders": 2})
    cutting = threading.Timer(0.6, server.stop)
    cutting.start()
    try:
        with pytest.raises(ScenarioError, match=r"endpoint sql \(.*could not be prepared or removed"):
            driver.prepare(quiet)
    finally:
        cutting.join()
        server.start()
    driver.finish(keep_data=True)
    half = number(server.endpoint, "SELECT count(*) FROM pinchpoint_test.data")
    assert half < 2 * 64 * 2**20 // 2048
    with prepared(server.endpoint, {**READS, "scale": SMALL}) as again:
        assert performed(again, 20).counts() == {("point_read", "ok"): 20}


def test_room_is_known_only_where_the_server_and_the_system_agree(server: Server, sql: Endpoint) -> None:
    """Free space is known to a user who can see the server's files on its host, not to others."""

    def free_bytes(endpoint: Endpoint) -> int | None:
        schema = OwnedSchema(endpoint, "test", ())
        with closing(schema.access.reach()) as link:
            return schema.free_bytes(link)

    assert free_bytes(sql) is None
    free = free_bytes(server.admin)
    assert free is not None
    assert free == pytest.approx(server.free_bytes(), abs=256 * 2**20)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a small file system is mounted for the server")
def test_a_table_larger_than_the_disk_is_refused_before_it_is_loaded(server: Server) -> None:
    """A table larger than the disk is refused before loading, with both sizes and the remedy."""
    with small_tablespace(server, 24):
        ask(server.admin, "CREATE DATABASE tiny TABLESPACE small STRATEGY file_copy")
        try:
            tiny = other_url(server.admin, dbname="tiny")
            driver = made("sql-mix", {"sql": tiny}, READS)
            with pytest.raises(
                ScenarioError, match=r"take 129 MiB, and the server's data disk has \d+ MiB free; choose"
            ):
                driver.prepare(quiet)
            assert ask(tiny, "SELECT to_regclass('pinchpoint_test.data')") == [(None,)]
            driver.finish(keep_data=False)
        finally:
            ask(server.admin, "DROP DATABASE tiny")


PAGES, DRAWS = 1000, 50_000


def _drawn(skew: str, pages: int = PAGES, draws: int = DRAWS) -> Counter[int]:
    pick, random = picker(skew), Random(1)
    found = Counter(pick(random, pages) for _ in range(draws))
    assert set(found) <= set(range(pages))
    return found


def test_without_skew_every_page_comes_alike() -> None:
    """Without skew all pages are drawn, none twice as often as the mean."""
    found = _drawn("none")
    assert len(found) == PAGES
    assert max(found.values()) < 2 * DRAWS / PAGES


@pytest.mark.parametrize(("skew", "share", "of_pages"), [("80/20", 0.8, 0.2), ("95/1", 0.95, 0.01)])
def test_a_hot_spot_gets_its_share(skew: str, share: float, of_pages: float) -> None:
    """The hottest pages have their share, the others are drawn equally, and hot pages are not adjacent."""
    hot = round(PAGES * of_pages)
    ranked = _drawn(skew).most_common()
    assert sum(count for _, count in ranked[:hot]) == pytest.approx(share * DRAWS, rel=0.02)
    cold = [count for _, count in ranked[hot:]]
    assert max(cold) < 3 * sum(cold) / (PAGES - hot) + 10
    pages = sorted(page for page, _ in ranked[:hot])
    assert sum(after - page == 1 for page, after in pairwise(pages)) < 0.5 * hot


def test_zipfian_falls_as_one_over_the_rank() -> None:
    """Zipfian draws the first page 13 % of the time and the tenth a tenth as often (exponent 0.99)."""
    counts = [count for _, count in _drawn("zipfian").most_common()]
    shares = [rank**-0.99 for rank in range(1, PAGES + 1)]
    assert counts[0] / DRAWS == pytest.approx(shares[0] / sum(shares), rel=0.05)
    assert counts[9] / counts[0] == pytest.approx(shares[9], rel=0.15)
    assert sum(counts[:100]) / DRAWS == pytest.approx(sum(shares[:100]) / sum(shares), rel=0.03)


@pytest.mark.parametrize("count", [2, 5, 40])
def test_ranks_are_zipf_s(count: int) -> None:
    """The frequency of each rank passes a chi-square test at one in a thousand."""
    random, draws = Random(7), 20_000
    found = Counter(zipfian_rank(random, count) for _ in range(draws))
    shares = [rank**-0.99 for rank in range(1, count + 1)]
    wanted = [share / sum(shares) * draws for share in shares]
    assert chisquare([found[rank] for rank in range(1, count + 1)], wanted).pvalue > 0.001


@pytest.mark.parametrize("skew", ["none", "zipfian", "80/20", "99/99"])
@pytest.mark.parametrize("pages", [1, 2, 3, 7])
def test_few_pages_are_all_drawn_and_no_other(skew: str, pages: int) -> None:
    """With few pages, each skew draws all pages and none beyond the table."""
    assert set(_drawn(skew, pages, 3000)) == set(range(pages))


@pytest.mark.parametrize("skew", ["", "zipf", "80", "0/20", "80/0", "100/20", "80/20/1", "-1/5"])
def test_what_is_no_skew_is_refused_with_what_is_allowed(skew: str) -> None:
    """An invalid skew's error shows the three allowed forms."""
    with pytest.raises(ValueError, match=r"allowed: none, zipfian, or two percentages such as 80/20"):
        picker(skew)
