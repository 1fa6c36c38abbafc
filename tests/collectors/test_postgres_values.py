"""PostgreSQL's answers as values, and what each version is asked: recorded rows and plain text, no server."""

from __future__ import annotations

from typing import Any

import pytest

from pinchpoint_collectors.databases import postgres
from pinchpoint_collectors.databases.session_sampler import (
    SessionSample,
    activity,
    connections,
    mean_connections,
)
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.value import Value

VERSIONS = range(postgres.OLDEST, postgres.NEWEST + 1)

# PostgreSQL 18 while 8 sessions fought for a row, and a session of another role was hidden from ours.
SESSIONS: list[dict[str, Any]] = [
    {"state": "active", "wait_event_type": "Lock", "wait_event": "transactionid", "sessions": 6},
    {"state": "active", "wait_event_type": "Lock", "wait_event": "tuple", "sessions": 1},
    {"state": "active", "wait_event_type": "Timeout", "wait_event": "PgSleep", "sessions": 1},
    {"state": "active", "wait_event_type": None, "wait_event": None, "sessions": 2},
    {"state": "idle", "wait_event_type": "Client", "wait_event": "ClientRead", "sessions": 5},
    {"state": "idle in transaction", "wait_event_type": "Client", "wait_event": "ClientRead", "sessions": 1},
    {"state": "idle in transaction (aborted)", "wait_event_type": "Client", "wait_event": "ClientRead",
     "sessions": 1},
    {"state": None, "wait_event_type": None, "wait_event": None, "sessions": 3, "hidden": True},
    {"state": "active", "wait_event_type": None, "wait_event": None, "sessions": 1, "ours": True},
]  # fmt: skip

WAL: dict[str, Any] = {
    "file": "wal", "timed": True, "reads": 0, "read_bytes": 0, "read_s": 0.0,
    "writes": 4574, "write_bytes": 42401792, "write_s": 0.077392, "extends": None, "extend_s": None,
    "fsyncs": 4190, "fsync_s": 2.12367,
}  # fmt: skip

TOTALS: dict[str, Any] = {
    "started": 1.0, "commits": 100, "rollbacks": 1, "deadlocks": 0, "buffer_hits": 900, "buffer_misses": 100,
    "temp_bytes": 0, "wal_records": 50, "wal_fpi": 5, "wal_bytes": 5000, "wal_buffers_full": 0,
    "checkpoints_timed": 1, "checkpoints_requested": 0, "checkpoint_write_s": 2.5, "checkpoint_sync_s": 0.5,
    "checkpoint_buffers": 300,
}  # fmt: skip


def sampled() -> SessionSample:
    return postgres.session_sample({"ours": False, "hidden": False, **row} for row in SESSIONS)


def test_a_look_tells_waiting_from_running_and_leaves_us_out() -> None:
    """Connections count everybody; what they do, only those we may see, and not ourselves."""
    assert sampled() == SessionSample(
        waiting={"Lock:transactionid": 6, "Lock:tuple": 1, "Timeout:PgSleep": 1},
        running=2,
        idle_in_transaction=2,
        connections=21,
        hidden=3,
    )
    assert sampled().blocked == 7


def test_who_does_not_tell_is_hidden_and_a_fastpath_call_is_work() -> None:
    """``track_activities`` off hides a session from everybody: at work or not, it is none that is idle."""
    rows: list[dict[str, Any]] = [
        {"state": "disabled", "wait_event_type": None, "wait_event": None, "sessions": 4},
        {"state": "disabled", "wait_event_type": "IO", "wait_event": "WalSync", "sessions": 3},
        {"state": "fastpath function call", "wait_event_type": None, "wait_event": None, "sessions": 2},
        {"state": "fastpath function call", "wait_event_type": "IO", "wait_event": "DataFileRead",
         "sessions": 1},
    ]  # fmt: skip
    found = postgres.session_sample({"ours": False, "hidden": False, **row} for row in rows)
    assert found == SessionSample({"IO:DataFileRead": 1}, running=2, connections=10, hidden=7)


def test_an_interval_is_the_mean_of_its_samples() -> None:
    """A wait seen in one look of four is a quarter; one not seen now is 0; the most blocked is a maximum."""
    seen = [
        sampled(),
        SessionSample(connections=10),
        SessionSample(running=2, connections=9),
        SessionSample({"IO:WalSync": 4}, 0, 0, 10),
    ]
    waits = ["Lock:transactionid", "IO:WalSync", "IO:DataFileRead"]
    values = [*activity(seen, waits), *connections(mean_connections(seen), 100)]
    found = {(v.metric, v.instance): v.value for v in values}
    assert found == {
        ("db.sessions_active", ""): (10 + 0 + 2 + 4) / 4,
        ("db.sessions_running", ""): 1.0,
        ("db.sessions_waiting", "Lock:transactionid"): 1.5,
        ("db.sessions_waiting", "IO:WalSync"): 1.0,
        ("db.sessions_waiting", "IO:DataFileRead"): 0.0,
        ("db.lock_waiters", ""): 1.75,
        ("db.sessions_blocked", ""): 7,
        ("db.sessions_idle_in_transaction", ""): 0.5,
        ("db.sessions_hidden", ""): 3.0,
        ("db.connections", ""): 12.5,
        ("db.connections_ratio", ""): 0.125,
    }


def of(values: Any) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    return {(value.metric, value.instance): (value.value, value.weight) for value in values}


