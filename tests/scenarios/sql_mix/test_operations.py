"""Tests of each operation on a real server: a counted operation is done."""

from __future__ import annotations

import psycopg
import pytest
from scenarios.reference import ReferenceConnection
from scenarios.sql_mix.helpers import (
    SMALL,
    ask,
    loaded,
    number,
    performed,
    prepared,
    tables,
    wait_until_reported,
)
from scenarios.support import Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases import native
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_mix.operations import OPERATIONS


def test_every_operation_counted_ok_is_a_committed_row(sql: Endpoint) -> None:
    """Each ok log_append is a committed row, and each ok data_update a new version."""
    with prepared(sql, {"preset": "balanced", "scale": SMALL}) as driver:
        counts = performed(driver, 400).counts()
        assert {outcome for _, outcome in counts} == {"ok"}
        assert number(sql, "SELECT count(*) FROM pinchpoint_test.log") == counts["log_append", "ok"]
        assert number(sql, "SELECT sum(version) FROM pinchpoint_test.data") == counts["data_update", "ok"]
    assert min(counts.values()) > 50, "the mix holds every operation"
    assert counts["point_read", "ok"] > counts["log_append", "ok"]


def test_the_same_seed_and_number_do_the_same(sql: Endpoint) -> None:
    """A session's operations depend only on the seed and its number."""
    with prepared(sql, {"scale": SMALL}) as driver:
        drawn = [[row.operation for row in performed(driver, 50, each).rows] for each in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]


EVERY = {
    "log_append": ("log", "SELECT session, sequence, md5(payload) FROM pinchpoint_test.log ORDER BY 1, 2"),
    "log_batch": ("log", "SELECT session, sequence, md5(payload) FROM pinchpoint_test.log ORDER BY 1, 2"),
    "data_update": ("data", "SELECT id, version FROM pinchpoint_test.data WHERE version > 0 ORDER BY 1"),
    "bulk_load": ("bulk", "SELECT load, md5(string_agg(payload, '')) FROM pinchpoint_test.bulk GROUP BY 1"),
    "point_read": ("data", "SELECT sum(version) FROM pinchpoint_test.data"),
    "range_scan": ("data", "SELECT sum(version) FROM pinchpoint_test.data"),
    "spill": (None, "SELECT 0"),
    "lock_contend": ("hot", "SELECT id, version FROM pinchpoint_test.hot ORDER BY 1"),
}
"""Operation -> its table, and a query that shows its effect."""


def test_every_operation_is_held_against_psycopg() -> None:
    """The table above has each operation."""
    assert set(EVERY) == set(OPERATIONS)


