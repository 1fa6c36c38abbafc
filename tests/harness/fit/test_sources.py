"""Exports of statistics and recordings: what is read out of them, and what is said of those that fail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.fit.exports import (
    BEFORE,
    LATER,
    QUERY_STORE,
    STATEMENT,
    comments,
    fitted,
    pair,
    perfmon,
    statements,
    table,
)

from pinchpoint.base.errors import InputError
from pinchpoint.cli.init import init
from pinchpoint.fit.fit import fit
from pinchpoint.fit.production import COMMIT_LOG_BYTES
from pinchpoint.fit.snapshots import changes, read_csv, seconds
from pinchpoint.plan import load, load_plan

NOTHING = ("page_reads_per_operation", "temp_bytes_per_operation")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-21 20:15:00.5+00", "2026-11-21T20:15:00.500000+00:00"),
        ("2026-11-21 21:15:00+01:00", "2026-11-21T20:15:00+00:00"),
        ("2026-11-21 20:15:00.1234567 +00:00", "2026-11-21T20:15:00.123456+00:00"),
        ("2026-11-21 20:15:00.5000000", "2026-11-21T20:15:00.500000+00:00"),
    ],
)
def test_times_are_read_as_both_servers_write_them(text: str, at: str) -> None:
    """PostgreSQL's zone in two digits, SQL Server's seven digits of a second."""
    assert datetime.fromtimestamp(seconds(text, "x"), UTC).isoformat() == at
    with pytest.raises(InputError, match="x: found 'noon'; allowed: a time such as"):
        seconds("noon", "x")


def test_what_changed_between_two_snapshots(tmp_path: Path) -> None:
    """In whatever order they are given; a statement that is new, and one whose counters were reset."""
    before = statements(tmp_path / "b", BEFORE, {"calls": 5}, {"calls": 900})
    after = statements(tmp_path / "a", LATER, {"calls": 12}, {"calls": 40}, {"calls": 7, "query": "SELECT 1"})
    found = [read_csv(Path(each)) for each in (after, before)]
    (change,) = changes(each for each in found if each).values()
    assert change.length_s == 100.5
    assert [float(row["calls"]) for row in change.rows] == [7, 40, 7]


def test_a_statement_may_be_long(tmp_path: Path) -> None:
    """A list of values as a program writes it has any length."""
    long = {"query": "INSERT INTO t VALUES ($1)" + ", ($1)" * 50_000, "calls": 10, "rows": 500_010}
    plan, _ = fitted(tmp_path, *pair(tmp_path, long))
    assert plan["scenarios"]["production"]["params"]["batch_rows"] == 50_001


def test_what_is_beyond_sql_mix_makes_a_plan_it_takes(tmp_path: Path) -> None:
    """As much as it can do, and a sentence; a scan finds its rows where updates would do with few."""
    batch = {"query": "INSERT INTO t SELECT * FROM u", "calls": 10, "rows": 2_000_000, "wal_bytes": 2 * 10**9}
    plan, text = fitted(tmp_path, *pair(tmp_path, batch))
    params = plan["scenarios"]["production"]["params"]
    assert (params["batch_rows"], params["row_bytes"]) == (100_000, "671B")
    assert "batch_rows would be 200,000, and sql-mix has 100,000 at most" in comments(text)
    assert "rows of 1842 bytes would be needed for that" in comments(text)
    scan = {"query": "SELECT count(*) FROM t", "calls": 10, "rows": 10, "shared_blks_hit": 1000}
    change = {"query": "UPDATE t SET x = $1", "calls": 100, "rows": 100, "wal_bytes": 20_000}
    plan, _ = fitted(tmp_path, *pair(tmp_path, scan, change))
    assert plan["scenarios"]["production"]["params"]["scale"] == 0.5
    plan, _ = fitted(tmp_path, *pair(tmp_path, change))
    assert plan["scenarios"]["production"]["params"]["scale"] == 0.01


def test_what_functions_write_is_not_passed_over(tmp_path: Path) -> None:
    """What hides it is said with its remedy; of statements counted twice the log is counted once."""
    calling = {"query": "SELECT place_order($1, $2)", "calls": 100, "rows": 100, "wal_bytes": 60_000}
    insert = {"query": "INSERT INTO t VALUES ($1)", "calls": 100, "rows": 100, "wal_bytes": 20_000}
    _, text = fitted(tmp_path, *pair(tmp_path, calling, insert))
    assert (
        "75% of the log's bytes are written within functions and procedures (SELECT place_order($1, $2))"
        in (comments(text))
    )
    called = {"query": "CALL place_order($1)", "calls": 100, "rows": 0, "wal_bytes": 60_000}
    with pytest.raises(
        InputError, match=r"100% of the log's(.|\n)*pg_stat_statements.track = all(.|\n)*no statem"
    ):
        fitted(tmp_path, *pair(tmp_path, called))
    within = {**insert, "wal_bytes": 60_000, "toplevel": "f"}
    plan, text = fitted(tmp_path, *pair(tmp_path, called, within))
    assert plan["production"]["log_bytes_per_write"] == 600 + COMMIT_LOG_BYTES
    assert "written within functions" not in comments(text)
    plan, _ = fitted(tmp_path, *pair(tmp_path, calling, within))
    assert plan["production"]["reads_per_s"] == 0


def test_a_reset_is_known_by_what_the_server_says_of_it(tmp_path: Path) -> None:
    """Counters that began anew may have grown beyond what they were; PostgreSQL 17 tells since when."""
    since = {"stats_since": "2026-11-20 00:00:00+00"}
    again = {"stats_since": "2026-11-21 20:01:00+00"}
    before = statements(tmp_path / "b", BEFORE, {"calls": 5, **since}, {"calls": 5, **since})
    after = statements(tmp_path / "a", LATER, {"calls": 12, **since}, {"calls": 40, **again})
    found = [read_csv(Path(each)) for each in (before, after)]
    (change,) = changes(each for each in found if each).values()
    assert [float(row["calls"]) for row in change.rows] == [7, 40]
    (note,) = change.notes
    assert "counters of 1 of 2 rows were reset" in note
    assert "their rates are too low" in note


def test_an_export_that_ends_within_a_line_is_told(tmp_path: Path) -> None:
    """Its last figure may be any part of what it was."""
    before, after = pair(tmp_path, {"query": "SELECT 1", "calls": 400, "wal_bytes": 1234})
    whole = Path(after).read_bytes()
    Path(after).write_bytes(whole[:-4])
    _, text = fitted(tmp_path, before, after)
    assert "after.csv ends within a line: its last figure may lack digits" in comments(text)


def test_statements_whose_text_is_hidden_are_told_and_never_left_out_in_silence(tmp_path: Path) -> None:
    """As PostgreSQL hides other users' from whoever is no member of pg_read_all_stats, all under one key."""
    nothing = {"query": "<insufficient privilege>", "queryid": ""}
    hidden, shown = {**nothing, "calls": 300}, {"query": "SELECT 1", "calls": 400, "rows": 400}
    before = statements(tmp_path / "b", BEFORE, {"query": "SELECT 1"}, nothing, nothing)
    _, text = fitted(tmp_path, before, statements(tmp_path / "a", LATER, shown, hidden, hidden))
    assert "the server hides the text of 60% of the calls" in comments(text)
    assert "GRANT pg_read_all_stats TO USER" in comments(text)
    with pytest.raises(InputError, match="shows no statement's text, so what they do is not told; export as"):
        fitted(tmp_path, before, statements(tmp_path / "a", LATER, hidden))


