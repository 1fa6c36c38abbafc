"""Collector kind ``valkey``: main thread, append-only file, memory and clients of Valkey or Redis.

All metrics come from ``INFO`` and ``LATENCY``. ``CONFIG GET`` is not used, because it also returns passwords
(``requirepass``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.databases.base import ReadingQuestion, ServerCollector, ServerKind, ServerReading
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Metric, Value, grown, mean, rate
from pinchpoint_collectors.value import levels as levels_of
from pinchpoint_collectors.value import rates as rates_of

OLDEST = 5
"""First major version of Redis with known fields. All versions of Valkey are known."""

Info = Mapping[str, Any]
"""Fields of ``INFO`` and ``INFO debug``, of all sections."""

# ---- questions and answers ----------------------------------------------------------------------------

Commands = tuple[tuple[str, ...], ...]
_NO_DELAYS = "monitoring is disabled"
"""Words of LATENCY DOCTOR if latency-monitor-threshold is 0."""


class Spike(NamedTuple):
    """The longest delay of one kind in one second, as ``LATENCY HISTORY`` stores it.

    Attributes:
        time_s: second of the delay by the clock of the server.
        longest_ms: longest delay in whole milliseconds.
    """

    time_s: int
    longest_ms: int


class ServerAnswer(NamedTuple):
    """The answer of a server at one time.

    Attributes:
        info: fields of ``INFO`` and of its section ``debug``.
        events: kinds of delay in its list; None without the right to read them.
        histories: kind of delay -> delays, oldest first, for each requested kind.
    """

    info: Info
    events: frozenset[str] | None
    histories: dict[str, list[Spike]]


def asked(events: Collection[str] = (), *, sees_latency: bool = True) -> ReadingQuestion:
    """Return all commands for one exchange, because a server that flushes to disk answers once per flush.

    Args:
        events: kinds of delay whose history is read.
        sees_latency: whether to request delays.
    """
    commands: Commands = (("INFO",), ("INFO", "debug"))
    if sees_latency:
        commands += (("LATENCY LATEST",), *(("LATENCY HISTORY", name) for name in events))
    return ReadingQuestion(commands, lambda answers: _answer(answers, tuple(events)))


def _answer(answers: list[Any], events: Collection[str]) -> ServerAnswer:
    """Return the answers to ``asked``. Raises ``CollectorError`` if ``INFO`` was refused."""
    basic, debug, *delays = answers
    for answer in (basic, debug):
        if isinstance(answer, CollectorError):
            raise answer
    if any(isinstance(answer, CollectorError) for answer in delays):
        delays = []
    latest, *histories = delays or [None]
    return ServerAnswer(
        basic | debug,
        None if latest is None else frozenset(_text(event[0]) for event in latest),
        {name: [Spike(*each) for each in history] for name, history in zip(events, histories, strict=False)},
    )


def _text(answer: bytes | str) -> str:
    return answer.decode() if isinstance(answer, bytes) else answer


# ---- fields of INFO -----------------------------------------------------------------------------------

NEEDED = "redis_version", "run_id", "role", "connected_clients", "aof_enabled"
"""Fields that every Valkey and Redis has. Other servers with the same protocol may lack them."""

_ACTIVE, _LOOP = "used_active_time_main_thread", "eventloop_duration_sum"
_BUSY = (_ACTIVE, 1.0), (_LOOP, 1e-6)
"""Fields with the busy time of the main thread -> their unit in seconds.