@pytest.mark.parametrize("operation", sorted(EVERY))
def test_the_fast_path_does_what_psycopg_does(
    sql: Endpoint, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same seed the fast path writes the rows, counts and sizes that psycopg does."""
    table, question = EVERY[operation]
    sizes = {"copy_rows": 50, "spill_bytes": "1MiB", "hot_rows": 3, "lock_rows": 2, "hold": "1ms"}
    seen = []
    for connection in (ReferenceConnection, FastConnection):
        monkeypatch.setattr(native, "FastConnection", connection)
        params = {"operations": {operation: 1}, "scale": SMALL, **sizes}
        with prepared(sql, params) as driver:
            assert tables(sql) == ({table} if table else set())
            recorder = performed(driver, 6, session_number=5)
            rows = [(row.operation, row.outcome, row.size_bytes) for row in recorder.rows]
            seen.append((rows, ask(sql, question)))
    assert {outcome for _, outcome, _ in seen[0][0]} == {"ok"}
    assert seen[0] == seen[1]


def test_a_batch_is_many_rows_and_one_commit(sql: Endpoint) -> None:
    """All rows of a log_batch are in one transaction, have the plan's size, and differ in content."""
    params = {"operations": {"log_batch": 1}, "batch_rows": 40, "row_bytes": "1KiB"}
    with prepared(sql, params) as driver:
        assert tables(sql) == {"log"}
        recorder = performed(driver, 5)
        found = ask(
            sql,
            "SELECT count(*), count(DISTINCT xmin::text), count(DISTINCT sequence), min(length(payload)), "
            "max(length(payload)), count(DISTINCT payload), min(sequence), max(sequence) "
            "FROM pinchpoint_test.log",
        )
    assert recorder.counts() == {("log_batch", "ok"): 5}
    assert found == [(200, 5, 200, 1024, 1024, 200, 1, 200)]
    assert {row.size_bytes for row in recorder.rows} == {40 * 1024}


def test_the_bulk_table_never_grows_without_bound(sql: Endpoint) -> None:
    """With concurrent loads the bulk table stays below its bound plus one load per session."""
    load_bytes, users = 1000 * 240, 3
    params = {"operations": {"bulk_load": 1}, "copy_rows": 1000, "bulk_bytes": "1MiB"}
    with prepared(sql, params) as driver:
        sizes = []
        with loaded(driver, users, 1.5) as recorder:
            while len(recorder.rows) < 40:
                sizes.append(number(sql, "SELECT pg_total_relation_size('pinchpoint_test.bulk')"))
        inserted = number(sql, "SELECT count(*) FROM pinchpoint_test.bulk")
    assert set(recorder.counts()) == {("bulk_load", "ok")}
    assert max(sizes) < 2**20 + 2 * users * load_bytes
    assert inserted < 1000 * len(recorder.rows), "it was emptied on the way"
    assert inserted % 1000 == 0, "a load is there whole, or not at all"


def test_a_scan_reads_its_rows_in_the_table_itself(sql: Endpoint) -> None:
    """A range scan reads scan_rows rows from the table; missing rows give missing_row."""
    params = {"operations": {"range_scan": 1}, "scan_rows": 200, "scale": SMALL}
    with prepared(sql, params) as driver:
        recorder = performed(driver, 20)
        assert recorder.counts() == {("range_scan", "ok"): 20}
        assert recorder.rows[0].size_bytes == 200 * 896
        ask(sql, "DELETE FROM pinchpoint_test.data WHERE id %% 100 = 0")
        assert performed(driver, 5).counts() == {("range_scan", "missing_row"): 5}


def test_more_rows_to_scan_than_there_are_is_refused(sql: Endpoint) -> None:
    """A scan of more rows than the table has is refused before the run, with the remedy."""
    params = {"operations": {"range_scan": 1}, "scan_rows": 1_000_000, "scale": SMALL}
    driver = made("sql-mix", {"sql": sql}, params)
    try:
        with pytest.raises(ScenarioError, match="choose fewer scan_rows or a larger scale"):
            driver.prepare(quiet)
    finally:
        driver.finish(keep_data=False)


def test_a_spill_writes_temporary_files(sql: Endpoint) -> None:
    """The server's count of temporary bytes grows by the sorted size, even with a large work memory."""
    ask(sql, "ALTER ROLE loader SET work_mem = '64MB'")
    temporary = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"
    try:
        with prepared(sql, {"operations": {"spill": 1}, "spill_bytes": "4MiB"}) as driver:
            assert tables(sql) == set()
            before = number(sql, temporary)
            recorder = performed(driver, 3)
            wait_until_reported(sql)
            written = number(sql, temporary) - before
    finally:
        ask(sql, "ALTER ROLE loader RESET work_mem")
    assert recorder.counts() == {("spill", "ok"): 3}
    assert 3 * 4 * 2**20 <= written < 2 * 3 * 4 * 2**20


def test_hot_pages_are_hot(sql: Endpoint) -> None:
    """With a skew of 90/10, nine tenths of the changes are in a tenth of the pages, spread over the table."""
    params = {"operations": {"data_update": 1}, "scale": SMALL, "skew": "90/10"}
    with prepared(sql, params) as driver:
        performed(driver, 600)
        changed = ask(
            sql,
            "SELECT (id - 1) / 4, sum(version)::int FROM pinchpoint_test.data GROUP BY 1 "
            "HAVING sum(version) > 0 ORDER BY 2 DESC",
        )
        pages = number(sql, "SELECT count(*) / 4 FROM pinchpoint_test.data")
    assert sum(count for _, count in changed) == 600
    hottest = changed[: pages // 10]
    assert sum(count for _, count in hottest) > 0.85 * 600
    thirds = {3 * page // pages for page, count in hottest if count > 1}
    assert thirds == {0, 1, 2}, "not side by side"


def test_failures_have_their_names(sql: Endpoint) -> None:
    """A locked row is a timeout, a missing table its SQLSTATE, and the session stays in use."""
    with prepared(sql, {"operations": {"data_update": 1}, "scale": SMALL, "timeout_s": 0.2}) as driver:
        session, recorder = driver.session(0), Recorder()
        with psycopg.connect(sql.url) as locking:
            locking.execute("LOCK pinchpoint_test.data")
            session.perform(recorder)
        session.perform(recorder)
        ask(sql, "DELETE FROM pinchpoint_test.data")
        session.perform(recorder)
        ask(sql, "ALTER TABLE pinchpoint_test.data RENAME TO gone")
        session.perform(recorder)
        ask(sql, "ALTER TABLE pinchpoint_test.gone RENAME TO data")
        session.close()
    outcomes = [row.outcome for row in recorder.rows]
    assert outcomes == ["statement_timeout", "ok", "missing_row", "sqlstate_42P01"]
