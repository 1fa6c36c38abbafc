"""Statistics of files and of waits, exports of every shape, sources that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.fit.exports import BEFORE, LATER, QUERY_STORE, STATEMENT, comments, fitted, pair, perfmon, table

from pinchpoint.base.errors import InputError
from pinchpoint.fit.fit import fit

INSERTS = {"query": "INSERT INTO t VALUES ($1)", "calls": 2010, "rows": 2010, "wal_bytes": 2010 * 460}
WAIT = ("wait_type", "waiting_tasks_count", "wait_time_ms")


def two(folder: Path, name: str, nothing: dict[str, Any], *later: dict[str, Any]) -> list[str]:
    """Two exports of a table: all counters at 0, and 100.5 s later."""
    zeros = [
        {key: 0 if isinstance(value, float | int) else value for key, value in row.items()} for row in later
    ]
    before = table(folder / f"{name}1.csv", *({**nothing, **row, "captured_at": BEFORE} for row in zeros))
    after = table(folder / f"{name}2.csv", *({**nothing, **row, "captured_at": LATER} for row in later))
    return [before, after]


def io_row(what: str, context: str, **counted: float) -> dict[str, Any]:
    """A row of pg_stat_io."""
    known = {
        "reads": 0.0,
        "read_bytes": 0.0,
        "read_time": 0.0,
        "writes": 0.0,
        "write_bytes": 0.0,
        "write_time": 0.0,
    }
    return {"backend_type": "client backend", "object": what, "context": context, **known, **counted}


def test_what_postgresql_counts_of_its_files_is_fitted(tmp_path: Path) -> None:
    """The log's writes, the data files' reads and writes, how long the server waited for them."""
    sources = two(
        tmp_path,
        "io",
        {},
        io_row("wal", "normal", writes=1005, write_bytes=1005 * 8192, write_time=2010),
        io_row("wal", "init", writes=9, write_bytes=9 * 2**24),
        io_row(
            "relation",
            "normal",
            reads=400,
            read_bytes=400 * 8192,
            read_time=2000,
            writes=100,
            write_bytes=819200,
        ),
        io_row("relation", "bulkread", reads=100, read_bytes=100 * 131072, read_time=500),
        io_row("temp relation", "normal", reads=9, read_bytes=9, writes=9, write_bytes=9),
    )
    plan, _ = fitted(tmp_path, *pair(tmp_path, INSERTS), *sources)
    figures = plan["production"]
    assert figures["log_write_bytes"] == 8192
    assert figures["log_ios_per_write"] == 0.5
    assert figures["log_disk_bytes_per_write"] == 4096
    assert figures["log_write_latency_s"] == 0.002
    assert figures["data_read_bytes"] == pytest.approx((400 * 8192 + 100 * 131072) / 500, rel=1e-3)
    assert figures["data_write_bytes"] == 8192
    assert figures["data_reads_per_data_write"] == 5
    assert figures["data_read_latency_s"] == 0.005


def test_an_older_postgresql_counts_operations(tmp_path: Path) -> None:
    """16 and 17: each I/O has op_bytes; the log's writes are in pg_stat_wal, their sizes nowhere."""
    row = {"backend_type": "client backend", "object": "relation", "context": "normal", "op_bytes": "8192"}
    io = two(tmp_path, "io", row, {**row, "reads": 50, "writes": 10, "read_time": 0, "write_time": 0})
    wal = {"wal_records": 5000, "wal_fpi": 1, "wal_bytes": 2010 * 505, "wal_buffers_full": 0}
    log = two(tmp_path, "wal", {}, {**wal, "wal_write": 402, "wal_write_time": 0})
    plan, text = fitted(tmp_path, *pair(tmp_path, INSERTS), *io, *log)
    figures = plan["production"]
    assert (figures["data_read_bytes"], figures["data_write_bytes"]) == (8192, 8192)
    assert figures["log_ios_per_write"] == 0.2
    assert figures["log_bytes_per_write"] == 505
    assert "data_read_latency_s" not in figures, "track_io_timing is off: 0 is no time"
    assert "log_write_bytes" not in figures
    assert "Not told: size of a write to the log; needed: two of pg_stat_io (PostgreSQL 18)" in comments(text)
    assert "differ" not in comments(text), "505 and 500 bytes are the same"


