"""Valkey's and Redis' ``INFO`` and ``LATENCY`` as values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pinchpoint_collectors.proc.value import Value, growth, rate
from pinchpoint_collectors.record import NotMeasured

Info = Mapping[str, Any]
"""The fields of ``INFO`` and ``INFO debug``, whatever their section."""

_ACTIVE, _LOOP = "used_active_time_main_thread", "eventloop_duration_sum"
_BUSY = (_ACTIVE, 1.0), (_LOOP, 1e-6)
"""Fields that tell how long the main thread was not waiting for work, and their unit in seconds.

Valkey 9.1 on; Valkey and Redis 7.2 on. Both count a cycle of the event loop from its waking to its sleeping,
the writing and flushing of the append-only file included (measured with Valkey 9.1: they differ by 0.2 %).
"""

_SPINNING = 8
"""The major version of Valkey with which I/O threads have the main thread spin."""
_BY_IO_THREADS = "io_threaded_reads_processed", "io_threaded_writes_processed"

NEEDED = "redis_version", "run_id", "role", "connected_clients", "aof_enabled"
"""Fields every Valkey and Redis has; a server that only speaks their protocol may not."""

_CPU = "used_cpu_user_main_thread", "used_cpu_sys_main_thread"
_AOF = "eventloop_duration_aof_sum"
_COMMANDS = "eventloop_duration_cmd_sum"

_RATES = {
    "total_commands_processed": ("db.commands_per_s", "", 1.0),
    "total_connections_received": ("db.connections_made_per_s", "", 1.0),
    "rejected_connections": ("db.connections_rejected_per_s", "", 1.0),
    "client_query_buffer_limit_disconnections": ("db.disconnections_per_s", "query buffer", 1.0),
    "client_output_buffer_limit_disconnections": ("db.disconnections_per_s", "output buffer", 1.0),
    "evicted_keys": ("db.evicted_keys_per_s", "", 1.0),
    "expired_keys": ("db.expired_keys_per_s", "", 1.0),
    "total_net_input_bytes": ("db.received_bytes_per_s", "", 1.0),
    "total_net_output_bytes": ("db.sent_bytes_per_s", "", 1.0),
    "aof_current_size": ("db.aof.bytes_per_s", "", 1.0),
    "aof_delayed_fsync": ("db.aof.delayed_fsyncs_per_s", "", 1.0),
    _AOF: ("db.aof.wait_ratio", "", 1e-6),
    _COMMANDS: ("db.main_thread.commands_ratio", "", 1e-6),
}
"""A counter of ``INFO`` -> metric and instance of its growth per second, and what one count is worth."""

_SETTINGS = {
    "maxmemory": "maxmemory",
    "maxmemory-policy": "maxmemory_policy",
    "maxclients": "maxclients",
    "hz": "configured_hz",
}
"""A setting -> the field of ``INFO`` that has it."""
_UNKNOWN = "appendfsync", "no-appendfsync-on-rewrite", "save", "io-threads"

_LEVELS = {
    "connected_clients": "db.connections",
    "blocked_clients": "db.clients_blocked",
    "used_memory": "db.memory_used_bytes",
    "mem_clients_normal": "db.clients_memory_bytes",
    "aof_pending_bio_fsync": "db.aof.pending_fsyncs",
    "aof_buffer_length": "db.aof.buffered_bytes",
    "aof_rewrite_in_progress": "db.aof.rewriting",
    "rdb_bgsave_in_progress": "db.snapshot_running",
}
"""A field of ``INFO`` -> the metric that is its value now."""


def levels(info: Info) -> Iterator[Value]:
    """What holds at this moment. A field the server does not have is not sent."""
    for field, metric in _LEVELS.items():
        if field in info and _applies(metric, info):
            yield Value(metric, "", info[field])
    if info.get("maxclients"):
        yield Value("db.connections_ratio", "", info["connected_clients"] / info["maxclients"])
    if info.get("maxmemory"):
        yield Value("db.memory_ratio", "", info["used_memory"] / info["maxmemory"])
    if info.get("aof_enabled"):
        yield Value("db.aof.failing", "", float(info["aof_last_write_status"] != "ok"))


def since(before: Info, after: Info, interval_s: float) -> Iterator[Value]:
    """What grew between two readings of one server, a counter that went back being null."""
    for field, (metric, instance, unit) in _RATES.items():
        if field in before and field in after and _applies(metric, after):
            yield Value(metric, instance, rate(before[field], after[field], interval_s, unit))
    busy = next(((name, unit) for name, unit in _BUSY if name in before and name in after), None)
    if busy is not None:
        name, unit = busy
        told = rate(before[name], after[name], interval_s, unit)
        spins = name == _LOOP and _spins(before, after)
        yield Value("db.main_thread.busy_ratio", "", None if spins else told)
    if all(name in before and name in after for name in _CPU):
        then_s, now_s = (sum(float(info[name]) for name in _CPU) for info in (before, after))
        yield Value("db.main_thread.cpu_ratio", "", rate(then_s, now_s, interval_s))
    yield from _cycles(before, after, interval_s)
    yield from _forks(before, after)


def _spins(before: Info, after: Info) -> bool:
    """Whether the loop went round and round for want of work, and counted that as work.

    Since Valkey 8 the main thread does so while its I/O threads have something to do: a loop that is never
    asleep says nothing of how much of the time there was work (valkey-io/valkey, issue 2065).
    """
    if int(str(after.get("valkey_version", "0")).partition(".")[0]) < _SPINNING:
        return False
    return any(before.get(name) != after.get(name) for name in _BY_IO_THREADS)


def _applies(metric: str, info: Info) -> bool:
    """Some fields of the append-only file are there, and 0, where there is none."""
    return bool(info["aof_enabled"]) or not metric.startswith("db.aof.")


def _cycles(before: Info, after: Info, interval_s: float) -> Iterator[Value]:
    """The event loop's cycles: each serves all who asked, then writes and flushes for all of them."""
    count, spent = "eventloop_cycles", "eventloop_duration_sum"
    if count not in before or count not in after:
        return
    yield Value("db.main_thread.cycles_per_s", "", rate(before[count], after[count], interval_s))
    cycles, spent_us = growth(before[count], after[count]), growth(before[spent], after[spent])
    if cycles is None or spent_us is None:
        yield Value("db.main_thread.cycle_s", "", None)
    else:
        yield Value("db.main_thread.cycle_s", "", spent_us / 1e6 / cycles if cycles else None, cycles)