def test_totals_become_rates() -> None:
    """Per second; the hit ratio is of what grew and weighs as many pages; what is not there is not sent."""
    after = TOTALS | {"commits": 120, "buffer_hits": 990, "buffer_misses": 110, "checkpoint_write_s": 3.5}
    found = of(postgres.totals(TOTALS, after, 2.0))
    assert found["db.commits_per_s", ""] == (10.0, None)
    assert found["db.buffer_hit_ratio", ""] == (0.9, 100)
    assert found["db.checkpoint_write_s_per_s", ""] == (0.5, None)
    assert found["db.checkpoints_per_s", "timed"] == (0.0, None)
    old = {key: value for key, value in TOTALS.items() if not key.startswith("wal_r")}
    assert ("db.wal_records_per_s", "") not in of(postgres.totals(old, old, 1.0))
    quiet = of(postgres.totals(TOTALS, TOTALS, 1.0))
    assert quiet["db.buffer_hit_ratio", ""] == (None, 0)


def test_statistics_that_were_reset_are_null_for_one_interval() -> None:
    """A counter that went back says nothing about what happened in between."""
    found = of(postgres.totals(TOTALS, TOTALS | {"commits": 3, "buffer_hits": 1}, 1.0))
    assert found["db.commits_per_s", ""] == (None, None)
    assert found["db.buffer_hit_ratio", ""] == (None, None)
    reset = WAL | {"fsyncs": 2, "fsync_s": 0.001}
    assert of(postgres.files([WAL], [reset], 1.0))["db.fsync_latency_s", "wal"] == (None, None)


def test_file_io_has_count_time_and_latency() -> None:
    """Latency is time over operations and weighs as many; without any it is null with weight 0."""
    after = WAL | {"fsyncs": 4290, "fsync_s": 2.32367, "writes": 4674, "write_bytes": 42401792 + 819200}
    found = of(postgres.files([WAL], [after], 2.0))
    assert found["db.fsyncs_per_s", "wal"] == (50.0, None)
    assert found["db.fsync_s_per_s", "wal"][0] == pytest.approx(0.1)
    latency, weight = found["db.fsync_latency_s", "wal"]
    assert latency == pytest.approx(0.002)
    assert weight == 100
    assert found["db.write_bytes_per_s", "wal"] == (409600.0, None)
    assert found["db.read_latency_s", "wal"] == (None, 0)
    assert not any(metric.startswith("db.extend") for metric, _ in found)


@pytest.mark.parametrize(("then", "now"), [(False, False), (True, False), (False, True)])
def test_times_that_are_not_measured_are_null_and_never_zero(then: bool, now: bool) -> None:
    """Also in the interval in which measuring was switched on or off; the counts stay."""
    before, after = WAL | {"timed": then}, WAL | {"timed": now, "fsyncs": 4290}
    found = of(postgres.files([before], [after], 1.0))
    assert found["db.fsyncs_per_s", "wal"] == (100.0, None)
    assert found["db.fsync_latency_s", "wal"] == (None, None)
    assert found["db.fsync_s_per_s", "wal"] == (None, None)


def test_operations_that_took_no_time_at_all_were_not_timed() -> None:
    """Our role has ``track_io_timing`` of its own, the server has not: no latency of 0. None done, 0 s."""
    found = of(postgres.files([WAL], [WAL | {"fsyncs": 4290}], 1.0))
    assert found["db.fsyncs_per_s", "wal"] == (100.0, None)
    assert found["db.fsync_latency_s", "wal"] == (None, None)
    assert found["db.fsync_s_per_s", "wal"] == (None, None)
    assert found["db.write_s_per_s", "wal"] == (0.0, None)


def test_a_kind_of_file_first_seen_now_waits_for_the_next_reading() -> None:
    """No difference without a before."""
    assert list(postgres.files([], [WAL], 1.0)) == []


def test_a_value_is_what_a_sample_needs() -> None:
    """The pure part ends in the same record as that of /proc."""
    (first, *_) = activity([SessionSample()], [])
    assert first == Value("db.sessions_active", "", 0.0)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_asked_for_the_views_it_has(version: int) -> None:
    """Each view is named only where it exists and holds the columns that are read."""
    asked = postgres.statements(version * 10_000 + 4)
    both = asked.totals + asked.files
    assert ("pg_stat_io" in both) == (version >= 16)
    assert ("pg_stat_checkpointer" in both) == (version >= 17)
    assert ("checkpoints_req " in both) == (version < 17)
    assert ("wal_sync_time" in both) == (14 <= version < 18)
    assert ("pg_stat_wal" in both) == (version >= 14)
    assert ("op_bytes" in both) == (version in (16, 17))
    assert ("restartpoints_req" in both) == (version >= 17), "a standby's, apart since 17"
    assert ("buffers_backend" in both) == (version < 16)
    assert "{" not in both
    assert set(postgres.TOTALS) >= {"commits", "wal_bytes", "checkpoints_timed"}


def test_a_newer_version_is_asked_as_the_newest_and_an_older_one_refused() -> None:
    """Somebody will upgrade before we do; 12 lacks too much."""
    assert postgres.statements(190001) == postgres.statements(180000)
    with pytest.raises(CollectorError, match="PostgreSQL 12; collector kind 'postgres' knows 13 to 18"):
        postgres.statements(120022)


def test_what_a_version_cannot_say_is_listed_with_the_reason() -> None:
    """Nothing is missing from 18; the older, the more."""
    counts = [len(list(postgres.not_measured(version * 10_000))) for version in VERSIONS]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    assert all(each.remedy for each in postgres.not_measured(130000))