def test_two_sources_that_differ_are_both_shown(tmp_path: Path) -> None:
    """Both figures, which was taken, and why."""
    wal = {"wal_records": 1, "wal_fpi": 0, "wal_bytes": 2010 * 1000, "wal_buffers_full": 0}
    row = {"datid": "5", "datname": "shop", "xact_rollback": 0, "blks_read": 0, "temp_bytes": 0}
    sources = [*two(tmp_path, "w", {}, wal), *two(tmp_path, "d", {}, {**row, "xact_commit": 1005})]
    plan, text = fitted(tmp_path, *pair(tmp_path, INSERTS), *sources)
    assert plan["production"]["writes_per_s"] == 10
    assert plan["production"]["log_bytes_per_write"] == 2000
    said = comments(text)
    assert (
        "Two sources differ: transactions that write, a second: 10 (d1.csv, d2.csv: xact_commit), 20 ("
        in said
    )
    assert "taken is the first: several statements are one transaction" in said
    assert "Two sources differ: bytes of the log for a writing transaction: 2000 (w1.csv, w2.csv: " in said
    assert "taken is the first: it counts all that reaches the log, other databases' too" in said


def test_sql_servers_files_and_waits_are_fitted(tmp_path: Path) -> None:
    """Its log, its data files, what sessions waited for; tempdb's and idle threads' waits are not theirs."""
    names = ("num_of_reads", "num_of_bytes_read", "io_stall_read_ms", "num_of_writes", "num_of_bytes_written")

    def file(number: int, kind: str, *counted: float) -> dict[str, Any]:
        counters = dict(zip((*names, "io_stall_write_ms"), counted, strict=True))
        return {"database_id": "5", "file_id": f"{number}", "type_desc": kind, **counters}

    files = two(
        tmp_path,
        "f",
        {},
        file(1, "ROWS", 300, 300 * 65536, 1500, 100, 819200, 200),
        file(2, "LOG", 0, 0, 0, 201, 201 * 4096, 402),
    )
    waits = two(
        tmp_path,
        "w",
        {},
        *(
            dict(zip((*WAIT, "signal_wait_time_ms"), each, strict=True))
            for each in (
                ("WRITELOG", 200, 600, 60),
                ("PAGEIOLATCH_SH", 100, 300, 0),
                ("LCK_M_X", 1, 100, 40),
                ("LAZYWRITER_SLEEP", 900, 100_000, 9),
            )
        ),
    )  # fmt: skip
    plan, text = fitted(tmp_path, table(tmp_path / "store.csv", QUERY_STORE), *files, *waits)
    figures = plan["production"]
    assert (figures["log_write_bytes"], figures["log_write_latency_s"]) == (4096, 0.002)
    assert figures["log_ios_per_write"] == 2
    assert (figures["data_read_bytes"], figures["data_reads_per_data_write"]) == (65540, 3)
    assert figures["data_read_latency_s"] == 0.005
    assert (figures["log_wait_s"], figures["data_wait_s"]) == (0.003, 0.003)
    said = comments(text)
    assert (
        "at any moment 0.01 sessions waited: Log:WRITELOG 60%, Data:PAGEIOLATCH_SH 30%, Lock:LCK_M_X 10%"
        in said
    )
    assert "10% of it was for a CPU" in said


def test_a_query_store_of_2016_tells_no_bytes_of_the_log(tmp_path: Path) -> None:
    """Not 0: not told, and what would tell."""
    row = {
        name: value
        for name, value in QUERY_STORE.items()
        if name not in ("avg_log_bytes_used", "avg_tempdb_space_used")
    }
    plan, text = fitted(tmp_path, table(tmp_path / "store.csv", row))
    assert "log_bytes_per_write" not in plan["production"]
    assert "temp_bytes_per_operation" not in plan["production"]
    assert "row_bytes" not in plan["scenarios"]["production"]["params"]
    assert (
        "Not told: bytes of the log for a writing transaction; needed: pg_stat_wal, or the Query Store from "
        "SQL Server 2017 on" in comments(text)
    )


def test_a_query_stores_intervals_are_the_day(tmp_path: Path) -> None:
    """Its busiest hour is the load; a recording goes before it."""
    rows = [
        {
            **QUERY_STORE,
            "count_executions": 36_000 if hour == 14 else 3600,
            "start_time": f"2026-11-20 {hour:02}:00:00 +00:00",
            "end_time": f"2026-11-20 {hour:02}:59:59.9999999 +00:00",
        }
        for hour in range(8, 18)
    ]
    store = table(tmp_path / "store.csv", *rows)
    plan, text = fitted(tmp_path, store)
    assert plan["scenarios"]["production"]["load"]["rate_per_s"] == pytest.approx(10, rel=0.01)
    assert plan["production"]["writes_per_s"] == pytest.approx(10, rel=0.01)
    assert "the busiest hour, 2026-11-20 14:00 UTC" in comments(text)
    assert "store.csv covers 0 whole days, and 10.0 h of 2026-11-20" in comments(text)
    plan, text = fitted(tmp_path, store, perfmon(tmp_path / "day.csv", peak_hour=16))
    assert "the busiest hour, 2026-11-20 16:00 UTC" in comments(text)