def _forks(before: Info, after: Info) -> Iterator[Value]:
    """How long the main thread stood still to fork; of several forks in one interval, the last."""
    if "total_forks" not in before or "total_forks" not in after:
        return
    forks = growth(before["total_forks"], after["total_forks"])
    yield Value("db.fork_latency_s", "", after["latest_fork_usec"] / 1e6 if forks else None, forks)


class Spike(NamedTuple):
    """The longest delay of one kind in one second, as ``LATENCY HISTORY`` keeps it.

    Attributes:
        time_s: the second, by the server's clock.
        longest_ms: in whole ms.
    """

    time_s: int
    longest_ms: int


def longest(history: Sequence[Spike], told: Spike | None) -> float | None:
    """The longest delay of a history that was not yet told, in seconds; None where nothing is new.

    Args:
        history: oldest first.
        told: its last entry at the reading before: a second that goes on may have become worse since.
    """
    new = [each.longest_ms for each in history if told is None or each > told]
    return max(new) / 1000 if new else None


def settings(info: Info) -> dict[str, str | None]:
    """Settings as far as ``INFO`` tells them; null are those that only ``CONFIG GET`` does."""
    return {
        "appendonly": "yes" if info["aof_enabled"] else "no",
        **{name: None if field not in info else str(info[field]) for name, field in _SETTINGS.items()},
        **dict.fromkeys(_UNKNOWN),
    }


def not_measured(
    info: Info, user: str, *, sees_latency: bool, notes_delays: bool | None
) -> Iterator[NotMeasured]:
    """What this server cannot say, or not to us.

    Args:
        info: its fields.
        user: whom we log in as.
        sees_latency: whether we may ask ``LATENCY``.
        notes_delays: whether the server notes them; None: we may not ask.
    """
    newer = "upgrade the server where this matters (Valkey, or Redis 7.2)"
    if not any(field in info for field, _ in _BUSY):
        why = "this version does not tell how long its event loop is at work"
        for metric in ("db.main_thread.busy_ratio", "db.main_thread.commands_ratio", "db.main_thread.cycle*"):
            yield NotMeasured(metric, "", why, newer)
    elif _ACTIVE not in info and _spins(dict.fromkeys(_BY_IO_THREADS, 0), info):  # since it was started
        why = "while I/O threads are at work this version counts waiting for them as work of its main thread"
        yield NotMeasured("db.main_thread.busy_ratio", "", why, "upgrade to Valkey 9.1, or set io-threads 1")
    if _CPU[0] not in info:
        yield NotMeasured(
            "db.main_thread.cpu_ratio", "", "this version does not tell the main thread's CPU time", newer
        )
    if not info["aof_enabled"]:
        yield NotMeasured("db.aof.*", "", "the server keeps no append-only file (appendonly no)", None)
    elif _AOF not in info:
        why = "this version has no INFO debug, which tells how long its event loop spends on the file"
        yield NotMeasured("db.aof.wait_ratio", "", why, newer)
    if not info.get("maxmemory"):
        yield NotMeasured("db.memory_ratio", "", "the server has no memory limit (maxmemory 0)", None)
    metric = "db.spike_s"
    if not sees_latency:
        yield NotMeasured(
            metric, "", f"the user {user} may not ask LATENCY",
            f"run: ACL SETUSER {user} +latency|latest +latency|history +latency|doctor",
        )  # fmt: skip
    elif notes_delays is False:
        yield NotMeasured(
            metric, "", "latency-monitor-threshold is 0: the server notes no delays",
            "run: CONFIG SET latency-monitor-threshold 5",
        )  # fmt: skip