def test_a_plan_does_what_the_statements_did(tmp_path: Path) -> None:
    """Rates, rows, pages, sizes; every figure with where it comes from."""
    sources = pair(
        tmp_path,
        {"query": "INSERT INTO t VALUES ($1)", "calls": 1005, "rows": 1005, "wal_bytes": 1005 * 500},
        {"query": "INSERT INTO u SELECT $1", "calls": 201, "rows": 10050, "wal_bytes": 10050 * 400},
        {"query": "UPDATE t SET x = $1", "calls": 402, "rows": 402, "wal_bytes": 402 * 200},
        {
            "query": "SELECT 1",
            "calls": 4020,
            "rows": 4020,
            "shared_blks_hit": 12000,
            "shared_blks_read": 2211,
        },
        {"query": "SELECT sum(x) FROM t", "calls": 201, "rows": 201, "shared_blks_hit": 201 * 100},
        {"query": "SELECT x FROM t ORDER BY y", "calls": 201, "rows": 9, "temp_blks_written": 201 * 512},
    )
    plan, text = fitted(tmp_path, *sources)
    scenario = plan["scenarios"]["production"]
    assert scenario["use"] == "sql-mix"
    assert scenario["load"]["rate_per_s"] == pytest.approx(60, rel=0.001)
    params = scenario["params"]
    assert params["operations"] == {
        "log_append": 10,
        "log_batch": 2,
        "data_update": 4,
        "point_read": 40,
        "range_scan": 2,
        "spill": 2,
    }
    assert (params["batch_rows"], params["scan_rows"], params["spill_bytes"]) == (50, 400, "4MiB")
    figures = plan["production"]
    assert figures["writes_per_s"] == pytest.approx(16)
    assert figures["reads_per_write"] == 2.75
    assert figures["rows_per_write"] == pytest.approx((10 + 100 + 4) / 16, rel=0.001)
    statements_bytes = (10 * 500 + 100 * 400 + 4 * 200) / 16
    assert figures["log_bytes_per_write"] == pytest.approx(statements_bytes + COMMIT_LOG_BYTES, rel=0.001)
    assert figures["page_reads_per_operation"] == pytest.approx(22 / 60, rel=0.001)
    assert figures["temp_bytes_per_operation"] == pytest.approx(2 * 2**22 / 60, rel=0.001)
    assert 100 < int(params["row_bytes"].removesuffix("B")) < 400
    figures_lines = [
        line for line in text.partition("\nproduction:\n")[2].splitlines() if line.startswith("  ")
    ]
    assert len(figures_lines) == len(figures)
    assert all("before.csv, after.csv, 100 s" in line for line in figures_lines)