def test_exports_of_every_editor_are_read(tmp_path: Path) -> None:
    """Management Studio's semicolons and UTF-16, statements over several lines, empty lines."""
    before, after = pair(tmp_path, {**INSERTS, "query": 'INSERT -- "one"\nINTO t\nVALUES ($1)'})
    expected, _ = fitted(tmp_path, before, after)
    for name in (before, after):
        path = Path(name)
        text = path.read_text(encoding="utf-8").replace(",", ";")
        path.write_bytes((text + "\r\n\r\n").encode("utf-16"))
    found, _ = fitted(tmp_path, before, after)
    assert found["production"] == expected["production"]
    assert found["production"]["rows_per_write"] == 1


def test_what_sqlcmd_and_powershell_write_is_read(tmp_path: Path) -> None:
    """A rule under the names; decimal commas where semicolons divide."""
    store = Path(table(tmp_path / "store.csv", QUERY_STORE))
    plan, _ = fitted(tmp_path, str(store))
    head, row = store.read_text().splitlines()
    store.write_text("\n".join((head, ",".join("---" for _ in QUERY_STORE), row, "")))
    assert fitted(tmp_path, str(store))[0] == plan
    cells = (
        cell.replace(".", ",") if cell in ("480.5", "0.5") else f'"{cell}"' for cell in row_of(QUERY_STORE)
    )
    store.write_text("\n".join((head.replace(",", ";"), ";".join(cells))))
    assert fitted(tmp_path, str(store))[0] == plan


def row_of(row: dict[str, Any]) -> list[str]:
    """Its cells as text."""
    return [str(value) for value in row.values()]


def test_more_than_two_snapshots_are_added_up(tmp_path: Path) -> None:
    """A counter that was reset in between loses one stretch at most; that is said."""
    times = [f"2026-11-21 20:0{minute}:00+00" for minute in range(4)]
    counts = [1000, 1600, 60, 660]
    names = [
        table(
            tmp_path / f"{n}.csv",
            {**STATEMENT, "captured_at": at, "calls": calls, "rows": calls, "wal_bytes": 0},
        )
        for n, (at, calls) in enumerate(zip(times, counts, strict=True))
    ]
    plan, text = fitted(tmp_path, *names)
    assert plan["production"]["writes_per_s"] == pytest.approx((600 + 60 + 600) / 180)
    assert "counters of 1 of 1 rows were reset, or went back as after a restart" in comments(text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("calls,", "calls,", ",2010,", ",viele,"), r"bad\.csv:2: calls: found 'viele'; allowed: a number"),
        (("calls,", "calls,", ",2010,", ",-2010,"), r"bad\.csv:2: calls: found '-2010'; allowed: a number"),
        ((LATER, LATER, LATER, "gestern"), r"bad\.csv:2: captured_at: found 'gestern'; allowed: a time"),
        (("captured_at", "taken_at", "", ""), r"bad\.csv: no column captured_at: when it was taken is not"),
        (("$1)", "$1), 1, 2", "", ""), r"bad\.csv:2: found 14 cells; allowed: 12, as the header has"),
    ],
)  # fmt: skip
def test_a_cell_that_is_none_is_found_where_it_stands(
    change: tuple[str, str, str, str], said: str, tmp_path: Path
) -> None:
    """File, line, column, what was found, what is allowed."""
    before, after = pair(tmp_path, INSERTS)
    text = Path(after).read_text(encoding="utf-8").replace('"', "")
    bad = tmp_path / "bad.csv"
    bad.write_text(text.replace(change[0], change[1]).replace(change[2] or "\0", change[3]), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        fit([before, str(bad)], 1, lambda _: None)


def test_snapshots_of_two_servers_are_no_pair(tmp_path: Path) -> None:
    """Nothing is in both: what one has counted since its start is not what the other did in between."""
    before, _ = pair(tmp_path, INSERTS)
    other = table(tmp_path / "other.csv", {**STATEMENT, **INSERTS, "queryid": 99, "captured_at": LATER})
    with pytest.raises(InputError, match=r"before\.csv, other\.csv: no row of pg_stat_statements is in both"):
        fit([before, other], 1, lambda _: None)


def test_waits_without_statements_are_no_plan(tmp_path: Path) -> None:
    """What is needed besides is named."""
    row = {
        "wait_type": "WRITELOG",
        "waiting_tasks_count": 200,
        "wait_time_ms": 600,
        "signal_wait_time_ms": 60,
    }
    with pytest.raises(
        InputError, match=r"w1\.csv, w2\.csv: no statistics of statements among them; needed: two"
    ):
        fit(two(tmp_path, "w", {}, row), 1, lambda _: None)
