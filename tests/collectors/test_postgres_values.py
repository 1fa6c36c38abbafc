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


TOTALS: dict[str, Any] = {
    "started": 1.0, "commits": 100, "rollbacks": 1, "deadlocks": 0, "buffer_hits": 900, "buffer_misses": 100,
    "temp_bytes": 0, "wal_records": 50, "wal_fpi": 5, "wal_bytes": 5000, "wal_buffers_full": 0,
    "checkpoints_timed": 1, "checkpoints_requested": 0, "checkpoint_write_s": 2.5, "checkpoint_sync_s": 0.5,
    "checkpoint_buffers": 300,
}  # fmt: skip


def sampled() -> SessionSample:
    return postgres.session_sample({"ours": False, "hidden": False, **row} for row in SESSIONS)


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