def test_transactions_of_several_statements_are_counted_by_their_commits(tmp_path: Path) -> None:
    """Four writes and a COMMIT are one write of four rows; pg_stat_database, where given, knows better."""
    sources = pair(
        tmp_path,
        {"query": "INSERT INTO t VALUES ($1)", "calls": 4020, "rows": 4020, "wal_bytes": 4020 * 300},
        {"query": "COMMIT", "calls": 1005},
    )
    plan, _ = fitted(tmp_path, *sources)
    assert plan["production"]["writes_per_s"] == pytest.approx(10)
    assert plan["production"]["rows_per_write"] == 4
    params = plan["scenarios"]["production"]["params"]
    assert params["operations"] == {"log_batch": 10}
    assert params["batch_rows"] == 4
    row = {"datid": 5, "datname": "shop", "xact_rollback": 0, "blks_read": 0, "temp_bytes": 0}
    database = [
        table(tmp_path / "d1.csv", {**row, "xact_commit": 100, "captured_at": BEFORE}),
        table(tmp_path / "d2.csv", {**row, "xact_commit": 2110, "captured_at": LATER}),
    ]
    plan, _ = fitted(tmp_path, *sources, *database)
    assert plan["production"]["writes_per_s"] == pytest.approx(20)


def test_reads_by_themselves_make_no_transactions_that_write(tmp_path: Path) -> None:
    """Orders of three statements each, beside look-ups and changes without a COMMIT: commits are counted."""
    orders = [
        {"query": "INSERT INTO orders VALUES ($1)", "calls": 2000, "rows": 2000, "wal_bytes": 400_000},
        {"query": "INSERT INTO line VALUES ($1), ($2)", "calls": 2000, "rows": 4000, "wal_bytes": 400_000},
        {"query": "UPDATE stock SET n = n - $1", "calls": 2000, "rows": 2000, "wal_bytes": 400_000},
        {"query": "BEGIN", "calls": 2000},
        {"query": "COMMIT", "calls": 2000},
    ]
    alone = [
        {"query": "SELECT * FROM stock WHERE id = $1", "calls": 4000, "rows": 4000},
        {"query": "UPDATE customer SET n = $1", "calls": 400, "rows": 400, "wal_bytes": 80_000},
    ]
    row = {"datid": 5, "datname": "shop", "xact_rollback": 0, "blks_read": 0, "temp_bytes": 0}
    database = [
        table(tmp_path / "d1.csv", {**row, "xact_commit": 100, "captured_at": BEFORE}),
        table(tmp_path / "d2.csv", {**row, "xact_commit": 6500, "captured_at": LATER}),
    ]
    plan, _ = fitted(tmp_path, *pair(tmp_path, *orders, *alone), *database)
    assert plan["production"]["writes_per_s"] == pytest.approx(2400 / 100.5, rel=0.001)
    assert plan["production"]["reads_per_s"] == pytest.approx(4000 / 100.5, rel=0.001)


def test_a_query_store_and_file_statistics_are_fitted(tmp_path: Path) -> None:
    """As SQL Server exports them: means of intervals, log bytes, pages."""
    look = {**QUERY_STORE, "query_sql_text": "(@a int)SELECT * FROM t WHERE a = @a", "count_executions": 7200}
    store = table(tmp_path / "store.csv", QUERY_STORE, {**look, "avg_log_bytes_used": 0})
    file = {"captured_at": "2026-11-21 19:00:00", "database_id": 5, "type_desc": "LOG", "file_id": 2}
    file |= dict.fromkeys(("num_of_reads", "num_of_writes", "num_of_bytes_read", "num_of_bytes_written"), 0)
    later = {**file, "captured_at": "2026-11-21 20:00:00", "num_of_writes": 10, "num_of_bytes_written": 40960}
    files = [table(tmp_path / "f1.csv", file), table(tmp_path / "f2.csv", later)]
    plan, _ = fitted(tmp_path, store, *files)
    assert plan["scenarios"]["production"]["params"]["operations"] == {"log_append": 1, "point_read": 2}
    assert plan["production"] == {
        "writes_per_s": 1,
        "reads_per_s": 2,
        "reads_per_write": 2,
        "rows_per_write": 1,
        "log_bytes_per_write": 480.5,
        "page_reads_per_operation": 0.5,
        "temp_bytes_per_operation": 0,
        "log_write_bytes": 4096,
        "log_ios_per_write": 0.002778,
        "log_disk_bytes_per_write": 11.38,
    }


