"""Tests of the cost of each preset, as the server counts it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from scenarios.sql_mix.helpers import SMALL, ask, performed, prepared, wait_until_reported
from scenarios.sql_mix.server import Server

from pinchpoint_scenarios.sql_mix.params import PRESETS

TIMES = 200
SMALL_SIZES = {"copy_rows": 500, "spill_bytes": "2MiB", "scale": SMALL}


@dataclass
class Asked:
    """The server's mean cost of one operation.

    Attributes:
        flushes: flushes of the write-ahead log, by commits that waited for the log disk.
        wal_bytes: bytes written to the write-ahead log.
        temporary_bytes: bytes written to temporary files.
        pages: pages read from the buffer cache or the disk.
    """

    flushes: float
    wal_bytes: float
    temporary_bytes: float
    pages: float


COUNTED = """SELECT
    (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend')::int8,
    (SELECT wal_bytes FROM pg_stat_wal)::int8, temp_bytes, blks_hit + blks_read
    FROM pg_stat_database WHERE datname = current_database()"""


def asked(server: Server, preset: str) -> Asked:
    """Run the preset in one session and return its cost; an ended session has reported all its work."""
    sql = server.endpoint
    with prepared(sql, {"preset": preset, **SMALL_SIZES}) as driver:
        # the first change of each page after a checkpoint logs the whole page
        ask(server.admin, "CHECKPOINT")
        time.sleep(1.1)  # a running session reports once a second
        before = ask(sql, COUNTED)[0]
        recorder = performed(driver, TIMES)
        wait_until_reported(sql)
        after = ask(sql, COUNTED)[0]
    counts = recorder.counts()
    assert set(counts) == {(name, "ok") for name in PRESETS[preset]}, (
        "the mix holds all of them, and no failure"
    )
    return Asked(*((new - old) / TIMES for old, new in zip(before, after, strict=True)))


@pytest.fixture(scope="module")
def by_preset(own_server: Server) -> dict[str, Asked]:
    """Return the cost of every preset."""
    return {preset: asked(own_server, preset) for preset in PRESETS}


def test_log_heavy_waits_for_the_log(by_preset: dict[str, Asked]) -> None:
    """In preset log-heavy nearly every operation is a small commit with a flush."""
    found = by_preset["log-heavy"]
    assert 0.8 < found.flushes < 1.05
    assert found.wal_bytes < 4000


def test_data_heavy_writes_whole_pages(by_preset: dict[str, Asked]) -> None:
    """Preset data-heavy: each change dirties another page and logs the page's image."""
    assert by_preset["data-heavy"].wal_bytes > 1.5 * by_preset["log-heavy"].wal_bytes
    assert by_preset["data-heavy"].pages > by_preset["log-heavy"].pages


def test_bulk_moves_the_most_bytes(by_preset: dict[str, Asked]) -> None:
    """In preset bulk each operation writes tens of kilobytes with few flushes."""
    assert by_preset["bulk"].wal_bytes > 20_000
    assert by_preset["bulk"].wal_bytes > 4 * max(
        by_preset[name].wal_bytes for name in PRESETS if name != "bulk"
    )


def test_tempdb_alone_writes_temporary_files(by_preset: dict[str, Asked]) -> None:
    """In preset tempdb half of the operations sort 2 MiB in temporary files; other presets use none."""
    assert 0.6 * 2**20 < by_preset["tempdb"].temporary_bytes < 2 * 2**20
    assert all(found.temporary_bytes == 0 for name, found in by_preset.items() if name != "tempdb")
    assert by_preset["tempdb"].flushes < 0.05


def test_read_mostly_hardly_ever_waits_for_the_log(by_preset: dict[str, Asked]) -> None:
    """In preset read-mostly one operation in ten writes."""
    assert 0.03 < by_preset["read-mostly"].flushes < 0.2
    assert by_preset["read-mostly"].flushes < 0.5 * by_preset["balanced"].flushes
