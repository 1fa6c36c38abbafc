"""Tests of Valkey's and Redis' answers as metrics, with recorded fields."""

from __future__ import annotations

from typing import Any

import pytest
from collectors.asking import of

from pinchpoint_collectors.databases import valkey
from pinchpoint_collectors.databases.valkey import Spike

# Valkey 9.1 with appendfsync always, before and after 3,106 writes of 100 bytes in 7.9 s on a slow disk.
BEFORE: dict[str, Any] = {
    "valkey_version": "9.1.2", "redis_version": "7.2.4", "connected_clients": 1, "maxclients": 10000,
    "blocked_clients": 0, "used_memory": 1043568, "maxmemory": 0, "mem_clients_normal": 0,
    "aof_enabled": 1, "aof_last_write_status": "ok", "aof_current_size": 0, "aof_pending_bio_fsync": 0,
    "aof_buffer_length": 0, "aof_delayed_fsync": 0, "aof_rewrite_in_progress": 0, "rdb_bgsave_in_progress": 0,
    "total_commands_processed": 4, "total_connections_received": 1, "rejected_connections": 0,
    "evicted_keys": 0, "total_forks": 0, "latest_fork_usec": 0, "eventloop_cycles": 13,
    "eventloop_duration_sum": 1294, "eventloop_duration_cmd_sum": 3, "eventloop_duration_aof_sum": 410,
    "used_cpu_sys_main_thread": 0.00898, "used_cpu_user_main_thread": 0.0,
    "used_active_time_main_thread": 0.000353,
}  # fmt: skip
AFTER = BEFORE | {
    "aof_current_size": 389723, "total_commands_processed": 3005, "connected_clients": 2,
    "eventloop_cycles": 3119, "eventloop_duration_sum": 7057002, "eventloop_duration_cmd_sum": 16963,
    "eventloop_duration_aof_sum": 6790410, "used_cpu_sys_main_thread": 0.45,
    "used_cpu_user_main_thread": 0.06, "used_active_time_main_thread": 7.02,
}  # fmt: skip

REDIS_5: dict[str, Any] = {
    key: value
    for key, value in BEFORE.items()
    if not key.startswith(("eventloop", "used_active", "valkey", "total_forks"))
    and not key.endswith("_main_thread")
    and key != "maxclients"
} | {"redis_version": "5.0.14"}


@pytest.mark.parametrize(
    ("version", "by_threads", "told"), [("8.1.3", 5000, False), ("8.1.3", 0, True), ("7.2.7", 5000, True)]
)
def test_a_loop_that_spins_for_its_io_threads_does_not_tell_how_busy_it_was(
    version: str, by_threads: int, told: bool
) -> None:
    """From Valkey 8 the event loop spins with I/O threads, so its busy time is unknown; 9.1 reports it."""
    old, new = (
        {k: v for k, v in each.items() if "used_active" not in k}
        | {"valkey_version": version, "io_threaded_reads_processed": reads, "io_threaded_writes_processed": 0}
        for each, reads in ((BEFORE, 0), (AFTER, by_threads))
    )
    found = of(valkey.since(old, new, 8.0))
    assert (found["db.main_thread.busy_ratio", ""][0] is not None) == told
    assert found["db.aof.wait_ratio", ""][0] == pytest.approx(0.84875), "its log's time"
    missing = [
        each.metric for each in valkey.not_measured(new, "default", sees_latency=True, notes_delays=None)
    ]
    assert ("db.main_thread.busy_ratio" not in missing) == told
    active = {"used_active_time_main_thread": 1.0}
    (busy, _) = of(valkey.since(old | active, new | {"used_active_time_main_thread": 5.0}, 8.0))[
        "db.main_thread.busy_ratio", ""
    ]
    assert busy == 0.5


def test_an_old_server_sends_what_it_has_and_lists_the_rest() -> None:
    """On an old server CPU time is not used as busy time, because it excludes waits for the disk."""
    later = REDIS_5 | {"total_commands_processed": 104}
    found = of(valkey.since(REDIS_5, later, 10.0))
    assert found["db.commands_per_s", ""] == (10.0, None)
    assert not [metric for metric, _ in found if metric.startswith("db.main_thread")]
    missing = list(valkey.not_measured(REDIS_5, "default", sees_latency=True, notes_delays=None))
    assert {each.metric for each in missing} == {
        "db.main_thread.busy_ratio", "db.main_thread.commands_ratio", "db.main_thread.cycle*",
        "db.main_thread.cpu_ratio", "db.aof.wait_ratio", "db.memory_ratio",
    }  # fmt: skip
    assert ("db.connections_ratio", "") not in of(valkey.levels(REDIS_5))


def test_without_a_file_there_is_nothing_said_of_it() -> None:
    """Without an append-only file its metrics are missing, even if the server reports 0."""
    before, after = (each | {"aof_enabled": 0} for each in (BEFORE, AFTER))
    values = {**of(valkey.levels(after)), **of(valkey.since(before, after, 1.0))}
    assert not [metric for metric, _ in values if metric.startswith("db.aof.")]
    missing = list(valkey.not_measured(after, "default", sees_latency=True, notes_delays=None))
    assert "db.aof.*" in [each.metric for each in missing]


@pytest.mark.parametrize(
    ("history", "told", "expected"),
    [
        ([], None, None),
        ([Spike(100, 7)], None, 0.007),
        ([Spike(100, 7)], Spike(100, 7), None),
        ([Spike(100, 9)], Spike(100, 7), 0.009),
        ([Spike(100, 90), Spike(101, 6), Spike(102, 8)], Spike(100, 90), 0.008),
    ],
)
def test_the_longest_delay_not_yet_told(
    history: list[Spike], told: Spike | None, expected: float | None
) -> None:
    """Each delay is reported once; a second is reported again if its delay became longer."""
    assert valkey.longest(history, told) == expected


def test_delays_that_are_not_noted_are_listed_with_the_remedy() -> None:
    """Unrecorded or unreadable delays are listed with their remedies; an unreadable threshold gives none."""

    def listed(notes: bool | None, *, sees: bool) -> list[str | None]:
        missing = valkey.not_measured(AFTER, "watcher", sees_latency=sees, notes_delays=notes)
        return [each.remedy for each in missing if each.metric == "db.spike_s"]

    remedy = "run: ACL SETUSER watcher +latency|latest +latency|history +latency|doctor"
    assert listed(False, sees=True) == ["run: CONFIG SET latency-monitor-threshold 5"]
    assert listed(True, sees=True) == []
    assert listed(None, sees=True) == []
    assert listed(None, sees=False) == [remedy]