def test_two_exports_of_one_query_store_count_nothing_twice(tmp_path: Path) -> None:
    """Of an interval that was still going on the later export has more; another database's is added."""
    later = {"start_time": "2026-11-21 20:00:00 +00:00", "end_time": "2026-11-21 21:00:00 +00:00"}
    friday = table(tmp_path / "friday.csv", QUERY_STORE, {**QUERY_STORE, **later, "count_executions": 100})
    whole = {**QUERY_STORE, **later, "count_executions": 7200}
    monday = table(tmp_path / "monday.csv", QUERY_STORE, whole)
    for order in ((friday, monday), (monday, friday)):
        plan, text = fitted(tmp_path, *order)
        assert plan["production"]["writes_per_s"] == 1.5
        assert "intervals that several of them have are counted once" in comments(text)
    other = table(tmp_path / "other.csv", {**QUERY_STORE, "query_sql_text": "(@b int)DELETE FROM u"})
    plan, text = fitted(tmp_path, monday, other)
    assert plan["production"]["writes_per_s"] == 2
    assert "counted once" not in comments(text)


def test_what_will_not_do_is_said(tmp_path: Path) -> None:
    """Which source, what is needed, the statement that exports it."""
    idle = pair(tmp_path, {"query": "SELECT 1"})
    recording = perfmon(tmp_path / "day.csv", peak_hour=1)
    (tmp_path / "empty.csv").write_text(",".join(STATEMENT) + "\n")
    (tmp_path / "odd.txt").write_text("nothing that anybody knows\n" * 3)

    def refused(said: str, *sources: str) -> None:
        with pytest.raises(InputError, match=said):
            fit(sources, 1, lambda _: None)

    refused("nothing changed between them", *idle)
    before, after = pair(tmp_path, {"query": "SELECT 1", "calls": 5})
    refused(r"before\.csv: 1 snapshot of pg_stat_statements; needed: two, of before and after", before)
    refused("all are of the same time", after, after)
    refused(r"empty\.csv: pg_stat_statements without a row", str(tmp_path / "empty.csv"))
    refused("none has statistics of statements or records; needed: two CSV exports", recording)
    refused(r"gone\.csv: cannot be read: No such file", str(tmp_path / "gone.csv"))
    refused(r"odd\.txt", before, after, str(tmp_path / "odd.txt"))
    refused("no statement that reads or writes", *pair(tmp_path, {"query": "COMMIT", "calls": 5}))


def test_init_writes_the_fitted_plan(tmp_path: Path) -> None:
    """Sources up to the next option, beside a farm.yaml; nothing is written where one will not do."""
    sources = pair(tmp_path, {"query": "SELECT 1", "calls": 1005, "rows": 1005, "shared_blks_hit": 1005})
    place = tmp_path / "fitted"
    done = CliRunner().invoke(init, [str(place), "--from", *sources, "--over", "5s"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    farm, plan = load(place / "farm.yaml", place / "plan.yaml")
    assert plan.production == {"writes_per_s": 0, "reads_per_s": 10, **dict.fromkeys(NOTHING, 0)}
    assert farm.name == "my-farm"
    for said, arguments in (
        ("1 snapshot of", ["--from", sources[0]]),
        ("--over: ", ["--from", *sources, "--over", "soon"]),
    ):
        with pytest.raises(InputError, match=said):
            CliRunner().invoke(
                init, [str(tmp_path / "new"), *arguments], catch_exceptions=False, standalone_mode=False
            )
    assert not (tmp_path / "new").exists()


def test_a_figure_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    """In a plan that somebody wrote by hand."""
    text = fit(pair(tmp_path, {"query": "SELECT 1", "calls": 1005}), 1, lambda _: None)
    (tmp_path / "plan.yaml").write_text(text.replace("reads_per_s:", "read_per_s:"))
    with pytest.raises(InputError, match=r'unknown figure "read_per_s"; allowed: .*; nearest: reads_per_s'):
        load_plan(tmp_path / "plan.yaml")