The first field is that of Valkey 9.1 and later, the second that of Valkey and Redis 7.2 and later. Both count
a cycle of the event loop from waking to sleeping, including writes and flushes of the append-only file
(measured with Valkey 9.1: they differ by 0.2 %).
"""
_SPINNING = 8
"""Major version of Valkey from which the main thread polls while I/O threads work."""
_BY_IO_THREADS = "io_threaded_reads_processed", "io_threaded_writes_processed"
_CPU = "used_cpu_user_main_thread", "used_cpu_sys_main_thread"
_AOF = "eventloop_duration_aof_sum"

RATES = {
    "total_commands_processed": Metric("db.commands_per_s"),
    "total_connections_received": Metric("db.connections_made_per_s"),
    "rejected_connections": Metric("db.connections_rejected_per_s"),
    "client_query_buffer_limit_disconnections": Metric("db.disconnections_per_s", "query buffer"),
    "client_output_buffer_limit_disconnections": Metric("db.disconnections_per_s", "output buffer"),
    "evicted_keys": Metric("db.evicted_keys_per_s"),
    "expired_keys": Metric("db.expired_keys_per_s"),
    "total_net_input_bytes": Metric("db.received_bytes_per_s"),
    "total_net_output_bytes": Metric("db.sent_bytes_per_s"),
    "aof_current_size": Metric("db.aof.bytes_per_s"),
    "aof_delayed_fsync": Metric("db.aof.delayed_fsyncs_per_s"),
    _AOF: Metric("db.aof.wait_ratio", unit=1e-6),
    "eventloop_duration_cmd_sum": Metric("db.main_thread.commands_ratio", unit=1e-6),
}
"""Counter of ``INFO`` -> metric for its growth per second."""

LEVELS = {
    "connected_clients": Metric("db.connections"),
    "blocked_clients": Metric("db.clients_blocked"),
    "used_memory": Metric("db.memory_used_bytes"),
    "mem_clients_normal": Metric("db.clients_memory_bytes"),
    "aof_pending_bio_fsync": Metric("db.aof.pending_fsyncs"),
    "aof_buffer_length": Metric("db.aof.buffered_bytes"),
    "aof_rewrite_in_progress": Metric("db.aof.rewriting"),
    "rdb_bgsave_in_progress": Metric("db.snapshot_running"),
}
"""Field of ``INFO`` -> metric for its current value."""

_SETTINGS = {
    "maxmemory": "maxmemory",
    "maxmemory-policy": "maxmemory_policy",
    "maxclients": "maxclients",
    "hz": "configured_hz",
}
"""Setting -> field of ``INFO`` with its value."""
_UNKNOWN = "appendfsync", "no-appendfsync-on-rewrite", "save", "io-threads"


def levels(info: Info) -> Iterator[Value]:
    """Return current values."""
    yield from levels_of(_that_apply(LEVELS, info), info)
    if info.get("maxclients"):
        yield Value("db.connections_ratio", "", info["connected_clients"] / info["maxclients"])
    if info.get("maxmemory"):
        yield Value("db.memory_ratio", "", info["used_memory"] / info["maxmemory"])
    if info.get("aof_enabled"):
        yield Value("db.aof.failing", "", float(info["aof_last_write_status"] != "ok"))


def since(before: Info, after: Info, interval_s: float) -> Iterator[Value]:
    """Return the growth of counters between two readings of one server."""
    yield from rates_of(_that_apply(RATES, after), before, after, interval_s)
    busy = next(((name, unit) for name, unit in _BUSY if name in before and name in after), None)
    if busy is not None:
        name, unit = busy
        ratio = rate(before[name], after[name], interval_s, unit)
        spins = name == _LOOP and _spins(before, after)
        yield Value("db.main_thread.busy_ratio", "", None if spins else ratio)
    if all(name in before and name in after for name in _CPU):
        then_s, now_s = (sum(float(info[name]) for name in _CPU) for info in (before, after))
        yield Value("db.main_thread.cpu_ratio", "", rate(then_s, now_s, interval_s))
    yield from _cycles(before, after, interval_s)
    yield from _forks(before, after)


def _spins(before: Info, after: Info) -> bool:
    """Return whether the event loop polled without work, which the server counts as busy time.

    Since Valkey 8 the main thread polls while its I/O threads work. A loop that never sleeps does not show
    how much of its time was work (valkey-io/valkey, issue 2065).
    """
    if int(str(after.get("valkey_version", "0")).partition(".")[0]) < _SPINNING:
        return False
    return any(before.get(name) != after.get(name) for name in _BY_IO_THREADS)


def _that_apply(table: Mapping[str, Metric], info: Info) -> Mapping[str, Metric]:
    """Return the table without fields of the append-only file, if there is no such file: they are 0 then."""
    if info["aof_enabled"]:
        return table
    return {name: metric for name, metric in table.items() if not metric.metric.startswith("db.aof.")}


def _cycles(before: Info, after: Info, interval_s: float) -> Iterator[Value]:
    """Return cycles of the event loop.

    Each serves all waiting clients, then writes and flushes once for all.
    """
    count = "eventloop_cycles"
    if count not in before or count not in after:
        return
    yield Value("db.main_thread.cycles_per_s", "", rate(before[count], after[count], interval_s))
    cycles, spent_us = grown(before, after, count, _LOOP)
    yield mean("db.main_thread.cycle_s", "", None if spent_us is None else spent_us / 1e6, cycles)


def _forks(before: Info, after: Info) -> Iterator[Value]:
    """Return how long a fork stopped the main thread; of several forks in one interval, the last one."""
    if "total_forks" not in before or "total_forks" not in after:
        return
    (forks,) = grown(before, after, "total_forks")
    yield Value("db.fork_latency_s", "", after["latest_fork_usec"] / 1e6 if forks else None, forks)


def longest(history: Iterable[Spike], reported: Spike | None) -> float | None:
    """Return the longest delay of a history since the last reading in seconds; None if there is none.

    Args:
        history: delays, oldest first.
        reported: last entry at the last reading. The delay in its second may have grown since.
    """
    new = [each.longest_ms for each in history if reported is None or each > reported]
    return max(new) / 1000 if new else None


def settings(info: Info) -> dict[str, str | None]:
    """Return the settings that ``INFO`` reports. Those that only ``CONFIG GET`` reports are null."""
    return {
        "appendonly": "yes" if info["aof_enabled"] else "no",
        **{name: None if field not in info else str(info[field]) for name, field in _SETTINGS.items()},
        **dict.fromkeys(_UNKNOWN),
    }


def not_measured(
    info: Info, user: str, *, sees_latency: bool, notes_delays: bool | None
) -> Iterator[NotMeasured]:
    """Return the metrics that this server, or the rights of this user, do not provide.

    Args:
        info: fields of ``INFO``.
        user: user of the collector.
        sees_latency: whether the user may run ``LATENCY``.
        notes_delays: whether the server records delays; None without the right to see them.
    """
    newer = "upgrade the server where this matters (Valkey, or Redis 7.2)"
    if not any(field in info for field, _ in _BUSY):
        why = "this version does not report how long its event loop is at work"
        for metric in ("db.main_thread.busy_ratio", "db.main_thread.commands_ratio", "db.main_thread.cycle*"):
            yield NotMeasured(metric, "", why, newer)
    # values since the start of the server
    elif _ACTIVE not in info and _spins(dict.fromkeys(_BY_IO_THREADS, 0), info):
        why = "while I/O threads are at work this version counts waiting for them as work of its main thread"
        yield NotMeasured("db.main_thread.busy_ratio", "", why, "upgrade to Valkey 9.1, or set io-threads 1")
    if _CPU[0] not in info:
        yield NotMeasured(
            "db.main_thread.cpu_ratio", "", "this version does not report the main thread's CPU time", newer
        )
    if not info["aof_enabled"]:
        yield NotMeasured("db.aof.*", "", "the server keeps no append-only file (appendonly no)", None)
    elif _AOF not in info:
        why = "this version has no INFO debug, which reports how long its event loop spends on the file"
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


# ---- the collector ------------------------------------------------------------------------------------


class ValkeyCollector(ServerCollector):
    """Reads the counters of the server, and the delays that it recorded, at each reading."""

    KIND = "valkey"

    def _begin(self) -> None:
        first = self._ask(asked())
        self._about = first.info
        self._refuse_others()
        self._sees_latency = first.events is not None
        self._reported: dict[str, Spike | None] = {}
        self._note_newest(first)

    def _refuse_others(self) -> None:
        """Raises ``CollectorError`` for another server with the same protocol, and for an unknown version."""
        absent = [name for name in NEEDED if name not in self._about]
        known = f"collector kind 'valkey' knows Valkey, and Redis from {OLDEST} on"
        if absent:
            raise CollectorError(
                f"{self._where}: what it says of itself (INFO) has no {', '.join(absent)}; {known}: "
                "leave this collector out"
            )
        version = self._about["redis_version"]
        if int(str(version).partition(".")[0]) < OLDEST:
            raise CollectorError(
                f"{self._where}: the server is Redis {version}; {known}: upgrade the server, "
                "or leave this collector out"
            )

    def _questions(self) -> Mapping[str, ReadingQuestion]:
        if self._before is not None:
            # For a kind of delay that was new at the last reading, this reading has the first history.
            new = (self._before["answer"].events or frozenset()) - self._reported.keys()
            self._reported |= dict.fromkeys(new)
        return {"answer": asked(self._reported, sees_latency=self._sees_latency)}

    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        """Return whether the server is the same. An address may also have moved to a replica."""
        return bool(before["answer"].info["run_id"] == now["answer"].info["run_id"])

    def _on_another_server(self, now: ServerReading) -> None:
        self._note_newest(now["answer"])

    def _levels(self, now: ServerReading) -> Iterator[Value]:
        return levels(now["answer"].info)

    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterator[Value]:
        if before is not None:
            yield from since(before["answer"].info, now["answer"].info, interval_s)
            yield from self._spikes(now["answer"])

    def _spikes(self, answer: ServerAnswer) -> Iterator[Value]:
        """Return delays.

        A kind of delay that occurred once is always sent, as null if there was no new one.
        """
        for name, history in answer.histories.items():
            yield Value("db.spike_s", name, longest(history, self._reported[name]))
            if history:
                self._reported[name] = history[-1]

    def _note_newest(self, answer: ServerAnswer) -> None:
        """Record the newest delay of each kind. Earlier ones occurred before the collector started."""
        histories = self._ask(asked(answer.events)).histories if answer.events else {}
        self._reported = {name: history[-1] for name, history in histories.items() if history}

    def _ask(self, question: ReadingQuestion) -> ServerAnswer:
        answer: ServerAnswer = question.parse(self._server.ask(question.question))
        return answer

    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        about, user = self._about, str(self._server.user)
        notes_delays = None
        if self._sees_latency:
            (answer,) = self._server.ask((("LATENCY DOCTOR",),))
            notes_delays = None if isinstance(answer, CollectorError) else _NO_DELAYS not in _text(answer)
        database = {
            "server": about.get("server_name", "redis"),
            "version": str(about.get("valkey_version", about["redis_version"])),
            "role": user,
            "standby": about["role"] != "master",
            "connections_limit": about.get("maxclients"),
            "append_only": bool(about["aof_enabled"]),
            "settings": settings(about),
        }
        missing = not_measured(about, user, sees_latency=self._sees_latency, notes_delays=notes_delays)
        return database, missing


class ValkeyKind(ServerKind):
    """Collector kind ``valkey`` of farm.yaml: Valkey of any version, Redis from 5 on."""

    name = "valkey"
    product = "Valkey or Redis"
    schemes = (*valkey_urls.SCHEMES, "valkeys", "rediss")
    package = "valkey"
    collector = ValkeyCollector
    connection = "ValkeyServerConnection"

    def _check_is_one(self, where: str, address: str, options: Mapping[str, Any]) -> None:
        super()._check_is_one(where, address, options)
        scheme = str(options.get("url")).partition("://")[0]
        if "address" not in options and scheme in valkey_urls.SENTINEL:
            raise CollectorError(
                f"{where}: the endpoint names Sentinels ({address}), and each server reports itself only; "
                "say which one this host is, as in `address: HOST:6379`"
            )
